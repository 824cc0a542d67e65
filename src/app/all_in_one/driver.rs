//! Controller and node in one process, on one socket.

use std::future::Future;
use std::sync::Arc;

use crate::app::controller::{disks, inventory, service};
use crate::app::http;
use crate::app::node::services;
use crate::base::Tasks;
use crate::cli;
use crate::csi::node::Service;
use crate::csi::registration::Registration;
use crate::csi::server;
use crate::csi::services::Services;
use crate::http::health::{CloudAccess, Health, NodeChecks};
use crate::http::metrics::{ControllerGauges, Metrics, NodeGauges};
use crate::http::status::StatusPage;
use crate::http::{CloudDisks, Page, Site, serve};
use crate::model::{ClusterId, RegionId};
use crate::node::NodeSettings;
use crate::ops::CloudClient;
use crate::telemetry::Telemetry;

/// Controller and node of one driver process.
pub(crate) struct Driver {
    pub(crate) server: cli::ServerArgs,
    pub(crate) cloud: CloudClient,
    pub(crate) registration: Option<Registration>,
    pub(crate) region: RegionId,
    pub(crate) cluster: ClusterId,
    pub(crate) node: NodeSettings,
    pub(crate) telemetry: Telemetry,
    pub(crate) pages: cli::PageArgs,
    pub(crate) controller: cli::ControllerArgs,
    pub(crate) node_args: cli::NodeArgs,
}

impl Driver {
    /// Serves both services until `stop`.
    pub(crate) async fn serve(self, stop: impl Future<Output = ()> + Send) -> anyhow::Result<()> {
        let cli::ServerArgs {
            driver: cli::DriverArgs { driver_name },
            endpoint,
            drain_timeout,
            http,
        } = self.server;
        let port = http::port(&http).await?;
        let authorizer = http::authorizer(&self.pages).await?;
        let zone = Some(self.node.zone.clone());
        let node = services(self.node, driver_name.clone(), &self.node_args);
        let tasks: Tasks = node.tasks().clone();
        let disks = disks(Arc::clone(&self.cloud.ecs), self.cluster.clone(), &tasks);
        let interval = self.controller.metrics_inventory_interval.0;
        let access = CloudAccess::new(&self.cloud.ecs, self.cloud.credentials);
        let inventory = inventory(&disks, interval.filter(|_| port.is_some()));
        let status = self.pages.status_page.then(|| -> Box<dyn Page> {
            Box::new(StatusPage::new(
                "all-in-one",
                Arc::clone(&disks),
                access.clone(),
                inventory.clone(),
            ))
        });
        let controller_gauges = ControllerGauges {
            disks: Arc::clone(&disks),
            cloud: access.clone(),
            inventory,
        };
        let cloud_disks = CloudDisks(Arc::clone(&disks));
        let controller = service(disks, self.region, zone, &self.cluster, &tasks)
            .with_published_nodes(self.controller.list_volumes_published_nodes);
        let checks = NodeChecks {
            prerequisites: node.prerequisites.clone(),
            require_shared_mounts: false,
        };
        checks.log_failed().await;
        let node_gauges = NodeGauges(Arc::clone(&node));
        let metrics = Metrics::new(
            "all-in-one",
            &self.telemetry.metrics,
            vec![Box::new(controller_gauges), Box::new(node_gauges)],
        );
        let site = Site {
            metrics,
            telemetry: self.telemetry,
            status,
            disks: Some(Box::new(cloud_disks)),
            authorizer,
            health: Health {
                endpoint: endpoint.clone(),
                cloud: Some(access),
                node: Some(checks),
                registration: self.registration.clone(),
                leadership: None,
                unknown_location: None,
            },
        };
        let services = Services::new(driver_name)
            .with_controller(controller)
            .with_node(Service::new(node))
            .with_registration(self.registration);
        tokio::select! {
            served = server::serve(&endpoint, services, tasks, stop, drain_timeout) => Ok(served?),
            never = serve(port.as_ref(), site) => match never {},
        }
    }
}
