//! Cancelled, concurrent and repeated calls.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::{Code, Request};

use diskplugin::csi::proto::controller_server::Controller;
use diskplugin::csi::proto::{ControllerUnpublishVolumeRequest, CreateSnapshotRequest};

use crate::service::kit::{NODE, OTHER, Stage, code, create, holders, new_volume, publication, range, within};

#[tokio::test(start_paused = true)]
async fn a_cancelled_create_makes_no_further_calls_and_the_retry_returns_its_disk() {
    // Before the call takes effect, while the disk is created, and while the response is in flight.
    for given_up_after in [0, 300, 700, 1500, 2400] {
        let stage = Stage::new(&["--create-delay=2s", "--latency=500ms"]);
        let waited = Duration::from_millis(given_up_after);
        let call = stage.create(new_volume("pvc-1"));
        assert!(tokio::time::timeout(waited, call).await.is_err());
        // The request in flight arrives; no further request is sent.
        tokio::time::sleep(Duration::from_millis(600)).await;
        let calls = stage.cloud.calls().len();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(stage.cloud.calls().len(), calls, "{given_up_after} ms");
        let made = stage.disks();
        assert!(made.len() <= 1);
        let volume = stage.create(new_volume("pvc-1")).await.unwrap();
        assert_eq!(stage.disks(), [&*volume.volume_id], "{given_up_after} ms");
        if let [made] = &made[..] {
            assert_eq!(*made, volume.volume_id, "{given_up_after} ms");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_publish_makes_no_further_calls_and_the_retry_finds_it_attached() {
    let stage = Stage::new(&["--attach-delay=3s"]);
    let volume = stage.volume("pvc-1").await;
    let call = stage.publish(&volume, NODE);
    assert!(tokio::time::timeout(Duration::from_secs(1), call).await.is_err());
    tokio::time::sleep(Duration::from_millis(600)).await;
    let calls = stage.cloud.calls().len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(stage.cloud.calls().len(), calls);
    stage.cloud.clear_calls();
    assert!(stage.publish(&volume, NODE).await.is_ok());
    // The order of the canceled call is resumed by a read.
    assert_eq!(stage.calls("AttachDisk"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_concurrent_call_for_the_same_volume_is_aborted() {
    let stage = Stage::new(&["--create-delay=2s", "--attach-delay=2s"]);
    let (first, second, other) = tokio::join!(
        stage.create(new_volume("pvc-1")),
        stage.create(new_volume("pvc-1")),
        stage.create(new_volume("pvc-2")),
    );
    let busy = second.unwrap_err();
    assert_eq!(busy.code(), Code::Aborted);
    assert!(busy.message().contains("pvc-1"), "{busy}");
    let (first, other) = (first.unwrap().volume_id, other.unwrap().volume_id);
    assert_eq!(stage.disks().len(), 2);
    let (published, refused, deleted, alone) = tokio::join!(
        stage.publish(&first, NODE),
        stage.publish(&first, OTHER),
        stage.delete(&first),
        stage.publish(&other, OTHER),
    );
    assert!(published.is_ok() && alone.is_ok());
    assert_eq!((code(refused), code(deleted)), (Code::Aborted, Code::Aborted));
}

#[tokio::test(start_paused = true)]
async fn the_volume_lock_is_released_after_every_failure() {
    let stage = Stage::new(&["--out-of-stock=*/*"]);
    assert_eq!(code(stage.create(new_volume("pvc-1")).await), Code::ResourceExhausted);
    stage.configure(&json!({"out_of_stock": [], "delays": {"create": "20s"}}));
    // The next attempt of the zone and category is due.
    tokio::time::sleep(Duration::from_secs(31)).await;
    let short = within(Duration::from_secs(5), new_volume("pvc-1"));
    let begun = Instant::now();
    let late = stage.service.create_volume(short).await.map(|_| ());
    assert_eq!(code(late), Code::DeadlineExceeded);
    // The response arrives before the caller cancels.
    assert!(begun.elapsed() < Duration::from_secs(5));
    let volume = stage.volume("pvc-1").await;
    stage.configure(&json!({"denied": ["AttachDisk"]}));
    for _ in 0..2 {
        assert_eq!(code(stage.publish(&volume, NODE).await), Code::PermissionDenied);
    }
    stage.configure(&json!({"denied": []}));
    assert!(stage.publish(&volume, NODE).await.is_ok());
    assert_eq!(stage.disks(), [volume]);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_error_has_the_last_state_and_a_new_process_completes_the_work() {
    let stage = Stage::new(&["--create-delay=30s", "--attach-delay=30s"]);
    let short = within(Duration::from_secs(10), new_volume("pvc-1"));
    let late = stage.service.create_volume(short).await.unwrap_err();
    let made = stage.disks();
    assert!(
        late.message().contains(&format!("disk {} is Creating", made[0])),
        "{late}"
    );
    let service = stage.restarted();
    let volume = create(&service, new_volume("pvc-1")).await.unwrap().volume_id;
    let short = within(Duration::from_secs(10), publication(&volume, NODE));
    let late = service.controller_publish_volume(short).await.unwrap_err();
    assert_eq!(late.code(), Code::DeadlineExceeded);
    for part in [volume.as_str(), NODE, "is Attaching"] {
        assert!(late.message().contains(part), "{late}");
    }
    let service = stage.restarted();
    let publish = Request::new(publication(&volume, NODE));
    assert!(service.controller_publish_volume(publish).await.is_ok());
    assert_eq!(stage.disks(), [volume]);
}

#[tokio::test(start_paused = true)]
async fn thirty_concurrent_volume_life_cycles_leave_no_resources() {
    let delays = [
        "--create-delay=500ms",
        "--attach-delay=2s",
        "--detach-delay=2s",
        "--stale=1s",
    ];
    let stage = Stage::new(&delays);
    let mut lives = JoinSet::new();
    for n in 0..30 {
        let service = stage.service.clone();
        lives.spawn(async move {
            let mut new = new_volume(&format!("pvc-{n}"));
            new.capacity_range = Some(range(20 + n, 0));
            let node = if n % 2 == 0 { NODE } else { OTHER };
            let volume = create(&service, new).await.unwrap().volume_id;
            let long = Duration::from_secs(300);
            let publish = within(long, publication(&volume, node));
            service.controller_publish_volume(publish).await.unwrap();
            let unpublish = diskplugin::csi::proto::ControllerUnpublishVolumeRequest {
                volume_id: volume.clone(),
                node_id: node.to_owned(),
                ..Default::default()
            };
            service
                .controller_unpublish_volume(within(long, unpublish))
                .await
                .unwrap();
            let delete = diskplugin::csi::proto::DeleteVolumeRequest {
                volume_id: volume,
                ..Default::default()
            };
            service.delete_volume(within(long, delete)).await.unwrap();
        });
    }
    lives.join_all().await;
    assert!(stage.disks().is_empty());
    let per_volume = |action: &str| stage.calls(action) / 30;
    let writes = ["CreateDisk", "AttachDisk", "DetachDisk", "DeleteDisk"];
    assert_eq!(writes.map(per_volume), [1; 4]);
}

#[tokio::test(start_paused = true)]
async fn a_new_process_completes_the_operations_of_the_previous_one() {
    let stage = Stage::new(&[
        "--attach-delay=20s",
        "--detach-delay=20s",
        "--cut-delay=20s",
        "--create-delay=20s",
    ]);
    let soon = Duration::from_secs(3);
    let late = stage.service.create_volume(within(soon, new_volume("pvc-1"))).await;
    assert!(late.is_err());
    let volume = create(&stage.restarted(), new_volume("pvc-1")).await.unwrap().volume_id;
    assert_eq!(stage.disks(), std::slice::from_ref(&volume));

    let publish = || publication(&volume, NODE);
    let late = stage.service.controller_publish_volume(within(soon, publish())).await;
    assert!(late.is_err());
    let request = Request::new(publish());
    stage.restarted().controller_publish_volume(request).await.unwrap();

    let snapshot = || CreateSnapshotRequest {
        name: "snap".to_owned(),
        source_volume_id: volume.clone(),
        ..Default::default()
    };
    let late = stage.service.create_snapshot(within(soon, snapshot())).await;
    assert!(late.is_err());
    let made = stage.restarted().create_snapshot(Request::new(snapshot())).await;
    let made = made.unwrap().into_inner().snapshot.unwrap();
    let rows = stage.cloud.state()["snapshots"].clone();
    assert_eq!(
        (rows.as_array().unwrap().len(), &rows[0]["id"]),
        (1, &json!(made.snapshot_id))
    );

    let unpublish = || ControllerUnpublishVolumeRequest {
        volume_id: volume.clone(),
        node_id: NODE.to_owned(),
        ..Default::default()
    };
    let late = stage
        .service
        .controller_unpublish_volume(within(soon, unpublish()))
        .await;
    assert!(late.is_err());
    let request = Request::new(unpublish());
    stage.restarted().controller_unpublish_volume(request).await.unwrap();
    assert!(holders(&stage, &volume).is_empty());
    assert_eq!((stage.calls("CreateDisk"), stage.calls("CreateSnapshot")), (1, 1));
}
