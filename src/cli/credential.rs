//! Flags of the credentials.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::endpoint::Url;
use super::parse::{accept, duration};

/// Limits of the Security Token Service for a role session.
const MIN_ROLE_DURATION: Duration = Duration::from_mins(15);
const MAX_ROLE_DURATION: Duration = Duration::from_hours(12);

/// The source of the credentials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Selection {
    /// The first configured source in this order
    #[default]
    Chain,
    /// The Secret directory of `--credentials-dir`
    Directory,
    /// Environment variables
    Environment,
    /// The role that an OIDC token assumes
    Oidc,
    /// The role of the instance, from its metadata service
    InstanceRole,
}

#[derive(Debug, Args)]
pub struct CredentialArgs {
    /// Source of the credentials.
    #[arg(long, env = "DISKPLUGIN_CREDENTIALS", value_enum, default_value_t)]
    pub credentials: Selection,

    /// Directory of a mounted Secret with the files access-key-id and access-key-secret.
    #[arg(long, env = "DISKPLUGIN_CREDENTIALS_DIR")]
    pub credentials_dir: Option<PathBuf>,

    /// RAM role to assume with an OIDC token (RRSA): acs:ram::UID:role/NAME. Default: ALIBABA_CLOUD_ROLE_ARN.
    #[arg(long, env = "DISKPLUGIN_OIDC_ROLE_ARN", value_parser = role_arn)]
    pub oidc_role_arn: Option<String>,

    /// OIDC identity provider of the token: acs:ram::UID:oidc-provider/NAME. Default: ALIBABA_CLOUD_OIDC_PROVIDER_ARN.
    #[arg(long, env = "DISKPLUGIN_OIDC_PROVIDER_ARN")]
    pub oidc_provider_arn: Option<String>,

    /// File of the OIDC token, renewed by the cluster. Default: ALIBABA_CLOUD_OIDC_TOKEN_FILE.
    #[arg(long, env = "DISKPLUGIN_OIDC_TOKEN_FILE")]
    pub oidc_token_file: Option<PathBuf>,

    /// RAM role of the instance. Default: ALIBABA_CLOUD_ECS_METADATA,
    /// otherwise from the instance metadata service.
    #[arg(long, env = "DISKPLUGIN_INSTANCE_ROLE")]
    pub instance_role: Option<String>,

    /// RAM role to assume with the credentials of the source: acs:ram::UID:role/NAME.
    #[arg(long, env = "DISKPLUGIN_ASSUME_ROLE_ARN", value_parser = role_arn)]
    pub assume_role_arn: Option<String>,

    /// External ID that the trust policy of the assumed role requires.
    #[arg(long, env = "DISKPLUGIN_ASSUME_ROLE_EXTERNAL_ID", requires = "assume_role_arn")]
    pub assume_role_external_id: Option<String>,

    /// Session name of an assumed role, as shown in audit logs.
    /// Default: ALIBABA_CLOUD_ROLE_SESSION_NAME, otherwise diskplugin.
    #[arg(long, env = "DISKPLUGIN_ROLE_SESSION_NAME", value_parser = session_name)]
    pub role_session_name: Option<String>,

    /// Validity of the credentials of an assumed role, 15m to 12h. Default: 1h.
    #[arg(long, env = "DISKPLUGIN_ROLE_DURATION", value_parser = role_duration)]
    pub role_duration: Option<Duration>,

    /// URL of the Security Token Service. Default: the endpoint of the region in the network of --network.
    #[arg(long, env = "DISKPLUGIN_STS_ENDPOINT", value_parser = Url)]
    pub sts_endpoint: Option<String>,
}

fn role_arn(text: &str) -> Result<String, String> {
    let is_role = text
        .strip_prefix("acs:ram::")
        .and_then(|rest| rest.split_once(":role/"))
        .is_some_and(|(account, name)| {
            account.chars().all(|c| c.is_ascii_digit()) && !account.is_empty() && !name.is_empty()
        });
    accept(text, is_role, "acs:ram::UID:role/NAME")
}

fn session_name(text: &str) -> Result<String, String> {
    let plain = |c: char| c.is_ascii_alphanumeric() || ".@-_".contains(c);
    let fits = (2..=64).contains(&text.len()) && text.chars().all(plain);
    accept(text, fits, "2 to 64 letters, digits and .@-_")
}

fn role_duration(text: &str) -> Result<Duration, String> {
    let wanted = duration(text).map_err(|error| error.to_string())?;
    match (MIN_ROLE_DURATION..=MAX_ROLE_DURATION).contains(&wanted) {
        true => Ok(wanted),
        false => Err("allowed: 15m to 12h".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_the_token_service_rejects_are_invalid() {
        for text in ["acs:ram::1:role/r", "acs:ram::10086:role/a/b"] {
            assert!(role_arn(text).is_ok(), "{text}");
        }
        for text in ["r", "acs:ram::1:user/r", "acs:ram:::role/r", "acs:ram::x:role/"] {
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
