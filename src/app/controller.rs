//! `diskplugin controller`: the Deployment's container.

use std::sync::Arc;

use super::place::Whereabouts;
use super::{cloud, signal};
use crate::base::Tasks;
use crate::cli;
use crate::cloud::Ecs;
use crate::cloud::poll::Pace;
use crate::csi::controller::{Service, Settings};
use crate::csi::server::{self, Services};
use crate::disk::Disks;
use crate::model::{ClusterId, RegionId, ZoneId};

pub(crate) async fn run(args: cli::Controller) -> anyhow::Result<()> {
    let stop = signal::stop()?;
    let mut where_is = Whereabouts::new(&args.place)?;
    let metadata = args.place.metadata()?;
    let region = where_is.region(args.place.region).await;
    let zone = where_is.default_zone(args.place.zone).await;
    let cluster = owner(args.owner, &mut where_is);
    let (Some(region), Some(cluster)) = (region, cluster) else {
        return Err(where_is.check().into());
    };
    let ecs = cloud::client(args.cloud, metadata, &region)?;
    let tasks = Tasks::default();
    let controller = service(ecs, region, zone, cluster, &tasks);
    let services = Services {
        controller: Some(controller),
        node: None,
    };
    let serve = args.serve;
    server::serve(&serve.endpoint, services, tasks, stop, serve.drain_timeout).await?;
    Ok(())
}

/// The cluster id, which has no default: two clusters with the same one would see each other's disks
/// as their own.
pub(crate) fn owner(owner: cli::Owner, problems: &mut Whereabouts) -> Option<ClusterId> {
    if owner.cluster_id.is_none() {
        problems.problem(
            "--cluster-id is not set: name this cluster, unlike any other of the account; its disks \
             are known by it",
        );
    }
    owner.cluster_id
}

/// The Controller service over this cloud.
pub(crate) fn service(
    ecs: Arc<dyn Ecs>,
    region: RegionId,
    zone: Option<ZoneId>,
    cluster: ClusterId,
    tasks: &Tasks,
) -> Service {
    let default_zone = zone.as_ref().map(ZoneId::as_str);
    tracing::info!(%region, default_zone, %cluster, "handling the disks of this cluster");
    let disks = Arc::new(Disks::new(ecs, cluster, tasks, Pace::default()));
    Service::new(disks, Settings { region, zone }, tasks.clone())
}
