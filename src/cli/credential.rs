//! Settings of where credentials come from.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{duration, url};
use crate::cloud::credential::Selection;

/// What the service gives a role at least and at most.
const SHORTEST: Duration = Duration::from_mins(15);
const LONGEST: Duration = Duration::from_hours(12);

/// Where credentials come from.
#[derive(Debug, Args)]
pub struct Credentials {
    /// Where credentials come from.
    #[arg(long, env = "DISKPLUGIN_CREDENTIALS", value_enum, default_value_t)]
    pub credentials: Selection,

    /// Directory of a mounted Secret with the files access-key-id and access-key-secret.
    #[arg(long, env = "DISKPLUGIN_CREDENTIALS_DIR")]
    pub credentials_dir: Option<PathBuf>,

    /// RAM role that an OIDC token assumes (RRSA): acs:ram::UID:role/NAME; unset,
    /// ALIBABA_CLOUD_ROLE_ARN counts.
    #[arg(long, env = "DISKPLUGIN_OIDC_ROLE_ARN", value_parser = role_arn)]
    pub oidc_role_arn: Option<String>,

    /// Identity provider that vouches for the token: acs:ram::UID:oidc-provider/NAME; unset,
    /// ALIBABA_CLOUD_OIDC_PROVIDER_ARN counts.
    #[arg(long, env = "DISKPLUGIN_OIDC_PROVIDER_ARN")]
    pub oidc_provider_arn: Option<String>,

    /// File that the cluster keeps the token in; unset, ALIBABA_CLOUD_OIDC_TOKEN_FILE counts.
    #[arg(long, env = "DISKPLUGIN_OIDC_TOKEN_FILE")]
    pub oidc_token_file: Option<PathBuf>,

    /// RAM role of the instance; unset, ALIBABA_CLOUD_ECS_METADATA counts, and without that the
    /// metadata service is asked for it.
    #[arg(long, env = "DISKPLUGIN_INSTANCE_ROLE")]
    pub instance_role: Option<String>,

    /// RAM role to assume with the credentials that were found: acs:ram::UID:role/NAME.
    #[arg(long, env = "DISKPLUGIN_ASSUME_ROLE_ARN", value_parser = role_arn)]
    pub assume_role_arn: Option<String>,

    /// External id that the trust policy of the role to assume asks for.
    #[arg(
        long,
        env = "DISKPLUGIN_ASSUME_ROLE_EXTERNAL_ID",
        requires = "assume_role_arn"
    )]
    pub assume_role_external_id: Option<String>,

    /// What audit logs call this driver when it has assumed a role; unset,
    /// ALIBABA_CLOUD_ROLE_SESSION_NAME counts, and without that diskplugin.
    #[arg(long, env = "DISKPLUGIN_ROLE_SESSION_NAME", value_parser = session_name)]
    pub role_session_name: Option<String>,

    /// How long credentials of an assumed role are to be good, 15m to 12h; unset, 1h.
    #[arg(long, env = "DISKPLUGIN_ROLE_DURATION", value_parser = role_duration)]
    pub role_duration: Option<Duration>,

    /// URL of the Security Token Service; unset, that of the region in the network of --network.
    #[arg(long, env = "DISKPLUGIN_STS_ENDPOINT", value_parser = url)]
    pub sts_endpoint: Option<String>,
}

fn role_arn(text: &str) -> Result<String, String> {
    let is_role = text
        .strip_prefix("acs:ram::")
        .and_then(|rest| rest.split_once(":role/"))
        .is_some_and(|(account, name)| {
            account.chars().all(|c| c.is_ascii_digit()) && !account.is_empty() && !name.is_empty()
        });
    match is_role {
        true => Ok(text.to_owned()),
        false => Err("a role is acs:ram::UID:role/NAME".to_owned()),
    }
}

fn session_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".@-_".contains(c);
    match (2..=64).contains(&text.len()) && text.chars().all(plain) {
        true => Ok(text.to_owned()),
        false => Err("allowed are 2 to 64 letters, digits and .@-_".to_owned()),
    }
}

fn role_duration(text: &str) -> Result<Duration, String> {
    let wanted = duration(text).map_err(|error| error.to_string())?;
    match (SHORTEST..=LONGEST).contains(&wanted) {
        true => Ok(wanted),
        false => Err("allowed is 15m to 12h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_service_would_refuse_is_refused_at_once() {
        for text in ["acs:ram::1:role/r", "acs:ram::10086:role/a/b"] {
            assert!(role_arn(text).is_ok(), "{text}");
        }
        for text in [
            "r",
            "acs:ram::1:user/r",
            "acs:ram:::role/r",
            "acs:ram::x:role/",
        ] {
            assert!(role_arn(text).is_err(), "{text}");
        }
        assert!(session_name("disk.plugin@1_-").is_ok());
        for text in ["x", "a b", &"x".repeat(65)] {
            assert!(session_name(text).is_err(), "{text}");
        }
        assert!(role_duration("1h").is_ok());
        for text in ["899s", "13h", "soon"] {
            assert!(role_duration(text).is_err(), "{text}");
        }
    }
}
