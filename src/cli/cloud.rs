//! Flags of the cloud client.

use clap::Args;
use ecs::Trust;
use ecs::endpoint::Network;
use ecs::rate_limit::ConfiguredLimits;
use ecs::sign::Scheme;

use super::endpoint::Url;
use super::{CredentialArgs, InvalidSettings, rate_limits};

#[derive(Debug, Args)]
pub struct CloudArgs {
    /// URL of the ECS API. Default: the endpoint of the region.
    #[arg(long, env = "DISKPLUGIN_ECS_ENDPOINT", value_parser = Url)]
    pub ecs_endpoint: Option<String>,

    /// Network through which the API endpoint of the region is reached, unless --ecs-endpoint is set.
    #[arg(long, env = "DISKPLUGIN_NETWORK", value_enum, default_value_t)]
    pub network: Network,

    /// PEM file of authorities whose certificates are trusted in addition to those of the system: for the ECS API, the
    /// Security Token Service and an HTTPS proxy. A replaced file is used by the next connections.
    #[arg(long, env = "DISKPLUGIN_CA_BUNDLE", value_name = "FILE",
          value_parser = |file: &str| Trust::new(Some(file.into())))]
    pub ca_bundle: Option<Trust>,

    /// Signature version of cloud requests.
    #[arg(long, env = "DISKPLUGIN_SIGNATURE", value_enum, default_value_t)]
    pub signature: Scheme,

    /// The most calls per second of actions, or of all calls as account, such as DescribeDisks=5,account=20: for a
    /// quota that other programs of the account share. Default: only the quotas that throttling errors show.
    #[arg(long, env = "DISKPLUGIN_RATE_LIMITS", value_name = "ACTION=RATE", value_delimiter = ',',
          value_parser = rate_limits::rate_limit)]
    pub rate_limits: Vec<(&'static str, f64)>,

    #[command(flatten)]
    pub credentials: CredentialArgs,
}

impl CloudArgs {
    /// The configured limits.
    ///
    /// # Errors
    /// An action has two limits.
    pub fn limits(&self) -> Result<ConfiguredLimits, InvalidSettings> {
        let mut by_action = ConfiguredLimits::new();
        for (action, rate) in &self.rate_limits {
            if by_action.insert(action, *rate).is_some() {
                let problem = format!("--rate-limits has several limits of {action}; allowed: one of each action");
                return Err(InvalidSettings::one(problem));
            }
        }
        Ok(by_action)
    }
}
