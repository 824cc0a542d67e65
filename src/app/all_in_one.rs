//! `diskplugin all-in-one`: Controller and Node on one socket.

use std::future::Future;
use std::sync::Arc;

use super::cloud::Connected;
use super::controller::{disks, owner, service};
use super::health::Health;
use super::node::{MAX_VOLUMES, max_volumes, node, registration};
use super::place::Whereabouts;
use super::{cloud, http, signal};
use crate::base::Tasks;
use crate::cli::{self, Which};
use crate::csi::node::Service;
use crate::csi::registration::Registration;
use crate::csi::server::{self, Services};
use crate::model::{Bytes, ClusterId, RegionId};
use crate::node::Settings;

/// Both halves of a driver for one node.
pub(crate) struct Driver {
    pub(crate) serve: cli::Serve,
    pub(crate) cloud: Connected,
    pub(crate) registration: Option<Registration>,
    pub(crate) region: RegionId,
    pub(crate) cluster: ClusterId,
    pub(crate) node: Settings,
    /// Memory for the filesystem tools; none leaves it to the control group.
    pub(crate) tool_memory: Option<Bytes>,
}

pub(crate) async fn run(args: cli::AllInOne) -> anyhow::Result<()> {
    let stop = signal::stop()?;
    match args.which {
        Which::Real => real(args, stop).await,
        #[cfg(feature = "mock-cloud")]
        Which::Mock => mock::run(args, stop).await,
    }
}

impl Driver {
    /// Serves both halves until `stop`.
    pub(crate) async fn serve(self, stop: impl Future<Output = ()> + Send) -> anyhow::Result<()> {
        let cli::Serve {
            driver_name,
            endpoint,
            drain_timeout,
            http_address,
        } = self.serve;
        let listener = http::bind(http_address).await?;
        let zone = Some(self.node.zone.clone());
        let node = node(self.node, driver_name.clone(), self.tool_memory);
        let tasks: Tasks = node.tasks().clone();
        let disks = disks(self.cloud.ecs, self.cluster.clone(), &tasks);
        let controller = service(disks, self.region, zone, &self.cluster, &tasks);
        let health = Health {
            endpoint: endpoint.clone(),
            cloud: Some(self.cloud.access),
            node: Some(Arc::clone(&node)),
            shared: false,
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
    let mut where_is = Whereabouts::new(&args.place);
    let metadata = args.place.metadata()?;
    let variable = std::env::var(MAX_VOLUMES).ok();
    let max_volumes = where_is.checked(max_volumes(&args.own, variable));
    let registration = where_is.checked(registration(&args.own, &args.serve));
    let region = where_is.region(args.place.region.clone()).await;
    let zone = where_is.zone(args.place.zone.clone()).await;
    let id = where_is.node(args.own.node_id).await;
    let types = where_is
        .types(args.own.instance_type, args.own.instance_types_file)
        .await;
    let cluster = owner(args.owner, &mut where_is);
    let (Some(region), Some(zone), Some(id), Some(cluster)) = (region, zone, id, cluster) else {
        return Err(where_is.check().into());
    };
    let (Some(max_volumes), Some(registration)) = (max_volumes, registration) else {
        return Err(where_is.check().into());
    };
    let driver = Driver {
        serve: args.serve,
        cloud: cloud::client(args.cloud, metadata, &region)?,
        registration,
        region,
        cluster,
        node: Settings {
            id,
            zone,
            max_volumes,
            categories: args.own.instance_categories,
            types,
            device_dir: None,
            kubelet_dir: args.own.kubelet_dir,
            state_dir: args.own.state_dir,
        },
        tool_memory: args.own.tool_memory,
    };
    driver.serve(stop).await
}

#[cfg(feature = "mock-cloud")]
mod mock {
    //! With a fake cloud in the same process, still spoken to over signed HTTP.

    use std::net::{Ipv4Addr, TcpListener};

    use anyhow::Context;

    use super::{Driver, Future, MAX_VOLUMES, Settings, cli, max_volumes, registration};
    use crate::app::{cloud, mock_cloud};
    use crate::model::{ClusterId, RegionId, ZoneId};
    use crate::node::info::Types;
    use crate::sim::{Cloud, Node, Options};

    const REGION: &str = "cn-beijing";
    const CLUSTER: &str = "mock";

    pub(super) async fn run(
        args: cli::AllInOne,
        stop: impl Future<Output = ()> + Send,
    ) -> anyhow::Result<()> {
        let max_volumes = max_volumes(&args.own, std::env::var(MAX_VOLUMES).ok())?;
        let registration = registration(&args.own, &args.serve)?;
        let region = match args.place.region {
            Some(region) => region,
            None => REGION.parse::<RegionId>().context("the default region")?,
        };
        let options = options(args.mock, &region, args.place.zone.as_ref());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
        let fake = mock_cloud::start(&options, listener).await?;
        let served = async {
            let own = choose(&fake, args.own.node_id.as_ref())?;
            let endpoint = fake.endpoint().context("the fake cloud serves no HTTP")?;
            tracing::info!(endpoint, "fake cloud");
            let cluster = args.owner.cluster_id;
            let driver = Driver {
                serve: args.serve,
                cloud: cloud::fake_client(endpoint, &region, args.cloud.signature, &options)?,
                registration,
                region,
                cluster: cluster.map_or_else(|| CLUSTER.parse::<ClusterId>(), Ok)?,
                node: Settings {
                    device_dir: fake.device_dir(&own.id),
                    id: own.id,
                    zone: own.zone,
                    max_volumes,
                    categories: args.own.instance_categories,
                    types: Types {
                        file: args.own.instance_types_file,
                        own: args.own.instance_type,
                    },
                    kubelet_dir: args.own.kubelet_dir,
                    state_dir: args.own.state_dir,
                },
                tool_memory: args.own.tool_memory,
            };
            driver.serve(stop).await
        };
        let outcome = served.await;
        outcome.and(fake.shutdown().await.map_err(Into::into))
    }

    /// The fake cloud's options, with the wanted zone as its first, so that it has a node.
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
