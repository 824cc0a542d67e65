//! `diskplugin all-in-one`: Controller and Node on one socket.

use std::future::Future;
use std::sync::Arc;

use super::cloud::CloudClient;
use super::controller::{disks, inventory, service};
use super::health::Health;
use super::http::{CloudDisks, Page, Site};
use super::metrics::{ControllerGauges, Metrics, NodeGauges};
use super::node::{MAX_VOLUMES, instance_types, max_volumes, registration, services};
use super::node_checks::NodeChecks;
use super::status::StatusPage;
use super::telemetry::Telemetry;
use super::{cloud, http, signal};
use crate::base::Tasks;
use crate::cli::{self, CloudKind, Location};
use crate::csi::node::Service;
use crate::csi::registration::Registration;
use crate::csi::server;
use crate::csi::services::Services;
use crate::model::{ClusterId, RegionId};
use crate::node::Settings;

/// Controller and node of one driver process.
pub(crate) struct Driver {
    pub(crate) server: cli::ServerArgs,
    pub(crate) cloud: CloudClient,
    pub(crate) registration: Option<Registration>,
    pub(crate) region: RegionId,
    pub(crate) cluster: ClusterId,
    pub(crate) node: Settings,
    pub(crate) telemetry: Telemetry,
    pub(crate) pages: cli::PageArgs,
    /// How often volumes are counted for metrics.
    pub(crate) controller: cli::ControllerArgs,
    /// Memory for filesystem tools; `None` derives it from the cgroup limit.
    pub(crate) node_args: cli::NodeArgs,
}

pub(crate) async fn run(args: cli::AllInOne, telemetry: Telemetry) -> anyhow::Result<()> {
    let stop = signal::stop()?;
    match args.cloud_kind {
        CloudKind::Real => real(args, telemetry, stop).await,
        #[cfg(feature = "mock-cloud")]
        CloudKind::Mock => Box::pin(mock::run(args, telemetry, stop)).await,
    }
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
        let port = http::bind(&http).await?;
        let authorizer = http::authorizer(&self.pages).await?;
        let zone = Some(self.node.zone.clone());
        let node = services(self.node, driver_name.clone(), &self.node_args);
        let tasks: Tasks = node.tasks().clone();
        let disks = disks(self.cloud.ecs, self.cluster.clone(), &tasks);
        let interval = self.controller.metrics_inventory_interval.0;
        let access = self.cloud.access;
        let inventory = inventory(&disks, interval.filter(|_| port.is_some()));
        let status = self.pages.status_page.then(|| -> Box<dyn Page> {
            Box::new(StatusPage::new(
                "all-in-one",
                Arc::clone(&disks),
                access.clone(),
                inventory.clone(),
            ))
        });
        let controller_gauges = ControllerGauges::new(Arc::clone(&disks), access.clone(), inventory);
        let cloud_disks = CloudDisks(Arc::clone(&disks));
        let controller = service(disks, self.region, zone, &self.cluster, &tasks)
            .with_published_nodes(self.controller.list_volumes_published_nodes);
        let checks = NodeChecks {
            prerequisites: node.prerequisites.clone(),
            require_shared_mounts: false,
        };
        checks.log_failed().await;
        let node_gauges = NodeGauges::new(Arc::clone(&node));
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
            pages: http::page_limit(),
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
            never = http::serve(port.as_ref(), site) => match never {},
        }
    }
}

async fn real(args: cli::AllInOne, telemetry: Telemetry, stop: impl Future<Output = ()> + Send) -> anyhow::Result<()> {
    let mut location = Location::new(&args.location);
    let metadata = args.location.metadata()?;
    let variable = std::env::var(MAX_VOLUMES).ok();
    let max_volumes = location.checked(max_volumes(&args.node, variable));
    let registration = location.checked(registration(&args.node, &args.server));
    let region = location.region(args.location.region.clone()).await;
    let zone = location.zone(args.location.zone.clone()).await;
    let id = location.node(args.node.node_id.clone()).await;
    let (instance_type, file) = (args.node.instance_type.clone(), args.node.instance_types_file.clone());
    let instance_types = instance_types(&mut location, instance_type, file).await;
    let cluster = args.owner.id(&mut location);
    let (Some(region), Some(zone), Some(id), Some(cluster)) = (region, zone, id, cluster) else {
        return Err(location.into_error().into());
    };
    let (Some(max_volumes), Some(registration)) = (max_volumes, registration) else {
        return Err(location.into_error().into());
    };
    let driver = Driver {
        server: args.server,
        cloud: cloud::client(args.cloud, metadata, &region)?,
        registration,
        region,
        cluster,
        node: Settings {
            id,
            zone,
            max_volumes,
            categories: args.node.instance_categories.clone(),
            instance_types,
            device_dir: None,
            kubelet_dir: args.node.directories.kubelet_dir.clone(),
            state_dir: args.node.directories.state_dir.clone(),
        },
        telemetry,
        pages: args.pages,
        controller: args.controller,
        node_args: args.node,
    };
    driver.serve(stop).await
}

#[cfg(feature = "mock-cloud")]
mod mock {
    //! With a fake cloud in the same process, called through signed HTTP.

    use std::net::{Ipv4Addr, TcpListener};

    use anyhow::Context;
    use fake_ecs::{Cloud, Node, Options};

    use super::{Driver, Future, MAX_VOLUMES, Settings, Telemetry, cli, max_volumes, registration};
    use crate::app::{cloud, mock_cloud};
    use crate::model::{ClusterId, RegionId, ZoneId};
    use crate::node::InstanceTypeSource;

    const REGION: &str = "cn-beijing";
    const CLUSTER: &str = "mock";

    pub(super) async fn run(
        args: cli::AllInOne,
        telemetry: Telemetry,
        stop: impl Future<Output = ()> + Send,
    ) -> anyhow::Result<()> {
        let max_volumes = max_volumes(&args.node, std::env::var(MAX_VOLUMES).ok())?;
        let registration = registration(&args.node, &args.server)?;
        let region = match args.location.region {
            Some(region) => region,
            None => REGION.parse::<RegionId>().context("the default region")?,
        };
        let options = options(args.mock, &region, args.location.zone.as_ref());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
        let fake = mock_cloud::start(&options, listener).await?;
        let served = async {
            let own = choose(&fake, args.node.node_id.as_ref())?;
            let endpoint = fake.endpoint().context("the fake cloud serves no HTTP")?;
            tracing::info!(endpoint, "fake cloud");
            let cluster = args.owner.cluster_id;
            let cloud = cloud::fake_client(endpoint, &region, args.cloud.signature, &options)?;
            cloud.access.rate_limiter.configure(args.cloud.limits()?);
            let driver = Driver {
                server: args.server,
                cloud,
                registration,
                region,
                cluster: cluster.map_or_else(|| CLUSTER.parse::<ClusterId>(), Ok)?,
                node: Settings {
                    device_dir: fake.device_dir(&own.id),
                    id: own.id.parse()?,
                    zone: own.zone.parse()?,
                    max_volumes,
                    categories: args.node.instance_categories.clone(),
                    instance_types: InstanceTypeSource {
                        file: args.node.instance_types_file.clone(),
                        instance_type: args.node.instance_type.clone(),
                    },
                    kubelet_dir: args.node.directories.kubelet_dir.clone(),
                    state_dir: args.node.directories.state_dir.clone(),
                },
                telemetry,
                pages: args.pages,
                controller: args.controller,
                node_args: args.node,
            };
            driver.serve(stop).await
        };
        let outcome = served.await;
        outcome.and(fake.shutdown().await.map_err(Into::into))
    }

    /// Options of the fake cloud, with `zone` as its first zone, so that a node is in it.
    fn options(options: Options, region: &RegionId, zone: Option<&ZoneId>) -> Options {
        let mut options = Options {
            region: region.to_string(),
            ..options
        };
        if let Some(zone) = zone {
            let mut zones = options.zones();
            zones.retain(|known| known != zone.as_str());
            zones.insert(0, zone.to_string());
            options.zones = zones;
        }
        options
    }

    fn choose(fake: &Cloud, wanted: Option<&crate::model::InstanceId>) -> anyhow::Result<Node> {
        let mut nodes = fake.nodes().into_iter();
        let names = || {
            let ids: Vec<_> = fake.nodes().into_iter().map(|node| node.id).collect();
            ids.join(", ")
        };
        match wanted {
            None => nodes.next().context("the fake cloud has no node: --nodes is 0"),
            Some(id) => nodes
                .find(|node| node.id == id.as_str())
                .with_context(|| format!("the fake cloud has no node {id}, only {}; see --nodes", names())),
        }
    }
}
