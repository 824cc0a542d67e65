//! The credentials of a role: from the selected source, or from the first one that is configured, by flags or by the
//! environment variables of the vendor's SDKs.

use std::sync::Arc;

use anyhow::Context;
use ecs::credential::{
    AssumedRole, Cache, CredentialProvider, Directory, Environment, InstanceRole, OidcRole, RoleSession, Sts,
};
use ecs::metadata::Metadata;
use ecs::server::Server;
use ecs::{ServerClock, endpoint};

use crate::cli::{self, InvalidSettings, Selection, is_on};
use crate::model::RegionId;

/// Default of `RoleSessionName`, which appears in audit logs.
const SESSION: &str = "diskplugin";

#[derive(Debug)]
pub(crate) struct Selected {
    pub provider: Arc<dyn CredentialProvider>,
    /// The description of the source for the log.
    pub source: String,
}

/// The selected source. Sources that make calls are cached. The time of the cloud determines when credentials expire.
/// `variable` returns the value of an environment variable.
pub(crate) fn select(
    cloud: cli::CloudArgs,
    metadata: Metadata,
    region: &RegionId,
    clock: &ServerClock,
    variable: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<Selected> {
    let flags = cloud.credentials;
    let environment = Environment::read(&variable);
    let provider_arn = flags.oidc_provider_arn;
    let provider_arn = provider_arn.or_else(|| variable("ALIBABA_CLOUD_OIDC_PROVIDER_ARN"));
    let token_file = flags.oidc_token_file;
    let token_file = token_file.or_else(|| variable("ALIBABA_CLOUD_OIDC_TOKEN_FILE").map(Into::into));
    // The vendor's variable of the role alone may be intended for other software.
    let has_oidc = flags.oidc_role_arn.is_some() || provider_arn.is_some() || token_file.is_some();
    let chosen = match flags.credentials {
        Selection::Chain if flags.credentials_dir.is_some() => Selection::Directory,
        Selection::Chain if environment.is_set() => Selection::Environment,
        Selection::Chain if has_oidc => Selection::Oidc,
        Selection::Chain if is_on(variable("ALIBABA_CLOUD_ECS_METADATA_DISABLED")) => Selection::Environment,
        Selection::Chain => Selection::InstanceRole,
        chosen => chosen,
    };
    let sts = || {
        let default = || endpoint::sts_url(region, cloud.network);
        let sts_endpoint = flags.sts_endpoint.clone().unwrap_or_else(default);
        let server = sts_endpoint
            .parse::<Server>()
            .map(|server| server.with_trust(cloud.ca_bundle.clone()));
        let sts = server.and_then(|server| Sts::new(server, cloud.signature, clock.clone()));
        sts.map(Arc::new).context("cannot call the Security Token Service")
    };
    let name = flags.role_session_name;
    let name = name.or_else(|| variable("ALIBABA_CLOUD_ROLE_SESSION_NAME"));
    let session = |role_arn: String, external_id| RoleSession {
        role_arn,
        name: name.clone().unwrap_or_else(|| SESSION.to_owned()),
        duration: flags.role_duration,
        external_id,
    };
    let cached = |source: Arc<dyn CredentialProvider>| -> Arc<dyn CredentialProvider> {
        Arc::new(Cache::new(source, Arc::new(clock.clone())))
    };
    let (provider, source): (Arc<dyn CredentialProvider>, String) = match chosen {
        Selection::Directory => {
            let missing = || InvalidSettings(vec!["--credentials directory requires --credentials-dir".to_owned()]);
            let directory = flags.credentials_dir.ok_or_else(missing)?;
            let source = format!("the Secret directory {}", directory.display());
            (Arc::new(Directory::new(directory)), source)
        }
        Selection::Chain | Selection::Environment => (Arc::new(environment), "the environment".to_owned()),
        Selection::Oidc => {
            let role = flags.oidc_role_arn;
            let role = role.or_else(|| variable("ALIBABA_CLOUD_ROLE_ARN"));
            let missing = [
                (role.is_none(), "--oidc-role-arn"),
                (provider_arn.is_none(), "--oidc-provider-arn"),
                (token_file.is_none(), "--oidc-token-file"),
            ];
            let missing = missing.iter().filter(|(is_missing, _)| *is_missing);
            let missing: Vec<_> = missing.map(|(_, flag)| *flag).collect();
            let (Some(role), Some(provider), Some(file)) = (role, provider_arn, token_file) else {
                let problem = format!("an OIDC role also requires {}", missing.join(" and "));
                return Err(InvalidSettings(vec![problem]).into());
            };
            let source = format!("the OIDC role {role}");
            let role = OidcRole::new(sts()?, provider, file, session(role, None));
            (cached(Arc::new(role)), source)
        }
        Selection::InstanceRole => {
            let role = flags.instance_role;
            let role = role.or_else(|| variable("ALIBABA_CLOUD_ECS_METADATA"));
            let source = match &role {
                Some(role) => format!("the instance role {role}"),
                None => "the instance's role".to_owned(),
            };
            let last_resort = flags.credentials == Selection::Chain;
            let role = InstanceRole::new(metadata, role, last_resort);
            (cached(Arc::new(role)), source)
        }
    };
    let Some(role) = flags.assume_role_arn else {
        return Ok(Selected { provider, source });
    };
    let source = format!("role {role}, assumed with {source}");
    let role = AssumedRole::new(provider, sts()?, session(role, flags.assume_role_external_id));
    Ok(Selected {
        provider: cached(Arc::new(role)),
        source,
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::base::SystemClock;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        cloud: cli::CloudArgs,
    }

    fn selected(flags: &[&str], variables: &[(&str, &str)]) -> String {
        let clock = ServerClock::new(Arc::new(SystemClock));
        let metadata = Metadata::new("http://127.0.0.1:9", true).unwrap();
        let Flags { cloud } = Flags::parse_from([&["diskplugin"], flags].concat());
        let region = "cn-beijing".parse().unwrap();
        let variable = |name: &str| {
            let value = variables.iter().find(|(key, _)| *key == name)?.1;
            Some(value.to_owned())
        };
        match select(cloud, metadata, &region, &clock, variable) {
            Ok(selected) => selected.source,
            Err(error) => format!("error: {}", error.downcast::<InvalidSettings>().unwrap().0.concat()),
        }
    }

    const KEY: [(&str, &str); 2] = [("ACCESS_KEY_ID", "k"), ("ACCESS_KEY_SECRET", "s")];
    const RRSA: [(&str, &str); 3] = [
        ("ALIBABA_CLOUD_ROLE_ARN", "acs:ram::1:role/r"),
        ("ALIBABA_CLOUD_OIDC_PROVIDER_ARN", "acs:ram::1:oidc-provider/p"),
        ("ALIBABA_CLOUD_OIDC_TOKEN_FILE", "/var/run/token"),
    ];
    const NO_INSTANCE_ROLE: (&str, &str) = ("ALIBABA_CLOUD_ECS_METADATA_DISABLED", "true");

    #[test]
    fn the_chain_selects_the_first_configured_source() {
        let all: Vec<_> = KEY.into_iter().chain(RRSA).collect();
        let everything = selected(&["--credentials-dir=/secret"], &all);
        assert_eq!(everything, "the Secret directory /secret");
        let chain = |variables| selected(&[], variables);
        assert_eq!(chain(&all), "the environment");
        assert_eq!(chain(&RRSA), "the OIDC role acs:ram::1:role/r");
        assert_eq!(chain(&[RRSA[0]]), "the instance's role");
        assert_eq!(chain(&[]), "the instance's role");
        assert_eq!(chain(&[NO_INSTANCE_ROLE]), "the environment");
    }

    #[test]
    fn each_source_can_be_selected() {
        let all: Vec<_> = KEY.into_iter().chain(RRSA).collect();
        for (selection, wanted) in [
            ("environment", "the environment"),
            ("oidc", "the OIDC role acs:ram::1:role/r"),
            ("instance-role", "the instance's role"),
            ("directory", "error: --credentials directory requires --credentials-dir"),
        ] {
            assert_eq!(selected(&["--credentials", selection], &all), wanted);
        }
    }

    #[test]
    fn an_incomplete_oidc_role_names_the_missing_settings() {
        assert_eq!(
            selected(&[], &RRSA[1..2]),
            "error: an OIDC role also requires --oidc-role-arn and --oidc-token-file"
        );
    }

    #[test]
    fn a_role_set_by_flag_is_not_skipped() {
        assert_eq!(selected(&[], &[RRSA[0], NO_INSTANCE_ROLE]), "the environment");
        assert_eq!(
            selected(&["--oidc-role-arn=acs:ram::1:role/r"], &[]),
            "error: an OIDC role also requires --oidc-provider-arn and --oidc-token-file"
        );
    }

    #[test]
    fn a_role_can_be_assumed_with_any_source() {
        assert_eq!(
            selected(&["--assume-role-arn=acs:ram::2:role/other"], &KEY),
            "role acs:ram::2:role/other, assumed with the environment"
        );
    }
}
