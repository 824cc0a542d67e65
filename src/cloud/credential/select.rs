//! Which source counts: the one that is chosen, else the first that is configured.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{
    AssumedRole, Cache, Directory, Environment, InstanceRole, OidcRole, Provide, RoleSession, Sts,
};
use crate::base::Clock;
use crate::cloud::metadata::{Metadata, MetadataError};
use crate::cloud::sign::Scheme;
use crate::cloud::transport::BuildError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Selection {
    /// The first of these that is configured
    #[default]
    Chain,
    /// The Secret directory of `--credentials-dir`
    Directory,
    /// The environment
    Environment,
    /// The role that an OIDC token assumes
    Oidc,
    /// The role of the instance, from its metadata service
    InstanceRole,
}

/// What is configured, whether it counts or not.
#[derive(Debug)]
pub struct Sources {
    /// Which one is wanted.
    pub selection: Selection,
    pub directory: Option<PathBuf>,
    /// Variables of the environment.
    pub environment: Environment,
    /// The service account's role.
    pub oidc: Oidc,
    /// The metadata service of this instance.
    pub metadata: Metadata,
    /// The instance's role; unset, the service is asked for it.
    pub instance_role: Option<String>,
    /// Whether the chain leaves out the instance's role.
    pub no_instance_role: bool,
    /// The role to assume with whatever was found.
    pub assume: Option<Assume>,
    /// What audit logs call this caller.
    pub session_name: String,
    /// How long credentials of a role are to be good.
    pub duration: Option<Duration>,
    /// URL of the Security Token Service.
    pub sts_endpoint: String,
    /// How requests to it are signed.
    pub scheme: Scheme,
}

/// A service account's role, in its three parts.
#[derive(Debug, Default)]
pub struct Oidc {
    pub role_arn: Option<String>,
    /// The identity provider that vouches for the token.
    pub provider_arn: Option<String>,
    /// The file that the cluster keeps the token in.
    pub token_file: Option<PathBuf>,
    /// Whether the role was set for this driver. The vendor's variable alone may be meant for something else.
    pub role_is_meant: bool,
}

/// A role to assume with other credentials.
#[derive(Debug)]
pub struct Assume {
    pub role_arn: String,
    /// What its trust policy may ask for.
    pub external_id: Option<String>,
}

#[derive(Debug)]
pub struct Selected {
    /// It.
    pub provider: Arc<dyn Provide>,
    /// What it is, for the log.
    pub source: String,
}

/// Settings that do not make a source.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    #[error("{0}")]
    Setting(String),
    /// The Security Token Service cannot be called.
    #[error("cannot call the Security Token Service")]
    Sts(#[from] BuildError),
    /// The metadata service cannot be called.
    #[error("cannot call the metadata service")]
    Metadata(#[from] MetadataError),
}

impl Oidc {
    fn is_configured(&self) -> bool {
        self.role_is_meant || self.provider_arn.is_some() || self.token_file.is_some()
    }

    /// The three parts, or a word about each that is missing.
    fn complete(self) -> Result<(String, String, PathBuf), SelectError> {
        match (self.role_arn, self.provider_arn, self.token_file) {
            (Some(role), Some(provider), Some(file)) => Ok((role, provider, file)),
            (role, provider, file) => {
                let missing = [
                    (role.is_none(), "--oidc-role-arn"),
                    (provider.is_none(), "--oidc-provider-arn"),
                    (file.is_none(), "--oidc-token-file"),
                ];
                let missing = missing.iter().filter(|(gone, _)| *gone);
                let missing: Vec<_> = missing.map(|(_, flag)| *flag).collect();
                Err(SelectError::Setting(format!(
                    "an OIDC role needs {} too",
                    missing.join(" and ")
                )))
            }
        }
    }
}

/// The source that counts, with a cache before whatever costs a call.
///
/// # Errors
/// When the chosen source is not configured, or only half of it.
pub fn select(sources: Sources, clock: &Arc<dyn Clock>) -> Result<Selected, SelectError> {
    let chosen = match sources.selection {
        Selection::Chain if sources.directory.is_some() => Selection::Directory,
        Selection::Chain if sources.environment.is_set() => Selection::Environment,
        Selection::Chain if sources.oidc.is_configured() => Selection::Oidc,
        Selection::Chain if sources.no_instance_role => Selection::Environment,
        Selection::Chain => Selection::InstanceRole,
        chosen => chosen,
    };
    let sts = || -> Result<Arc<Sts>, BuildError> {
        let sts = Sts::new(&sources.sts_endpoint, sources.scheme, Arc::clone(clock))?;
        Ok(Arc::new(sts))
    };
    let session = |role_arn: String, external_id| RoleSession {
        role_arn,
        name: sources.session_name.clone(),
        duration: sources.duration,
        external_id,
    };
    let cached = |source: Arc<dyn Provide>| -> Arc<dyn Provide> {
        Arc::new(Cache::new(source, Arc::clone(clock)))
    };
    let (provider, source): (Arc<dyn Provide>, String) = match chosen {
        Selection::Directory => {
            let directory = sources.directory.ok_or_else(|| {
                SelectError::Setting("--credentials directory needs --credentials-dir".to_owned())
            })?;
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
                role_is_meant: false,
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
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        match select(sources, &clock) {
            Ok(selected) => selected.source,
            Err(error) => format!("error: {error}"),
        }
    }

    const KEY: [(&str, &str); 2] = [("ACCESS_KEY_ID", "k"), ("ACCESS_KEY_SECRET", "s")];
    const RRSA: [(&str, &str); 3] = [
        ("ALIBABA_CLOUD_ROLE_ARN", "acs:ram::1:role/r"),
        (
            "ALIBABA_CLOUD_OIDC_PROVIDER_ARN",
            "acs:ram::1:oidc-provider/p",
        ),
        ("ALIBABA_CLOUD_OIDC_TOKEN_FILE", "/var/run/token"),
    ];

    #[test]
    fn the_chain_takes_the_first_that_is_configured() {
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
    fn each_source_can_be_chosen_alone() {
        let all: Vec<_> = KEY.into_iter().chain(RRSA).collect();
        for (selection, wanted) in [
            (Selection::Environment, "the environment"),
            (Selection::Oidc, "the OIDC role acs:ram::1:role/r"),
            (Selection::InstanceRole, "the instance's role"),
            (
                Selection::Directory,
                "error: --credentials directory needs --credentials-dir",
            ),
        ] {
            assert_eq!(selected(sources(selection, &all)), wanted);
        }
    }

    #[test]
    fn half_an_oidc_role_names_what_is_missing() {
        assert_eq!(
            selected(sources(Selection::Chain, &RRSA[1..2])),
            "error: an OIDC role needs --oidc-role-arn and --oidc-token-file too"
        );
    }

    #[test]
    fn a_role_that_was_set_for_this_driver_is_not_passed_over() {
        let arn = ("ALIBABA_CLOUD_ROLE_ARN", "acs:ram::1:role/r");
        let mut by_variable = sources(Selection::Chain, &[arn]);
        by_variable.no_instance_role = true;
        assert_eq!(selected(by_variable), "the environment");
        let mut by_flag = sources(Selection::Chain, &[arn]);
        by_flag.oidc.role_is_meant = true;
        assert_eq!(
            selected(by_flag),
            "error: an OIDC role needs --oidc-provider-arn and --oidc-token-file too"
        );
    }

    #[test]
    fn a_role_is_assumed_on_top_of_any() {
        let mut both = sources(Selection::Chain, &KEY);
        both.assume = Some(Assume {
            role_arn: "acs:ram::2:role/other".to_owned(),
            external_id: None,
        });
        assert_eq!(
            selected(both),
            "role acs:ram::2:role/other, assumed with the environment"
        );
    }
}
