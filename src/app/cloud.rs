//! The cloud client of a role.

use std::sync::Arc;

use ecs::credential::CredentialProvider;
use ecs::endpoint::Network;
use ecs::metadata::Metadata;
use ecs::{Client, ServerClock, Settings, endpoint};

use super::credential::Selected;
use crate::base::error_chain;
use crate::base::{SystemClock, Tasks};
use crate::cli;
use crate::http::health::CloudAccess;
use crate::model::RegionId;
use crate::ops;

/// A client with its health.
pub(crate) struct CloudClient {
    pub(crate) ecs: Arc<Client>,
    pub(crate) access: CloudAccess,
    pub(crate) server_clock: ServerClock,
}

impl CloudClient {
    fn new(client: Client, provider: Arc<dyn CredentialProvider>) -> Self {
        Self {
            access: CloudAccess {
                api_health: client.api_health(),
                rate_limiter: client.rate_limiter(),
                provider,
                clock: Arc::new(client.server_clock()),
            },
            server_clock: client.server_clock(),
            ecs: Arc::new(client),
        }
    }
}

/// The client that the flags describe. The credentials are requested in the background, without delaying the start.
pub(crate) fn client(cloud: cli::CloudArgs, metadata: Metadata, region: &RegionId) -> anyhow::Result<CloudClient> {
    let network = cloud.network;
    let given = cloud.ecs_endpoint.clone();
    if given.is_none() && network == Network::Vpc && endpoint::has_single_host(region) {
        tracing::warn!(
            %region,
            "this region has a single endpoint for all networks; set --ecs-endpoint to use another"
        );
    }
    let endpoint = given.unwrap_or_else(|| endpoint::ecs_url(region, network));
    let scheme = cloud.signature;
    let limits = cloud.limits()?;
    let clock = ServerClock::new(Arc::new(SystemClock));
    let Selected { provider, source } = super::credential::selected(cloud, metadata, region, &clock)?;
    tracing::info!(endpoint, signature = ?scheme, credentials = source, "calling the cloud");
    let first = Arc::clone(&provider);
    // Separate tasks: shutdown does not wait for an unresponsive service.
    Tasks::default().spawn(async move {
        // Not fatal: the Secret may be created later.
        if let Err(error) = first.provide().await {
            tracing::warn!("no credentials, every cloud call will fail: {}", error_chain(&error));
        }
    });
    let client = Client::new(Settings {
        server: endpoint.parse()?,
        region: region.clone(),
        scheme,
        credentials: Arc::clone(&provider),
        clock,
    })?;
    let client = CloudClient::new(client, provider);
    client.access.rate_limiter.configure(limits);
    Ok(client)
}

/// The client of a command of operators.
pub(crate) fn for_command(
    cloud: cli::CloudArgs,
    metadata: Metadata,
    region: &RegionId,
) -> anyhow::Result<ops::CloudClient> {
    let client = client(cloud, metadata, region)?;
    Ok(ops::CloudClient {
        ecs: client.ecs,
        credentials: client.access.provider,
        clock: client.server_clock,
    })
}

/// The client of an embedded fake cloud, through the same wire format.
#[cfg(feature = "mock-cloud")]
pub(crate) fn fake_client(
    endpoint: &str,
    region: &RegionId,
    scheme: ecs::sign::Scheme,
    options: &fake_ecs::Options,
) -> anyhow::Result<CloudClient> {
    let provider: Arc<dyn CredentialProvider> = Arc::new(ecs::credential::Credentials::new(
        options.access_key_id.expose(),
        options.access_key_secret.expose(),
    ));
    let client = Client::new(Settings {
        server: endpoint.parse()?,
        region: region.clone(),
        scheme,
        credentials: Arc::clone(&provider),
        clock: ServerClock::new(Arc::new(SystemClock)),
    })?;
    Ok(CloudClient::new(client, provider))
}
