//! The cloud client of a role.

use std::sync::Arc;

use crate::base::SystemClock;
use crate::base::chain::chain;
use crate::cli;
use crate::cloud::credential::{Chain, Directory, Environment, Provide};
use crate::cloud::transport::{Settings, Transport};
use crate::cloud::{Client, Ecs, endpoint};
use crate::model::RegionId;

/// The client that the flags describe.
///
/// # Errors
/// When the endpoint is no URL, or no TLS client can be had.
pub(crate) async fn client(cloud: &cli::Cloud, region: &RegionId) -> anyhow::Result<Arc<dyn Ecs>> {
    let endpoint = cloud
        .ecs_endpoint
        .clone()
        .unwrap_or_else(|| endpoint::of_region(region, cloud.network));
    tracing::info!(endpoint, signature = ?cloud.signature, "calling the cloud");
    let credentials = credentials(cloud);
    // A Secret may still come, so this ends nothing.
    if let Err(error) = credentials.provide().await {
        tracing::warn!("every call of the cloud will fail: {}", chain(&error));
    }
    let transport = Transport::new(Settings {
        endpoint,
        region: region.clone(),
        scheme: cloud.signature,
        credentials,
        clock: Arc::new(SystemClock),
    })?;
    Ok(Arc::new(Client::new(transport)))
}

/// The client of an embedded fake cloud, on the same wire.
#[cfg(feature = "mock-cloud")]
pub(crate) fn fake_client(
    endpoint: &str,
    region: &RegionId,
    scheme: crate::cloud::sign::Scheme,
    options: &crate::sim::Options,
) -> anyhow::Result<Arc<dyn Ecs>> {
    use crate::cloud::credential::{Credentials, Fixed};
    let key = Credentials::new(
        options.access_key_id.expose(),
        options.access_key_secret.expose(),
    );
    let transport = Transport::new(Settings {
        endpoint: endpoint.to_owned(),
        region: region.clone(),
        scheme,
        credentials: Arc::new(Fixed(key)),
        clock: Arc::new(SystemClock),
    })?;
    Ok(Arc::new(Client::new(transport)))
}

/// The Secret directory alone where it is named, else the environment.
fn credentials(cloud: &cli::Cloud) -> Arc<dyn Provide> {
    let source: Arc<dyn Provide> = match &cloud.credentials_dir {
        Some(directory) => Arc::new(Directory::new(directory)),
        None => Arc::new(Environment::read(|name| std::env::var(name).ok())),
    };
    Arc::new(Chain::new(vec![source]))
}
