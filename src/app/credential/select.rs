//! Selects the credential source: the configured one, or the first of the chain that is configured.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ecs::ServerClock;
use ecs::credential::{
    AssumedRole, Cache, CredentialProvider, Directory, Environment, InstanceRole, OidcRole, RoleSession, Sts,
};
use ecs::metadata::{Metadata, MetadataError};
use ecs::server::BuildError;
use ecs::sign::Scheme;

use crate::cli::Selection;

/// The configuration of all sources, including those that are not selected.
#[derive(Debug)]
pub(super) struct Sources {
    pub selection: Selection,
    pub directory: Option<PathBuf>,
    pub environment: Environment,
    pub oidc: Oidc,
    pub metadata: Metadata,
    /// The name of the instance's role; none is the role that the metadata service lists.
    pub instance_role: Option<String>,
    /// Whether the chain excludes the instance's role.
    pub no_instance_role: bool,
    /// The role to assume with the credentials of the source.
    pub assume: Option<AssumeRole>,
    /// The `RoleSessionName`, which appears in audit logs.
    pub session_name: String,
    /// The `DurationSeconds` of role credentials.
    pub duration: Option<Duration>,
    /// The URL of the Security Token Service.
    pub sts_endpoint: String,
    /// The signature of requests to the Security Token Service.
    pub scheme: Scheme,
}

/// The role of a service account (RRSA).
#[derive(Debug, Default)]
pub(super) struct Oidc {
    pub role_arn: Option<String>,
    /// The OIDC identity provider of the cluster.
    pub provider_arn: Option<String>,
    /// The projected service account token.
    pub token_file: Option<PathBuf>,
    /// Whether the role was set by a flag. The vendor's variable alone may be intended for other software.
    pub is_explicit: bool,
}

/// A role to assume with other credentials.
#[derive(Debug)]
pub(super) struct AssumeRole {
    pub role_arn: String,
    /// The external ID that the trust policy may require.
    pub external_id: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Selected {
    pub provider: Arc<dyn CredentialProvider>,
    /// The description of the source for the log.
    pub source: String,
}

/// Errors of the credential settings.
#[derive(Debug, thiserror::Error)]
pub(super) enum SelectError {
    #[error("{0}")]
    Setting(String),
    #[error("cannot call the Security Token Service")]
    Sts(#[from] BuildError),
    #[error("cannot call the metadata service")]
    Metadata(#[from] MetadataError),
}

impl Oidc {
    fn is_configured(&self) -> bool {
        self.is_explicit || self.provider_arn.is_some() || self.token_file.is_some()
    }

    /// The three settings, or an error that names the missing ones.
    fn complete(self) -> Result<(String, String, PathBuf), SelectError> {
        match (self.role_arn, self.provider_arn, self.token_file) {
            (Some(role), Some(provider), Some(file)) => Ok((role, provider, file)),
            (role, provider, file) => {
                let missing = [
                    (role.is_none(), "--oidc-role-arn"),
                    (provider.is_none(), "--oidc-provider-arn"),
                    (file.is_none(), "--oidc-token-file"),
                ];
                let missing = missing.iter().filter(|(is_missing, _)| *is_missing);
                let missing: Vec<_> = missing.map(|(_, flag)| *flag).collect();
                Err(SelectError::Setting(format!(
                    "an OIDC role also requires {}",
                    missing.join(" and ")
                )))
            }
        }
    }
}

/// The selected source. Sources that make calls are cached. The time of the cloud determines when credentials expire.
pub(super) fn select(sources: Sources, clock: &ServerClock) -> Result<Selected, SelectError> {
    let chosen = match sources.selection {
        Selection::Chain if sources.directory.is_some() => Selection::Directory,
        Selection::Chain if sources.environment.is_set() => Selection::Environment,
        Selection::Chain if sources.oidc.is_configured() => Selection::Oidc,
        Selection::Chain if sources.no_instance_role => Selection::Environment,
        Selection::Chain => Selection::InstanceRole,
        chosen => chosen,
    };
    let sts = || -> Result<Arc<Sts>, BuildError> {
        let sts = Sts::new(&sources.sts_endpoint, sources.scheme, clock.clone())?;
        Ok(Arc::new(sts))
    };
    let session = |role_arn: String, external_id| RoleSession {
        role_arn,
        name: sources.session_name.clone(),
        duration: sources.duration,
        external_id,
    };
    let cached = |source: Arc<dyn CredentialProvider>| -> Arc<dyn CredentialProvider> {
        Arc::new(Cache::new(source, Arc::new(clock.clone())))
    };
    let (provider, source): (Arc<dyn CredentialProvider>, String) = match chosen {
        Selection::Directory => {
            let directory = sources
                .directory
                .ok_or_else(|| SelectError::Setting("--credentials directory requires --credentials-dir".to_owned()))?;
            let source = format!("the Secret directory {}", directory.display());
            (Arc::new(Directory::new(directory)), source)
        }
        Selection::Chain | Selection::Environment => {
            let environment = Arc::new(sources.environment);
            (environment, "the environment".to_owned())
        }
        Selection::Oidc => {
            let (role, provider, file) = sources.oidc.complete()?;
            let source = format!("the OIDC role {role}");
            let role = OidcRole::new(sts()?, provider, file, session(role, None));
            (cached(Arc::new(role)), source)
        }
        Selection::InstanceRole => {
            let source = match &sources.instance_role {
                Some(role) => format!("the instance role {role}"),
                None => "the instance's role".to_owned(),
            };
            let last_resort = sources.selection == Selection::Chain;
            let role = InstanceRole::new(sources.metadata, sources.instance_role, last_resort);
            (cached(Arc::new(role)), source)
        }
    };
    let Some(assume) = sources.assume else {
        return Ok(Selected { provider, source });
    };
    let source = format!("role {}, assumed with {source}", assume.role_arn);
    let role = session(assume.role_arn, assume.external_id);
    let role = AssumedRole::new(provider, sts()?, role);
    Ok(Selected {
        provider: cached(Arc::new(role)),
        source,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::base::SystemClock;

    fn sources(selection: Selection, variables: &[(&str, &str)]) -> Sources {
        let map: HashMap<String, String> = variables
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        let lookup = |name: &str| map.get(name).cloned();
        Sources {
            selection,
            directory: None,
            environment: Environment::read(lookup),
            oidc: Oidc {
                role_arn: lookup("ALIBABA_CLOUD_ROLE_ARN"),
                provider_arn: lookup("ALIBABA_CLOUD_OIDC_PROVIDER_ARN"),
                token_file: lookup("ALIBABA_CLOUD_OIDC_TOKEN_FILE").map(PathBuf::from),
                is_explicit: false,
            },
            metadata: Metadata::new("http://127.0.0.1:9", true).unwrap(),
            instance_role: None,
            no_instance_role: false,
            assume: None,
            session_name: "diskplugin".to_owned(),
            duration: None,
            sts_endpoint: "http://127.0.0.1:9".to_owned(),
            scheme: Scheme::V1,
        }
    }

    fn selected(sources: Sources) -> String {
        let clock = ServerClock::new(Arc::new(SystemClock));
        match select(sources, &clock) {
            Ok(selected) => selected.source,
            Err(error) => format!("error: {error}"),
        }
    }

    const KEY: [(&str, &str); 2] = [("ACCESS_KEY_ID", "k"), ("ACCESS_KEY_SECRET", "s")];
    const RRSA: [(&str, &str); 3] = [
        ("ALIBABA_CLOUD_ROLE_ARN", "acs:ram::1:role/r"),
        ("ALIBABA_CLOUD_OIDC_PROVIDER_ARN", "acs:ram::1:oidc-provider/p"),
        ("ALIBABA_CLOUD_OIDC_TOKEN_FILE", "/var/run/token"),
    ];

    #[test]
    fn the_chain_selects_the_first_configured_source() {
        let all: Vec<_> = KEY.into_iter().chain(RRSA).collect();
        let mut everything = sources(Selection::Chain, &all);
        everything.directory = Some("/secret".into());
        assert_eq!(selected(everything), "the Secret directory /secret");
        let chain = |variables| selected(sources(Selection::Chain, variables));
        assert_eq!(chain(&all), "the environment");
        assert_eq!(chain(&RRSA), "the OIDC role acs:ram::1:role/r");
        assert_eq!(chain(&[RRSA[0]]), "the instance's role");
        assert_eq!(chain(&[]), "the instance's role");
        let mut nothing = sources(Selection::Chain, &[]);
        nothing.no_instance_role = true;
        assert_eq!(selected(nothing), "the environment");
    }

    #[test]
    fn each_source_can_be_selected() {
        let all: Vec<_> = KEY.into_iter().chain(RRSA).collect();
        for (selection, wanted) in [
            (Selection::Environment, "the environment"),
            (Selection::Oidc, "the OIDC role acs:ram::1:role/r"),
            (Selection::InstanceRole, "the instance's role"),
            (
                Selection::Directory,
                "error: --credentials directory requires --credentials-dir",
            ),
        ] {
            assert_eq!(selected(sources(selection, &all)), wanted);
        }
    }

    #[test]
    fn an_incomplete_oidc_role_names_the_missing_settings() {
        assert_eq!(
            selected(sources(Selection::Chain, &RRSA[1..2])),
            "error: an OIDC role also requires --oidc-role-arn and --oidc-token-file"
        );
    }

    #[test]
    fn a_role_set_by_flag_is_not_skipped() {
        let arn = ("ALIBABA_CLOUD_ROLE_ARN", "acs:ram::1:role/r");
        let mut by_variable = sources(Selection::Chain, &[arn]);
        by_variable.no_instance_role = true;
        assert_eq!(selected(by_variable), "the environment");
        let mut by_flag = sources(Selection::Chain, &[arn]);
        by_flag.oidc.is_explicit = true;
        assert_eq!(
            selected(by_flag),
            "error: an OIDC role also requires --oidc-provider-arn and --oidc-token-file"
        );
    }

    #[test]
    fn a_role_can_be_assumed_with_any_source() {
        let mut both = sources(Selection::Chain, &KEY);
        both.assume = Some(AssumeRole {
            role_arn: "acs:ram::2:role/other".to_owned(),
            external_id: None,
        });
        assert_eq!(
            selected(both),
            "role acs:ram::2:role/other, assumed with the environment"
        );
    }
}
