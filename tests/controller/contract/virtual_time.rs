//! The fake cloud in memory, in tokio's paused time.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use diskplugin::base::Deadline;
use diskplugin::model::{Disk, DiskId, DiskStatus};
use ecs::{Client, Kind};
use fake_ecs::{Cloud, Options, TokioClock};

use crate::common::memory_cloud::client;
use crate::contract::world::{attach, described, essd};

fn cloud(flags: &[&str]) -> Cloud {
    let options = Options::from_flags(flags.iter().copied()).unwrap();
    Cloud::in_memory(&options, Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH)))
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

async fn describe(ecs: &Client, disk: &DiskId) -> Disk {
    described(ecs, disk).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_disk_is_created_and_attached_in_virtual_time() {
    let cloud = cloud(&["--create-delay=1s", "--attach-delay=2s", "--nodes=i-one=cn-beijing-a"]);
    let ecs = client(&cloud);
    let disk = ecs.create_disk(soon(), &essd("pvc-1")).await.unwrap();
    assert_eq!(describe(&ecs, &disk).await.status, DiskStatus::Creating);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(describe(&ecs, &disk).await.is_free());
    let instance = cloud.nodes()[0].id.parse().unwrap();
    attach(&ecs, &disk, "i-one").await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let row = describe(&ecs, &disk).await;
    assert!(row.is_in_use_on(&instance));
    assert_eq!(row.serial.unwrap().as_str(), &disk.as_str()[2..]);
    assert_eq!(row.performance_level.as_deref(), Some("PL1"));
}

#[tokio::test(start_paused = true)]
async fn calls_end_at_their_deadline() {
    let cloud = cloud(&["--latency=10s", "--nodes=i-one=cn-beijing-a"]);
    let ecs = client(&cloud);
    let deadline = Deadline::after(Duration::from_secs(3));
    let begun = tokio::time::Instant::now();
    let error = ecs.create_disk(deadline, &essd("pvc-1")).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Deadline);
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_call_takes_effect_also_if_its_caller_stops_waiting() {
    let cloud = cloud(&["--nodes=i-one=cn-beijing-a"]);
    let fault = json!({"action": "CreateDisk", "kind": {"delay-before": "10s"}});
    cloud.configure(&json!({"faults": [fault]})).unwrap();
    let deadline = Deadline::after(Duration::from_secs(3));
    let given_up = client(&cloud).create_disk(deadline, &essd("pvc-1")).await;
    assert_eq!(given_up.unwrap_err().kind(), Kind::Deadline);
    assert_eq!(cloud.state()["disks"], json!([]));
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(cloud.state()["disks"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_state_is_read_at_the_start_or_at_the_end_of_the_latency() {
    for (effect, status) in [("arrival", DiskStatus::Creating), ("departure", DiskStatus::Available)] {
        let effect = format!("--latency=effect={effect}");
        let latency = "--latency=DescribeDisks=2s";
        let cloud = cloud(&["--create-delay=1s", latency, &effect, "--nodes=i-one=cn-beijing-a"]);
        let ecs = client(&cloud);
        let disk = ecs.create_disk(soon(), &essd("pvc-1")).await.unwrap();
        assert_eq!(describe(&ecs, &disk).await.status, status, "{effect}");
    }
}
