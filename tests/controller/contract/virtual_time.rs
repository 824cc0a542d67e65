//! The fake cloud in memory, in tokio's paused time.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use diskplugin::base::Deadline;
use diskplugin::model::DiskStatus;
use ecs::Kind;
use fake_ecs::{Cloud, Options, TokioClock};

use crate::common::memory_cloud::client;
use crate::contract::world::{described, essd};

fn cloud(flags: &[&str]) -> Cloud {
    let options = Options::from_flags(flags.iter().copied()).unwrap();
    Cloud::in_memory(&options, Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH)))
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
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
        assert_eq!(described(&ecs, &disk).await.unwrap().status, status, "{effect}");
    }
}
