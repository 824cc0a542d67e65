//! The cloud client of a role.

use std::sync::Arc;

use super::health::Access;
use crate::base::chain::chain;
use crate::base::{SystemClock, Tasks};
use crate::cli;
use crate::cloud::credential::{Provide, Selected};
use crate::cloud::endpoint::Network;
use crate::cloud::metadata::Metadata;
use crate::cloud::transport::{Settings, Transport};
use crate::cloud::{Client, Ecs, endpoint};
use crate::model::RegionId;

/// A client, and how it fares.
pub(crate) struct Connected {
    pub(crate) ecs: Arc<dyn Ecs>,
    pub(crate) access: Access,
}

impl Connected {
    fn new(transport: Transport, provider: Arc<dyn Provide>) -> Self {
        let client = Client::new(transport);
        Self {
            access: Access {
                standing: client.standing(),
                provider,
            },
            ecs: Arc::new(client),
        }
    }
}

/// The client that the flags describe. The credentials are tried beside, so that a service that does
/// not answer delays no start.
///
/// # Errors
/// When the endpoint is no URL, no TLS client can be had, or the settings of the credentials do not
/// suffice.
pub(crate) fn client(
    cloud: cli::Cloud,
    metadata: Metadata,
    region: &RegionId,
) -> anyhow::Result<Connected> {
    let network = cloud.network;
    let given = cloud.ecs_endpoint.clone();
    if given.is_none() && network == Network::Vpc && endpoint::has_one_host(region) {
        tracing::warn!(
            %region,
            "this region has one host for all networks; for another one set --ecs-endpoint"
        );
    }
    let endpoint = given.unwrap_or_else(|| endpoint::of_region(region, network));
    let scheme = cloud.signature;
    let Selected { provider, source } = super::credential::selected(cloud, metadata, region)?;
    tracing::info!(endpoint, signature = ?scheme, credentials = source, "calling the cloud");
    let tried = Arc::clone(&provider);
    // Tasks of their own: a shutdown need not wait for a service that does not answer.
    Tasks::default().start(async move {
        // A Secret may still come, so this ends nothing.
        if let Err(error) = tried.provide().await {
            tracing::warn!("every call of the cloud will fail: {}", chain(&error));
        }
    });
    let transport = Transport::new(Settings {
        endpoint,
        region: region.clone(),
        scheme,
        credentials: Arc::clone(&provider),
        clock: Arc::new(SystemClock),
    })?;
    Ok(Connected::new(transport, provider))
}

/// The client of an embedded fake cloud, on the same wire.
#[cfg(feature = "mock-cloud")]
pub(crate) fn fake_client(
    endpoint: &str,
    region: &RegionId,
    scheme: crate::cloud::sign::Scheme,
    options: &crate::sim::Options,
) -> anyhow::Result<Connected> {
    let provider: Arc<dyn Provide> = Arc::new(crate::cloud::credential::Credentials::new(
        options.access_key_id.expose(),
        options.access_key_secret.expose(),
    ));
    let transport = Transport::new(Settings {
        endpoint: endpoint.to_owned(),
        region: region.clone(),
        scheme,
        credentials: Arc::clone(&provider),
        clock: Arc::new(SystemClock),
    })?;
    Ok(Connected::new(transport, provider))
}
