//! `diskplugin controller`: the Deployment's container.

use std::sync::Arc;

use super::cloud::Connected;
use super::health::Health;
use super::place::Whereabouts;
use super::{cloud, cluster, http, signal, types};
use crate::base::Tasks;
use crate::cli;
use crate::cloud::Ecs;
use crate::csi::controller::{Service, Settings};
use crate::csi::server::{self, Services};
use crate::disk::DiskServices;
use crate::model::{ClusterId, RegionId, ZoneId};

pub(crate) async fn run(args: cli::Controller) -> anyhow::Result<()> {
    let stop = signal::stop()?;
    let mut where_is = Whereabouts::new(&args.place);
    let metadata = args.place.metadata()?;
    let region = where_is.region(args.place.region.clone()).await;
    let zone = where_is.default_zone(args.place.zone.clone()).await;
    let cluster = owner(args.owner, &mut where_is);
    let (Some(region), Some(cluster)) = (region, cluster) else {
        return Err(where_is.check().into());
    };
    let serve = args.serve;
    let listener = http::bind(serve.http_address).await?;
    let Connected { ecs, access } = cloud::client(args.cloud, metadata, &region)?;
    let tasks = Tasks::default();
    let disks = disks(ecs, cluster.clone(), &tasks);
    if let Some(file) = args.publish_instance_types {
        types::publish(Arc::clone(&disks), file);
    }
    let events = cluster::start(args.kubernetes, &serve.driver_name, &disks).await?;
    let controller = service(disks, region, zone, &cluster, &tasks).with_events(events);
    let services = Services {
        name: serve.driver_name,
        controller: Some(controller),
        node: None,
        registration: None,
    };
    let health = Health {
        endpoint: serve.endpoint.clone(),
        cloud: Some(access),
        node: None,
        shared: false,
        registration: None,
    };
    tokio::select! {
        served = server::serve(&serve.endpoint, services, tasks, stop, serve.drain_timeout) => Ok(served?),
        never = http::serve(listener, health) => match never {},
    }
}

/// The cluster id, which has no default: two clusters with the same one would see each other's disks
/// as their own.
pub(crate) fn owner(owner: cli::Owner, problems: &mut Whereabouts<'_>) -> Option<ClusterId> {
    if owner.cluster_id.is_none() {
        problems.problem(
            "--cluster-id is not set: name this cluster, unlike any other of the account; its disks \
             are known by it",
        );
    }
    owner.cluster_id
}

/// The verbs over this cloud.
pub(crate) fn disks(ecs: Arc<dyn Ecs>, cluster: ClusterId, tasks: &Tasks) -> Arc<DiskServices> {
    let disks = DiskServices::new(ecs, cluster, tasks);
    disks.provisioner.list_owned();
    Arc::new(disks)
}

/// The Controller service over these verbs.
pub(crate) fn service(
    disks: Arc<DiskServices>,
    region: RegionId,
    zone: Option<ZoneId>,
    cluster: &ClusterId,
    tasks: &Tasks,
) -> Service {
    let default_zone = zone.as_ref().map(ZoneId::as_str);
    tracing::info!(%region, default_zone, %cluster, "handling the disks of this cluster");
    Service::new(disks, Settings { region, zone }, tasks.clone())
}
