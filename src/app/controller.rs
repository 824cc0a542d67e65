//! `diskplugin controller`, the container of the Deployment.

use std::sync::Arc;

use super::cloud::CloudClient;
use super::health::Health;
use super::location::Location;
use super::{cloud, cluster, http, signal};
use crate::base::Tasks;
use crate::cli;
use crate::cloud::EcsApi;
use crate::csi::controller::{Service, Settings};
use crate::csi::server::{self, Services};
use crate::disk::DiskServices;
use crate::model::{ClusterId, RegionId, ZoneId};

pub(crate) async fn run(args: cli::Controller) -> anyhow::Result<()> {
    let stop = signal::stop()?;
    let mut location = Location::new(&args.location);
    let metadata = args.location.metadata()?;
    let region = location.region(args.location.region.clone()).await;
    let zone = location.default_zone(args.location.zone.clone()).await;
    let cluster = owner(args.owner, &mut location);
    let (Some(region), Some(cluster)) = (region, cluster) else {
        return Err(location.into_error().into());
    };
    let server = args.server;
    let listener = http::bind(server.http_address).await?;
    let CloudClient { ecs, access } = cloud::client(args.cloud, metadata, &region)?;
    let tasks = Tasks::default();
    let disks = disks(ecs, cluster.clone(), &tasks);
    let events = cluster::start(args.kubernetes, &server.driver_name, &disks).await?;
    let controller = service(disks, region, zone, &cluster, &tasks).with_events(events);
    let services = Services {
        name: server.driver_name,
        controller: Some(controller),
        node: None,
        registration: None,
    };
    let health = Health {
        endpoint: server.endpoint.clone(),
        cloud: Some(access),
        node: None,
        registration: None,
    };
    tokio::select! {
        served = server::serve(&server.endpoint, services, tasks, stop, server.drain_timeout) => Ok(served?),
        never = http::serve(listener, health) => match never {},
    }
}

/// The cluster ID, which has no default: two clusters with the same ID would own each other's disks.
pub(crate) fn owner(owner: cli::OwnerArgs, problems: &mut Location<'_>) -> Option<ClusterId> {
    if owner.cluster_id.is_none() {
        problems.problem(
            "--cluster-id is not set: set an ID that is unique in the account; the disks of this cluster are \
             tagged with it",
        );
    }
    owner.cluster_id
}

/// The disk services on this cloud.
pub(crate) fn disks(ecs: Arc<dyn EcsApi>, cluster: ClusterId, tasks: &Tasks) -> Arc<DiskServices> {
    let disks = DiskServices::new(ecs, cluster, tasks);
    disks.provisioner.list_owned();
    Arc::new(disks)
}

pub(crate) fn service(
    disks: Arc<DiskServices>,
    region: RegionId,
    zone: Option<ZoneId>,
    cluster: &ClusterId,
    tasks: &Tasks,
) -> Service {
    let default_zone = zone.as_ref().map(ZoneId::as_str);
    tracing::info!(%region, default_zone, %cluster, "managing the disks of this cluster");
    Service::new(disks, Settings { region, zone }, tasks.clone())
}
