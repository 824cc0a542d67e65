//! The API in memory, in tokio's paused time.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;

use crate::base::{Deadline, TokioClock};
use crate::cloud::{AttachDisk, CreateDisk, DescribeDisks, EcsApi, Kind};
use crate::model::{Category, ClientToken, Disk, DiskId, DiskStatus, Gib, Tags};
use crate::sim::{Cloud, Options, SimEcs};

fn cloud(flags: &[&str]) -> Cloud {
    let options = Options::from_flags(flags.iter().copied()).unwrap();
    Cloud::in_memory(
        &options,
        Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH)),
    )
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

fn request(cloud: &Cloud) -> CreateDisk {
    CreateDisk {
        zone: Some(cloud.nodes()[0].zone.clone()),
        category: Category::CloudEssd,
        performance_level: None,
        provisioned_iops: None,
        bursting: false,
        multi_attach: false,
        resource_group: None,
        size: Gib(20),
        name: "pvc-1".to_owned(),
        snapshot: None,
        encrypted: false,
        kms_key: None,
        tags: Tags::from([("k".to_owned(), "v".to_owned())]),
        token: ClientToken::derive("CreateDisk", ["pvc-1"]),
    }
}

async fn describe(ecs: &SimEcs, disk: &DiskId) -> Disk {
    let query = DescribeDisks {
        ids: Some(vec![disk.clone()]),
        ..DescribeDisks::default()
    };
    let page = ecs.describe_disks(soon(), &query).await.unwrap();
    page.rows.into_iter().next().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_disk_is_created_and_attached_in_virtual_time() {
    let cloud = cloud(&["--create-delay=1s", "--attach-delay=2s", "--nodes=1"]);
    let ecs = cloud.ecs();
    let disk = ecs.create_disk(soon(), &request(&cloud)).await.unwrap();
    assert_eq!(describe(&ecs, &disk).await.status, DiskStatus::Creating);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(describe(&ecs, &disk).await.is_free());
    let instance = cloud.nodes()[0].id.clone();
    let attach = AttachDisk {
        disk: disk.clone(),
        instance: instance.clone(),
        force: false,
        delete_with_instance: false,
    };
    ecs.attach_disk(soon(), &attach).await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let row = describe(&ecs, &disk).await;
    assert!(row.is_in_use_on(&instance));
    assert_eq!(row.serial.unwrap().as_str(), &disk.as_str()[2..]);
    assert_eq!(row.performance_level.as_deref(), Some("PL1"));
}

#[tokio::test(start_paused = true)]
async fn an_error_carries_code_status_and_request_id() {
    let cloud = cloud(&["--missing-is-error"]);
    let error = cloud
        .ecs()
        .delete_disk(soon(), &"d-none".parse().unwrap())
        .await;
    let error = error.unwrap_err();
    assert_eq!(error.code(), Some("InvalidDiskId.NotFound"));
    assert_eq!(error.status(), Some(404));
    assert!(error.request_id().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_is_ambiguous_and_the_repeated_call_returns_the_disk() {
    let cloud = cloud(&[]);
    let fault = json!({"action": "CreateDisk", "kind": "reset-after"});
    cloud.configure(&json!({"faults": [fault]})).unwrap();
    let ecs = cloud.ecs();
    let lost = ecs.create_disk(soon(), &request(&cloud)).await.unwrap_err();
    assert_eq!(lost.kind(), Kind::Ambiguous);
    let disk = ecs.create_disk(soon(), &request(&cloud)).await.unwrap();
    assert_eq!(cloud.state()["disks"][0]["id"], disk.as_str());
    assert_eq!(cloud.state()["disks"].as_array().unwrap().len(), 1);
    assert_eq!(cloud.counts()["CreateDisk"].calls, 2);
}

#[tokio::test(start_paused = true)]
async fn calls_end_at_their_deadline() {
    let cloud = cloud(&["--latency=10s"]);
    let ecs = cloud.ecs();
    let deadline = Deadline::after(Duration::from_secs(3));
    let begun = tokio::time::Instant::now();
    let error = ecs
        .create_disk(deadline, &request(&cloud))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), Kind::Deadline);
    assert_eq!(begun.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_call_abandoned_before_its_effect_has_none() {
    let cloud = cloud(&[]);
    let fault = json!({"action": "CreateDisk", "kind": {"delay-before": "10s"}});
    cloud.configure(&json!({"faults": [fault]})).unwrap();
    let deadline = Deadline::after(Duration::from_secs(3));
    let given_up = cloud.ecs().create_disk(deadline, &request(&cloud)).await;
    assert!(given_up.is_err());
    assert_eq!(cloud.state()["disks"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn the_state_is_read_at_the_start_or_at_the_end_of_the_latency() {
    for (effect, status) in [
        ("arrival", DiskStatus::Creating),
        ("departure", DiskStatus::Available),
    ] {
        let effect = format!("--latency=effect={effect}");
        let latency = "--latency=DescribeDisks=2s";
        let cloud = cloud(&["--create-delay=1s", latency, &effect]);
        let ecs = cloud.ecs();
        let disk = ecs.create_disk(soon(), &request(&cloud)).await.unwrap();
        assert_eq!(describe(&ecs, &disk).await.status, status, "{effect}");
    }
}
