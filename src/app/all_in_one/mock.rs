//! With a fake cloud in the same process, called through signed HTTP.

use std::future::Future;
use std::net::{Ipv4Addr, TcpListener};

use anyhow::Context;
use fake_ecs::{Cloud, Node, Options};

use super::driver::Driver;
use crate::app::node::{Identity, MAX_VOLUMES, max_volumes, registration, settings};
use crate::app::{cloud, mock_cloud};
use crate::cli;
use crate::model::{ClusterId, RegionId, ZoneId};
use crate::node::InstanceTypeSource;
use crate::telemetry::Telemetry;

const REGION: &str = "cn-beijing";
const CLUSTER: &str = "mock";

pub(super) async fn run(
    args: cli::AllInOne,
    telemetry: Telemetry,
    stop: impl Future<Output = ()> + Send,
) -> anyhow::Result<()> {
    let max_volumes = max_volumes(&args.node, std::env::var(MAX_VOLUMES).ok())?;
    let registration = registration(&args.node, &args.common.server)?;
    let region = match args.common.location.region {
        Some(region) => region,
        None => REGION.parse::<RegionId>().context("the default region")?,
    };
    let options = options(args.mock, &region, args.common.location.zone.as_ref());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
    let fake = mock_cloud::start(&options, listener).await?;
    let served = async {
        let own = choose(&fake, args.node.node_id.as_ref())?;
        let endpoint = fake.endpoint().context("the fake cloud serves no HTTP")?;
        tracing::info!(endpoint, "fake cloud");
        let cluster = args.common.owner.cluster_id;
        let cloud = cloud::fake_client(endpoint, &region, args.common.cloud.signature, &options)?;
        cloud.ecs.rate_limiter().configure(args.common.cloud.limits()?);
        let identity = Identity {
            id: own.id.parse()?,
            zone: own.zone.parse()?,
            instance_types: InstanceTypeSource {
                file: args.node.instance_types_file.clone(),
                instance_type: args.node.instance_type.clone(),
            },
        };
        let driver = Driver {
            server: args.common.server,
            cloud,
            registration,
            region,
            cluster: cluster.map_or_else(|| CLUSTER.parse::<ClusterId>(), Ok)?,
            node: settings(identity, max_volumes, fake.device_dir(&own.id), &args.node),
            telemetry,
            pages: args.common.pages,
            controller: args.common.controller,
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
