//! Cancelled, concurrent and repeated calls.

use crate::service::kit::*;

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
        sleep(60).await;
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
    sleep(60).await;
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
    assert_error(second, Code::Aborted, &["pvc-1"]);
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
    sleep(31).await;
    let begun = Instant::now();
    let late = stage.within(Duration::from_secs(5)).create(new_volume("pvc-1")).await;
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
        let (stage, long) = (stage.clone(), stage.within(Duration::from_secs(300)));
        lives.spawn(async move {
            let new = sized(&format!("pvc-{n}"), 20 + n, 0);
            let node = if n % 2 == 0 { NODE } else { OTHER };
            let volume = stage.create(new).await.unwrap().volume_id;
            long.publish(&volume, node).await.unwrap();
            long.unpublish(&volume, node).await.unwrap();
            long.delete(&volume).await.unwrap();
        });
    }
    lives.join_all().await;
    assert!(stage.disks().is_empty());
    let per_volume = |action: &str| stage.calls(action) / 30;
    let writes = ["CreateDisk", "AttachDisk", "DetachDisk", "DeleteDisk"];
    assert_eq!(writes.map(per_volume), [1; 4]);
}
