//! With a fake cloud in the same process, called through signed HTTP.

use std::future::Future;
use std::net::{Ipv4Addr, TcpListener};

use anyhow::Context;
use fake_ecs::{Cloud, Node, Options};

use super::serve::serve;
use crate::app::{cloud, mock_cloud};
use crate::cli;
use crate::model::{InstanceId, RegionId};
use crate::telemetry::Telemetry;

const REGION: &str = "cn-beijing";
const CLUSTER: &str = "mock";

/// Runs the role with the location of an instance of the fake cloud.
pub(super) async fn run(
    mut args: cli::AllInOne,
    telemetry: Telemetry,
    stop: impl Future<Output = ()> + Send,
) -> anyhow::Result<()> {
    let location = &mut args.common.location;
    args.common.owner.cluster_id.get_or_insert(CLUSTER.parse()?);
    let region = location.region.get_or_insert(REGION.parse()?);
    let mut options = Options {
        region: region.to_string(),
        ..args.mock.clone()
    };
    // With this zone as the first one, a node is in it.
    if let Some(zone) = &location.zone {
        let mut zones = options.zones();
        zones.retain(|known| known != zone.as_str());
        zones.insert(0, zone.to_string());
        options.zones = zones;
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen")?;
    let fake = mock_cloud::start(&options, listener).await?;
    let served = async {
        tracing::info!(endpoint = fake.endpoint(), "fake cloud");
        let own = choose(&fake, args.node.node_id.as_ref())?;
        args.node.node_id = Some(own.id.parse()?);
        args.node.instance_type.get_or_insert(own.instance_type);
        args.common.location.zone = Some(own.zone.parse()?);
        let connect = |cloud: cli::CloudArgs, _, region: &RegionId| {
            let client = cloud::fake_client(&fake, region, cloud.signature)?;
            client.ecs.rate_limiter().configure(cloud.limits()?);
            Ok(client)
        };
        serve(args, connect, fake.device_dir(&own.id), telemetry, stop).await
    };
    let outcome = served.await;
    outcome.and(fake.shutdown().await.map_err(Into::into))
}

fn choose(fake: &Cloud, wanted: Option<&InstanceId>) -> anyhow::Result<Node> {
    let nodes = fake.nodes();
    let names: Vec<_> = nodes.iter().map(|node| node.id.clone()).collect();
    let is_wanted = |node: &Node| wanted.is_none_or(|id| node.id == id.as_str());
    let chosen = nodes.into_iter().find(is_wanted);
    chosen.with_context(|| {
        let wanted = wanted.map_or_else(String::new, |id| format!(" {id}"));
        format!(
            "the fake cloud has no node{wanted}, only [{}]; see --nodes",
            names.join(", ")
        )
    })
}
