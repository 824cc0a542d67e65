//! Calls that are given up, that meet each other, and that come again after a failure.

use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::{Code, Request};

use diskplugin::csi::proto::controller_server::Controller;

use crate::kit::{NODE, OTHER, Stage, code, create, new_volume, publication, range, within};

#[tokio::test(start_paused = true)]
async fn a_create_whose_caller_gives_up_midway_costs_no_more_calls_and_the_repeat_returns_its_disk()
{
    // Before the call has its effect, while the disk is made, and while its answer is on its way.
    for given_up_after in [0, 300, 700, 1500, 2400] {
        let stage = Stage::new(&["--create-delay=2s", "--latency=500ms"]);
        let waited = Duration::from_millis(given_up_after);
        let call = stage.create(new_volume("pvc-1"));
        assert!(tokio::time::timeout(waited, call).await.is_err());
        // What is on its way at that moment arrives; nothing is sent after it.
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
async fn a_publish_whose_caller_gives_up_costs_no_more_calls_and_the_repeat_finds_it_attached() {
    let stage = Stage::new(&["--attach-delay=3s"]);
    let volume = stage.volume("pvc-1").await;
    let call = stage.publish(&volume, NODE);
    assert!(
        tokio::time::timeout(Duration::from_secs(1), call)
            .await
            .is_err()
    );
    tokio::time::sleep(Duration::from_millis(600)).await;
    let calls = stage.cloud.calls().len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(stage.cloud.calls().len(), calls);
    stage.cloud.clear_calls();
    assert!(stage.publish(&volume, NODE).await.is_ok());
    assert_eq!(stage.calls("AttachDisk"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_second_of_two_calls_for_one_volume_is_aborted_and_other_volumes_are_not() {
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
    assert_eq!(
        (code(refused), code(deleted)),
        (Code::Aborted, Code::Aborted)
    );
}

#[tokio::test(start_paused = true)]
async fn the_volume_is_free_again_after_a_failure_of_any_kind() {
    let stage = Stage::new(&["--out-of-stock=*/*"]);
    assert_eq!(
        code(stage.create(new_volume("pvc-1")).await),
        Code::ResourceExhausted
    );
    stage.configure(&json!({"out_of_stock": [], "delays": {"create": "20s"}}));
    let short = within(Duration::from_secs(5), new_volume("pvc-1"));
    let begun = Instant::now();
    let late = stage.service.create_volume(short).await.map(|_| ());
    assert_eq!(code(late), Code::DeadlineExceeded);
    // The answer arrives before the caller gives up.
    assert!(begun.elapsed() < Duration::from_secs(5));
    let volume = stage.volume("pvc-1").await;
    stage.configure(&json!({"denied": ["AttachDisk"]}));
    for _ in 0..2 {
        assert_eq!(
            code(stage.publish(&volume, NODE).await),
            Code::PermissionDenied
        );
    }
    stage.configure(&json!({"denied": []}));
    assert!(stage.publish(&volume, NODE).await.is_ok());
    assert_eq!(stage.disks(), [volume]);
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_told_with_what_was_seen_and_a_new_process_ends_the_work() {
    let stage = Stage::new(&["--create-delay=30s", "--attach-delay=30s"]);
    let short = within(Duration::from_secs(10), new_volume("pvc-1"));
    let late = stage.service.create_volume(short).await.unwrap_err();
    let made = stage.disks();
    assert!(
        late.message()
            .contains(&format!("disk {} is Creating", made[0])),
        "{late}"
    );
    let service = stage.restarted();
    let volume = create(&service, new_volume("pvc-1"))
        .await
        .unwrap()
        .volume_id;
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
async fn thirty_volumes_at_once_live_and_go_without_a_trace() {
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
