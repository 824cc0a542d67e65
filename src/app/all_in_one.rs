//! `diskplugin all-in-one`: Controller and Node on one socket.

use std::future::Future;
use std::sync::Arc;

use super::cloud::CloudClient;
use super::controller::{disks, owner, service};
use super::health::Health;
use super::location::Location;
use super::node::{MAX_VOLUMES, max_volumes, node, registration};
use super::node_checks::NodeChecks;
use super::{cloud, http, signal};
use crate::base::Tasks;
use crate::cli::{self, CloudKind};
use crate::csi::node::Service;
use crate::csi::registration::Registration;
use crate::csi::server::{self, Services};
use crate::model::{Bytes, ClusterId, RegionId};
use crate::node::Settings;

/// Controller and node of one driver process.
pub(crate) struct Driver {
    pub(crate) server: cli::ServerArgs,
    pub(crate) cloud: CloudClient,
    pub(crate) registration: Option<Registration>,
    pub(crate) region: RegionId,
    pub(crate) cluster: ClusterId,
    pub(crate) node: Settings,
    /// Memory for filesystem tools; `None` derives it from the cgroup limit.
    pub(crate) tool_memory: Option<Bytes>,
}

pub(crate) async fn run(args: cli::AllInOne) -> anyhow::Result<()> {
    let stop = signal::stop()?;
    match args.cloud_kind {
        CloudKind::Real => real(args, stop).await,
        #[cfg(feature = "mock-cloud")]
        CloudKind::Mock => mock::run(args, stop).await,
    }
}

impl Driver {
    /// Serves both services until `stop`.
    pub(crate) async fn serve(self, stop: impl Future<Output = ()> + Send) -> anyhow::Result<()> {
        let cli::ServerArgs {
            driver_name,
            endpoint,
            drain_timeout,
            http_address,
        } = self.server;
        let listener = http::bind(http_address).await?;
        let zone = Some(self.node.zone.clone());
        let node = node(self.node, driver_name.clone(), self.tool_memory);
        let tasks: Tasks = node.tasks().clone();
        let disks = disks(self.cloud.ecs, self.cluster.clone(), &tasks);
        let controller = service(disks, self.region, zone, &self.cluster, &tasks);
        let checks = NodeChecks {
            node: Arc::clone(&node),
            require_shared_mounts: false,
        };
        checks.log_failed().await;
        let health = Health {
            endpoint: endpoint.clone(),
            cloud: Some(self.cloud.access),
            node: Some(checks),
            registration: self.registration.clone(),
        };
        let services = Services {
            name: driver_name,
            controller: Some(controller),
            node: Some(Service::new(node)),
            registration: self.registration,
        };
        tokio::select! {
            served = server::serve(&endpoint, services, tasks, stop, drain_timeout) => Ok(served?),
            never = http::serve(listener, health) => match never {},
        }
    }
}

async fn real(args: cli::AllInOne, stop: impl Future<Output = ()> + Send) -> anyhow::Result<()> {
    let mut location = Location::new(&args.location);
    let metadata = args.location.metadata()?;
    let variable = std::env::var(MAX_VOLUMES).ok();
    let max_volumes = location.checked(max_volumes(&args.node, variable));
    let registration = location.checked(registration(&args.node, &args.server));
    let region = location.region(args.location.region.clone()).await;
    let zone = location.zone(args.location.zone.clone()).await;
    let id = location.node(args.node.node_id).await;
    let instance_types = location
        .instance_type_source(args.node.instance_type, args.node.instance_types_file)
        .await;
    let cluster = owner(args.owner, &mut location);
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
            categories: args.node.instance_categories,
            instance_types,
            device_dir: None,
            kubelet_dir: args.node.kubelet_dir,
            state_dir: args.node.state_dir,
        },
        tool_memory: args.node.tool_memory,
    };
    driver.serve(stop).await
}

#[cfg(feature = "mock-cloud")]
mod mock {
    //! With a fake cloud in the same process, called through signed HTTP.

    use std::net::{Ipv4Addr, TcpListener};

    use anyhow::Context;

    use super::{Driver, Future, MAX_VOLUMES, Settings, cli, max_volumes, registration};
    use crate::app::{cloud, mock_cloud};
    use crate::model::{ClusterId, RegionId, ZoneId};
    use crate::node::info::InstanceTypeSource;
    use crate::sim::{Cloud, Node, Options};

    const REGION: &str = "cn-beijing";
    const CLUSTER: &str = "mock";

    pub(super) async fn run(
        args: cli::AllInOne,
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
            let driver = Driver {
                server: args.server,
                cloud: cloud::fake_client(endpoint, &region, args.cloud.signature, &options)?,
                registration,
                region,
                cluster: cluster.map_or_else(|| CLUSTER.parse::<ClusterId>(), Ok)?,
                node: Settings {
                    device_dir: fake.device_dir(&own.id),
                    id: own.id,
                    zone: own.zone,
                    max_volumes,
                    categories: args.node.instance_categories,
                    instance_types: InstanceTypeSource {
                        file: args.node.instance_types_file,
                        instance_type: args.node.instance_type,
                    },
                    kubelet_dir: args.node.kubelet_dir,
                    state_dir: args.node.state_dir,
                },
                tool_memory: args.node.tool_memory,
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
            let ids: Vec<_> = fake
                .nodes()
                .into_iter()
                .map(|node| node.id.to_string())
                .collect();
            ids.join(", ")
        };
        match wanted {
            None => nodes
                .next()
                .context("the fake cloud has no node: --nodes is 0"),
            Some(id) => nodes.find(|node| node.id == *id).with_context(|| {
                format!(
                    "the fake cloud has no node {id}, only {}; see --nodes",
                    names()
                )
            }),
        }
    }
}
