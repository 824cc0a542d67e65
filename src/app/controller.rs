//! The role of the controller, in the Deployment.

use std::sync::Arc;
use std::time::Duration;

use super::cloud::CloudClient;
use super::config::Reload;
use super::health::Health;
use super::http::{CloudDisks, Page, Site};
use super::location::Location;
use super::metrics::{ControllerGauges, InventoryMetrics, Metrics, OrphanMetrics};
use super::status::StatusPage;
use super::telemetry::Telemetry;
use super::{cloud, cluster, http, metrics, signal};
use crate::base::Tasks;
use crate::cli::{self, ConfigFile};
use crate::cloud::EcsApi;
use crate::csi::controller::{Service, Settings};
use crate::csi::server;
use crate::csi::services::Services;
use crate::disk::DiskServices;
use crate::model::{ClusterId, RegionId, ZoneId};

pub(crate) async fn run(
    args: cli::Controller,
    config: Option<ConfigFile>,
    telemetry: Telemetry,
) -> anyhow::Result<()> {
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
    let port = http::bind(&server.http).await?;
    let authorizer = http::authorizer(&args.pages).await?;
    let CloudClient { ecs, access, .. } = cloud::client(args.cloud, metadata, &region)?;
    let tasks = Tasks::default();
    let disks = disks(ecs, cluster.clone(), &tasks);
    let orphans = OrphanMetrics::default();
    let driver = &server.driver.driver_name;
    let (events, nodes) =
        cluster::start(args.kubernetes, driver, &cluster, &disks, &orphans).await?;
    let interval = args.metrics_inventory_interval.0;
    let inventory = inventory(&disks, interval.filter(|_| port.is_some()));
    let status = args.pages.status_page.then(|| -> Box<dyn Page> {
        Box::new(StatusPage::new(
            "controller",
            Arc::clone(&disks),
            access.clone(),
            inventory.clone(),
        ))
    });
    let gauges = ControllerGauges::new(Arc::clone(&disks), access.clone(), inventory);
    let cloud_disks = CloudDisks(Arc::clone(&disks));
    let controller = service(disks, region, zone, &cluster, &tasks)
        .with_events(events)
        .with_nodes(nodes)
        .with_published_nodes(args.list_volumes_published_nodes);
    let services = Services::new(server.driver.driver_name).with_controller(controller);
    let reload = Reload {
        log: telemetry.log.clone(),
        rate_limiter: Some(Arc::clone(&access.rate_limiter)),
    };
    let metrics = Metrics::new("controller", &telemetry.metrics, vec![Box::new(gauges)]);
    let site = Site {
        metrics: metrics
            .with_config(reload.start(config))
            .with_orphans(&orphans),
        telemetry,
        status,
        disks: Some(Box::new(cloud_disks)),
        authorizer,
        pages: http::page_limit(),
        health: Health {
            endpoint: server.endpoint.clone(),
            cloud: Some(access),
            node: None,
            registration: None,
        },
    };
    tokio::select! {
        served = server::serve(&server.endpoint, services, tasks, stop, server.drain_timeout) => Ok(served?),
        never = http::serve(port, site) => match never {},
    }
}

/// The volumes of the cluster, listed with this interval, if any.
pub(crate) fn inventory(disks: &Arc<DiskServices>, interval: Option<Duration>) -> InventoryMetrics {
    let inventory = InventoryMetrics::default();
    if let Some(interval) = interval {
        let refresh = metrics::refresh(inventory.clone(), Arc::clone(disks), interval);
        // Separate tasks: shutdown does not wait for it.
        Tasks::default().spawn(refresh);
    }
    inventory
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
