//! The role of the controller, in the Deployment.

use std::sync::Arc;
use std::time::Duration;

use ecs::Client;
use tokio::sync::oneshot;

use super::{cloud, cluster, http, signal};
use crate::base::Tasks;
use crate::cli::{self, Location};
use crate::cluster::lease::Candidate;
use crate::csi::controller::{DriverLocation, Service};
use crate::csi::services::Services;
use crate::csi::{server, socket};
use crate::disk::DiskServices;
use crate::http::health::{CloudAccess, Health};
use crate::http::metrics::{ControllerGauges, Gauges, InventoryMetrics, LeaderGauge, Metrics, OrphanMetrics, refresh};
use crate::http::status::StatusPage;
use crate::http::{Site, serve};
use crate::model::{ClusterId, RegionId, ZoneId};
use crate::ops::CloudClient;
use crate::telemetry::Telemetry;

pub(crate) async fn run(args: cli::Controller, telemetry: Telemetry) -> anyhow::Result<()> {
    let (kubernetes, args) = (args.kubernetes, args.common);
    let stop = signal::stop()?;
    let mut location = Location::new(&args.location);
    let metadata = args.location.metadata()?;
    let region = location.region().await;
    let zone = location.default_zone().await;
    let cluster = args.owner.id(&mut location);
    let (Some(region), Some(cluster)) = (region, cluster) else {
        return Err(location.into_error().into());
    };
    let server = args.server;
    let driver = server.driver.driver_name;
    let port = http::port(&server.http).await?;
    let authorizer = http::authorizer(&args.pages).await?;
    let CloudClient { ecs, credentials } = cloud::client(args.cloud, metadata, &region)?;
    let access = CloudAccess::new(&ecs, credentials);
    let api_server = cluster::connect(&kubernetes).await?;
    let election = &kubernetes.leader_election;
    let standby = election.standby_socket.then(|| driver.clone());
    let candidate = cluster::candidate(election, api_server.as_ref(), &driver)?;
    if candidate.is_some() && standby.is_none() {
        socket::remove_stale(&server.endpoint).await?;
    }
    let leadership = candidate.as_ref().map(Candidate::leadership);
    let site = |mut gauges: Vec<Box<dyn Gauges>>| {
        if let Some(leadership) = leadership.clone() {
            gauges.push(Box::new(LeaderGauge(leadership)));
        }
        Site {
            metrics: Metrics::new("controller", &telemetry.metrics, gauges),
            telemetry: telemetry.clone(),
            status: None,
            disks: None,
            authorizer: Arc::clone(&authorizer),
            health: Health {
                cloud: Some(access.clone()),
                leadership: leadership.clone(),
                ..Health::new(server.endpoint.clone())
            },
        }
    };
    let tasks = Tasks::default();
    let (activate, active) = oneshot::channel();
    let services = async {
        match active.await {
            Ok(services) => services,
            // Never: it is sent below.
            Err(_) => std::future::pending().await,
        }
    };
    let (endpoint, grace) = (&server.endpoint, server.drain_timeout);
    let served = server::serve_when_active(endpoint, services, standby, tasks.clone(), stop, grace);
    let mut served = Box::pin(served);
    let mut lease = None;
    if let Some(candidate) = candidate {
        let site = site(Vec::new());
        tokio::select! {
            served = &mut served => return Ok(served?),
            held = candidate.acquire() => lease = Some(held),
            never = serve(port.as_ref(), site) => match never {},
        }
    }

    // Services that keep requests in memory are created only in the active process.
    let disks = disks(ecs, cluster.clone(), &tasks);
    let orphans = OrphanMetrics::default();
    let (events, nodes) = cluster::start(kubernetes, api_server, &driver, &cluster, &disks, &orphans);
    let interval = args.controller.metrics_inventory_interval.0;
    let interval = interval.filter(|_| port.is_some());
    let gauges = gauges(&disks, access.clone(), interval);
    let status = (args.pages.status_page).then(|| Box::new(StatusPage::new("controller", gauges.clone())) as _);
    let site = Site {
        status,
        disks: Some(Box::new(gauges.clone())),
        ..site(vec![Box::new(gauges), Box::new(orphans)])
    };
    let controller = service(disks, region, zone, &cluster, &tasks)
        .with_cluster(events, nodes)
        .with_published_nodes(args.controller.list_volumes_published_nodes);
    // Received, because `served` is waiting for it.
    let _ = activate.send(Services::new(driver).with_controller(controller));
    let hold = async {
        match &mut lease {
            Some(lease) => lease.hold().await,
            None => std::future::pending().await,
        }
    };
    let outcome = tokio::select! {
        biased;
        // Running calls and tasks are aborted with the process: the next leader starts soon.
        lost = hold => return Err(lost.into()),
        served = &mut served => served,
        never = serve(port.as_ref(), site) => match never {},
    };
    // After an aborted drain, tasks may still call the cloud until the process has ended.
    if let (Ok(()), Some(lease)) = (&outcome, lease) {
        lease.release().await;
    }
    Ok(outcome?)
}

/// The gauges of the disks, which are listed with this interval, if any.
pub(crate) fn gauges(disks: &Arc<DiskServices>, cloud: CloudAccess, interval: Option<Duration>) -> ControllerGauges {
    let inventory = InventoryMetrics::default();
    if let Some(interval) = interval {
        let refresh = refresh(inventory.clone(), Arc::clone(disks), interval);
        // Separate tasks: shutdown does not wait for it.
        Tasks::default().spawn(refresh);
    }
    let disks = Arc::clone(disks);
    ControllerGauges {
        disks,
        cloud,
        inventory,
    }
}

/// The disk services on this cloud.
pub(crate) fn disks(ecs: Arc<Client>, cluster: ClusterId, tasks: &Tasks) -> Arc<DiskServices> {
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
    Service::new(disks, DriverLocation { region, zone }, tasks.clone())
}
