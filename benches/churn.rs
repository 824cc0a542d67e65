//! A hundred volumes through create, publish, unpublish and delete: how long, how many cloud calls,
//! how much memory, beside the least that it could be. `cargo bench --bench churn`, or `make bench`;
//! `cargo bench --bench churn -- DRIVER [CLOUD]` takes other binaries than the bench profile's.
//!
//! The controller and the fake cloud are processes of their own; the controller is called over its
//! CSI socket, as the sidecars would. Nothing is asserted but that every call succeeds, that the
//! processes end well and that no disk is left.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, ensure};
use diskplugin::csi::proto::controller_client::ControllerClient;
use diskplugin::csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, access_mode};
use diskplugin::csi::proto::{
    CapacityRange, ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest,
    CreateVolumeRequest, DeleteVolumeRequest, VolumeCapability,
};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::Request;
use tonic::transport::Channel;

use common::{Program, socket};

mod common;

const VOLUMES: u32 = 100;
const AT_A_TIME: u32 = 50;
const NODES: u32 = 10;
const CREATE: Duration = Duration::from_millis(500);
const ATTACH: Duration = Duration::from_secs(2);
const DETACH: Duration = Duration::from_secs(2);
/// Create, attach, detach, delete: what a volume costs when nothing is looked at.
const LEAST_CALLS: f64 = 4.0;
/// As the sidecars are given it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What a run took.
struct Figures {
    wall: Duration,
    peak_kib: u64,
    /// Calls and refused calls by action.
    calls: BTreeMap<String, (u64, u64)>,
}

fn main() -> anyhow::Result<()> {
    common::run(async {
        println!(
            "{VOLUMES} volumes, {AT_A_TIME} at a time, over {NODES} nodes; create {CREATE:?}, attach \
             {ATTACH:?}, detach {DETACH:?}"
        );
        let own = || PathBuf::from(env!("CARGO_BIN_EXE_diskplugin"));
        let mut named = common::named().into_iter();
        let driver = named.next().unwrap_or_else(own);
        let cloud = named.next().unwrap_or_else(own);
        let serial = run(&driver, &cloud, &[])
            .await
            .context("one at a time per instance")?;
        serial.print(
            "the cloud takes one attach and one detach at a time per instance",
            floor(),
        );
        let parallel = run(&driver, &cloud, &["--parallel-attach"])
            .await
            .context("side by side")?;
        parallel.print("the cloud takes any number of them", waves());
        Ok(())
    })
}

/// The least time where an instance takes one attach and one detach at a time. Each instance is a
/// line of two machines that every one of its volumes passes: the first attach waits for the first
/// create; from then on one of the two is never idle; the last detach has nothing behind it.
fn floor() -> Duration {
    let each = VOLUMES / NODES;
    let line = CREATE + ATTACH + ATTACH.max(DETACH) * (each - 1) + DETACH;
    line.max(waves())
}

/// The least time of any cloud: so many volumes at a time, each through all its delays.
fn waves() -> Duration {
    (CREATE + ATTACH + DETACH) * VOLUMES.div_ceil(AT_A_TIME)
}

async fn run(driver: &Path, cloud: &Path, flags: &[&str]) -> anyhow::Result<Figures> {
    let dir = tempfile::tempdir()?;
    let delays = [
        format!("--nodes={NODES}"),
        format!("--create-delay={}ms", CREATE.as_millis()),
        format!("--attach-delay={}ms", ATTACH.as_millis()),
        format!("--detach-delay={}ms", DETACH.as_millis()),
    ];
    let delays = delays.iter().map(String::as_str);
    let flags: Vec<&str> = delays.chain(flags.iter().copied()).collect();
    let (fake, endpoint) = Program::fake_cloud(cloud, dir.path(), &flags).await?;
    let mut controller = Program::controller(driver, dir.path(), &endpoint)?;
    let channel = controller.ready(&socket(dir.path(), "controller")).await?;
    let state = control(&endpoint, "state").await?;
    let nodes = ids(&state["instances"]);
    ensure!(
        u32::try_from(nodes.len())? == NODES,
        "the nodes are not there"
    );

    let start = Instant::now();
    churn(channel, &nodes).await?;
    let wall = start.elapsed();

    let peak_kib = controller.memory_kib("VmHWM")?;
    let state = control(&endpoint, "state").await?;
    let left = ids(&state["disks"]);
    ensure!(left.is_empty(), "disks are left: {left:?}");
    let calls = counts(&control(&endpoint, "calls").await?)?;
    controller.stop().await.context("the controller")?;
    fake.stop().await.context("the fake cloud")?;
    Ok(Figures {
        wall,
        peak_kib,
        calls,
    })
}

/// All volumes, so many at a time, each to its node in turn.
async fn churn(channel: Channel, nodes: &[String]) -> anyhow::Result<()> {
    let places = Arc::new(Semaphore::new(usize::try_from(AT_A_TIME)?));
    let mut lives = JoinSet::new();
    for (number, node) in (0..VOLUMES).zip(nodes.iter().cycle()) {
        let controller = ControllerClient::new(channel.clone());
        let (places, node) = (Arc::clone(&places), node.clone());
        lives.spawn(async move {
            let _place = places.acquire().await?;
            life(controller, number, node)
                .await
                .with_context(|| format!("volume {number}"))
        });
    }
    while let Some(outcome) = lives.join_next().await {
        outcome??;
    }
    Ok(())
}

async fn life(
    mut controller: ControllerClient<Channel>,
    number: u32,
    node: String,
) -> anyhow::Result<()> {
    let capability = VolumeCapability {
        access_mode: Some(AccessMode {
            mode: access_mode::Mode::SingleNodeWriter.into(),
        }),
        access_type: Some(AccessType::Block(BlockVolume {})),
    };
    let create = CreateVolumeRequest {
        name: format!("pvc-{number}"),
        capacity_range: Some(CapacityRange {
            required_bytes: 20 << 30,
            limit_bytes: 0,
        }),
        volume_capabilities: vec![capability.clone()],
        parameters: [("type".to_owned(), "cloud_essd".to_owned())].into(),
        ..CreateVolumeRequest::default()
    };
    let created = controller.create_volume(timed(create)).await;
    let volume = created.context("CreateVolume")?.into_inner().volume;
    let volume_id = volume.context("CreateVolume answered no volume")?.volume_id;
    let publish = ControllerPublishVolumeRequest {
        volume_id: volume_id.clone(),
        node_id: node.clone(),
        volume_capability: Some(capability),
        ..ControllerPublishVolumeRequest::default()
    };
    let published = controller.controller_publish_volume(timed(publish)).await;
    published.context("ControllerPublishVolume")?;
    let unpublish = ControllerUnpublishVolumeRequest {
        volume_id: volume_id.clone(),
        node_id: node,
        ..ControllerUnpublishVolumeRequest::default()
    };
    let gone = controller
        .controller_unpublish_volume(timed(unpublish))
        .await;
    gone.context("ControllerUnpublishVolume")?;
    let delete = DeleteVolumeRequest {
        volume_id,
        ..DeleteVolumeRequest::default()
    };
    let deleted = controller.delete_volume(timed(delete)).await;
    deleted.context("DeleteVolume")?;
    Ok(())
}

fn timed<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(TIMEOUT);
    request
}

async fn control(endpoint: &str, what: &str) -> anyhow::Result<Value> {
    let url = format!("{endpoint}/_control/{what}");
    let client = reqwest::Client::builder().timeout(TIMEOUT).build()?;
    let answer = client.get(url).send().await?.error_for_status()?;
    Ok(answer.json().await?)
}

fn ids(rows: &Value) -> Vec<String> {
    let rows = rows.as_array().into_iter().flatten();
    rows.filter_map(|row| row["id"].as_str().map(str::to_owned))
        .collect()
}

fn counts(calls: &Value) -> anyhow::Result<BTreeMap<String, (u64, u64)>> {
    let counts = calls["counts"].as_object().context("no counts")?;
    let number = |count: &Value, name: &str| count[name].as_u64().unwrap_or_default();
    Ok(counts
        .iter()
        .map(|(action, n)| (action.clone(), (number(n, "calls"), number(n, "refused"))))
        .collect())
}

impl Figures {
    fn print(&self, title: &str, floor: Duration) {
        let (wall, floor) = (self.wall.as_secs_f64(), floor.as_secs_f64());
        let total: u64 = self.calls.values().map(|(calls, _)| calls).sum();
        let each = share(total);
        println!("\n{title}");
        println!(
            "  wall              {wall:7.2} s    floor {floor:5.2} s    {:.2} x",
            wall / floor
        );
        println!(
            "  calls per volume  {each:7.2}      floor {LEAST_CALLS:5.2}      {:.2} x",
            each / LEAST_CALLS
        );
        for (action, (calls, refused)) in &self.calls {
            println!(
                "    {action:<15} {:7.2}      {calls} calls, {refused} refused",
                share(*calls)
            );
        }
        println!("  controller's peak {:7} KiB", self.peak_kib);
    }
}

/// So many calls to each volume.
fn share(calls: u64) -> f64 {
    u32::try_from(calls).map_or(f64::INFINITY, f64::from) / f64::from(VOLUMES)
}
