//! `diskplugin all-in-one`: Controller and Node on one socket.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use super::controller::{owner, service};
use super::node::{MAX_VOLUMES, max_volumes, node};
use super::place::Whereabouts;
use super::{cloud, signal};
use crate::base::Tasks;
use crate::cli::{self, Which};
use crate::cloud::Ecs;
use crate::csi::node::Service;
use crate::csi::server::{self, Services};
use crate::csi::socket::Endpoint;
use crate::model::{ClusterId, RegionId};
use crate::node::Settings;

/// Both halves of a driver for one node.
pub(crate) struct Driver {
    pub(crate) endpoint: Endpoint,
    pub(crate) ecs: Arc<dyn Ecs>,
    pub(crate) region: RegionId,
    pub(crate) cluster: ClusterId,
    pub(crate) node: Settings,
    pub(crate) drain_timeout: Duration,
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
        let zone = Some(self.node.zone.clone());
        let node = node(self.node);
        let tasks: Tasks = node.tasks().clone();
        let controller = service(self.ecs, self.region, zone, self.cluster, &tasks);
        let services = Services {
            controller: Some(controller),
            node: Some(Service::new(node)),
        };
        server::serve(&self.endpoint, services, tasks, stop, self.drain_timeout).await?;
        Ok(())
    }
}

async fn real(args: cli::AllInOne, stop: impl Future<Output = ()> + Send) -> anyhow::Result<()> {
    let mut where_is = Whereabouts::new(&args.place)?;
    let metadata = args.place.metadata()?;
    let variable = std::env::var(MAX_VOLUMES).ok();
    let max_volumes = where_is.checked(max_volumes(&args.own, variable));
    let region = where_is.region(args.place.region).await;
    let zone = where_is.zone(args.place.zone).await;
    let id = where_is.node(args.own.node_id).await;
    let cluster = owner(args.owner, &mut where_is);
    let (Some(region), Some(zone), Some(id), Some(cluster), Some(max_volumes)) =
        (region, zone, id, cluster, max_volumes)
    else {
        return Err(where_is.check().into());
    };
    let driver = Driver {
        endpoint: args.serve.endpoint,
        ecs: cloud::client(args.cloud, metadata, &region)?,
        region,
        cluster,
        node: Settings {
            id,
            zone,
            max_volumes,
            categories: args.own.instance_categories,
            device_dir: None,
        },
        drain_timeout: args.serve.drain_timeout,
    };
    driver.serve(stop).await
}

#[cfg(feature = "mock-cloud")]
mod mock {
    //! With a fake cloud in the same process, still spoken to over signed HTTP.

    use std::net::{Ipv4Addr, TcpListener};

    use anyhow::Context;

    use super::{Driver, Future, MAX_VOLUMES, Settings, cli, max_volumes};
    use crate::app::{cloud, mock_cloud};
    use crate::model::{ClusterId, RegionId, ZoneId};
    use crate::sim::{Cloud, Node, Options};

    const REGION: &str = "cn-beijing";
    const CLUSTER: &str = "mock";

    pub(super) async fn run(
        args: cli::AllInOne,
        stop: impl Future<Output = ()> + Send,
    ) -> anyhow::Result<()> {
        let max_volumes = max_volumes(&args.own, std::env::var(MAX_VOLUMES).ok())?;
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
                endpoint: args.serve.endpoint,
                ecs: cloud::fake_client(endpoint, &region, args.cloud.signature, &options)?,
                region,
                cluster: cluster.map_or_else(|| CLUSTER.parse::<ClusterId>(), Ok)?,
                node: Settings {
                    device_dir: fake.device_dir(&own.id),
                    id: own.id,
                    zone: own.zone,
                    max_volumes,
                    categories: args.own.instance_categories,
                },
                drain_timeout: args.serve.drain_timeout,
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
