//! The cloud client of a role.

use std::sync::Arc;

use ecs::endpoint::Network;
use ecs::metadata::Metadata;
use ecs::{Client, ServerClock, Settings, endpoint};

use super::credential::Selected;
use crate::base::error_chain;
use crate::base::{SystemClock, Tasks};
use crate::cli;
use crate::model::RegionId;
use crate::ops::CloudClient;

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
    client.rate_limiter().configure(limits);
    Ok(CloudClient {
        ecs: Arc::new(client),
        credentials: provider,
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
    let provider: Arc<dyn ecs::credential::CredentialProvider> = Arc::new(ecs::credential::Credentials::new(
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
    Ok(CloudClient {
        ecs: Arc::new(client),
        credentials: provider,
    })
}
