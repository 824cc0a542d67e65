//! The credentials of a role: the flags, or the environment variables of the vendor's SDKs for unset flags.

mod select;

use ecs::credential::Environment;
use ecs::metadata::Metadata;
use ecs::{ServerClock, endpoint};

use crate::cli::{self, InvalidSettings, is_on, variable};
use crate::model::RegionId;
pub(crate) use select::Selected;
use select::{AssumeRole, Oidc, SelectError, Sources, select};

const SESSION: &str = "diskplugin";

/// The source that the flags and the environment describe.
pub(crate) fn selected(
    cloud: cli::CloudArgs,
    metadata: Metadata,
    region: &RegionId,
    clock: &ServerClock,
) -> anyhow::Result<Selected> {
    let flags = cloud.credentials;
    let oidc = Oidc {
        is_explicit: flags.oidc_role_arn.is_some(),
        role_arn: flags.oidc_role_arn.or_else(|| variable("ALIBABA_CLOUD_ROLE_ARN")),
        provider_arn: flags
            .oidc_provider_arn
            .or_else(|| variable("ALIBABA_CLOUD_OIDC_PROVIDER_ARN")),
        token_file: flags
            .oidc_token_file
            .or_else(|| variable("ALIBABA_CLOUD_OIDC_TOKEN_FILE").map(Into::into)),
    };
    let sts = || endpoint::sts_url(region, cloud.network);
    let sources = Sources {
        selection: flags.credentials,
        directory: flags.credentials_dir,
        environment: Environment::read(variable),
        oidc,
        metadata,
        instance_role: flags.instance_role.or_else(|| variable("ALIBABA_CLOUD_ECS_METADATA")),
        no_instance_role: is_on("ALIBABA_CLOUD_ECS_METADATA_DISABLED"),
        assume: flags.assume_role_arn.map(|role_arn| AssumeRole {
            role_arn,
            external_id: flags.assume_role_external_id,
        }),
        session_name: flags
            .role_session_name
            .or_else(|| variable("ALIBABA_CLOUD_ROLE_SESSION_NAME"))
            .unwrap_or_else(|| SESSION.to_owned()),
        duration: flags.role_duration,
        sts_endpoint: flags.sts_endpoint.unwrap_or_else(sts),
        scheme: cloud.signature,
    };
    select(sources, clock).map_err(|error| match error {
        SelectError::Setting(problem) => InvalidSettings(vec![problem]).into(),
        error @ (SelectError::Sts(_) | SelectError::Metadata(_)) => error.into(),
    })
}
