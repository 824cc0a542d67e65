//! Controller and node in one process, on one socket.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;

use ecs::metadata::Metadata;

use crate::app::controller::{disks, gauges, service};
use crate::app::http;
use crate::app::node::{MAX_VOLUMES, max_volumes, registration, services, settings};
use crate::cli::{self, Location};
use crate::csi::node::Service;
use crate::csi::server;
use crate::csi::services::Services;
use crate::http::Site;
use crate::http::health::{CloudAccess, Health, NodeChecks};
use crate::http::metrics::{Gauges, Metrics, NodeGauges};
use crate::http::status::StatusPage;
use crate::model::RegionId;
use crate::ops::CloudClient;
use crate::telemetry::Telemetry;

/// Serves both services until `stop`.
pub(super) async fn serve(
    args: cli::AllInOne,
    connect: impl FnOnce(cli::CloudArgs, Metadata, &RegionId) -> anyhow::Result<CloudClient> + Send,
    device_dir: Option<PathBuf>,
    telemetry: Telemetry,
    stop: impl Future<Output = ()> + Send,
) -> anyhow::Result<()> {
    let common = args.common;
    let mut location = Location::new(&common.location);
    let metadata = common.location.metadata()?;
    let max_volumes = location.checked(max_volumes(&args.node, std::env::var(MAX_VOLUMES).ok()));
    let registration = location.checked(registration(&args.node, &common.server));
    let region = location.region().await;
    let settings = settings(&mut location, &args.node, max_volumes.flatten()).await;
    let cluster = common.owner.id(&mut location);
    let (Some(region), Some(mut settings), Some(cluster)) = (region, settings, cluster) else {
        return Err(location.into_error().into());
    };
    let (Some(_), Some(registration)) = (max_volumes, registration) else {
        return Err(location.into_error().into());
    };
    settings.device_dir = device_dir;
    let cloud = connect(common.cloud, metadata, &region)?;
    let cli::ServerArgs {
        driver: cli::DriverArgs { driver_name },
        endpoint,
        drain_timeout,
        http,
    } = common.server;
    let port = http::port(&http).await?;
    let authorizer = http::authorizer(&common.pages).await?;
    let zone = Some(settings.zone.clone());
    let node = services(settings, driver_name.clone(), args.node.tool_memory);
    let tasks = node.tasks().clone();
    let disks = disks(Arc::clone(&cloud.ecs), cluster.clone(), &tasks);
    let interval = common.controller.metrics_inventory_interval.0;
    let access = CloudAccess::new(&cloud.ecs, cloud.credentials);
    let gauges = gauges(&disks, access.clone(), interval.filter(|_| port.is_some()));
    let status = (common.pages.status_page).then(|| Box::new(StatusPage::new("all-in-one", gauges.clone())) as _);
    let cloud_disks = gauges.clone();
    let controller = service(disks, region, zone, &cluster, &tasks)
        .with_published_nodes(common.controller.list_volumes_published_nodes);
    let checks = NodeChecks {
        prerequisites: node.prerequisites.clone(),
        require_shared_mounts: false,
    };
    checks.log_failed().await;
    let node_gauges = NodeGauges(Arc::clone(&node));
    let gauges: Vec<Box<dyn Gauges>> = vec![Box::new(gauges), Box::new(node_gauges)];
    let site = Site {
        metrics: Metrics::new("all-in-one", &telemetry.metrics, gauges),
        telemetry,
        status,
        disks: Some(Box::new(cloud_disks)),
        authorizer,
        health: Health {
            cloud: Some(access),
            node: Some(checks),
            registration: registration.clone(),
            ..Health::new(endpoint.clone())
        },
    };
    let services = Services::new(driver_name)
        .with_controller(controller)
        .with_node(Service(node))
        .with_registration(registration);
    tokio::select! {
        served = server::serve(&endpoint, services, tasks, stop, drain_timeout) => Ok(served?),
        never = crate::http::serve(port.as_ref(), site) => match never {},
    }
}
