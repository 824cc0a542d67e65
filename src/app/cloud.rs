//! The cloud client of a role.

use std::sync::Arc;

use ecs::credential::CredentialProvider;
use ecs::endpoint::Network;
use ecs::metadata::Metadata;
use ecs::server::Server;
use ecs::sign::Scheme;
use ecs::{Client, ServerClock, Settings, endpoint};

use super::credential::{Selected, select};
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
    let server = endpoint.parse::<Server>()?.with_trust(cloud.ca_bundle.clone());
    let scheme = cloud.signature;
    let limits = cloud.limits()?;
    let clock = ServerClock::new(Arc::new(SystemClock));
    let Selected { provider, source } = select(cloud, metadata, region, &clock, cli::variable)?;
    tracing::info!(endpoint, signature = ?scheme, credentials = source, "calling the cloud");
    let first = Arc::clone(&provider);
    // Separate tasks: shutdown does not wait for an unresponsive service.
    Tasks::default().spawn(async move {
        // Not fatal: the Secret may be created later.
        if let Err(error) = first.provide().await {
            tracing::warn!("no credentials, every cloud call will fail: {}", error_chain(&error));
        }
    });
    let client = connect(server, region, scheme, provider, clock)?;
    client.ecs.rate_limiter().configure(limits);
    Ok(client)
}

/// The client of an embedded fake cloud, through the same wire format.
#[cfg(feature = "mock-cloud")]
pub(crate) fn fake_client(fake: &fake_ecs::Cloud, region: &RegionId, scheme: Scheme) -> anyhow::Result<CloudClient> {
    let (id, secret) = fake.access_key();
    let endpoint = anyhow::Context::context(fake.endpoint(), "the fake cloud serves no HTTP")?;
    let credentials = Arc::new(ecs::credential::Credentials::new(id, secret));
    let clock = ServerClock::new(Arc::new(SystemClock));
    connect(endpoint.parse()?, region, scheme, credentials, clock)
}

fn connect(
    server: Server,
    region: &RegionId,
    scheme: Scheme,
    credentials: Arc<dyn CredentialProvider>,
    clock: ServerClock,
) -> anyhow::Result<CloudClient> {
    let client = Client::new(Settings {
        server,
        region: region.clone(),
        scheme,
        credentials: Arc::clone(&credentials),
        clock,
    })?;
    Ok(CloudClient {
        ecs: Arc::new(client),
        credentials,
    })
}
