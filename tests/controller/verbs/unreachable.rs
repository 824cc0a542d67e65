//! ControllerUnpublishVolume and failover for nodes that are stopped or deleted, or whose detach is stuck.

use crate::verbs::kit::*;

fn far() -> InstanceId {
    "i-far".parse().unwrap()
}

async fn attached_disk(setup: &Setup) -> DiskId {
    let disk = setup.attached("pvc-1").await;
    sleep(5).await;
    disk
}

#[tokio::test(start_paused = true)]
async fn a_disk_is_detached_from_a_stopped_node_and_attached_to_another() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&[stale]);
        let disk = attached_disk(&setup).await;
        setup.cloud.set_instance_power(node_one(), false);
        sleep(300).await;
        // The disk stays attached until ControllerUnpublishVolume.
        let early = setup.try_attach(minutes(1), &disk, &node_two()).await;
        assert!(matches!(early, Err(Error::InUseElsewhere { .. })), "{early:?}");
        setup.detach(&disk, &node_one()).await;
        setup.attach(&disk, &node_two()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn detach_succeeds_if_the_node_is_deleted_during_the_detach() {
    for setup in Setup::alternatives(&["--detach-delay=20s"]) {
        let disk = attached_disk(&setup).await;
        let remove_node = async {
            sleep(3).await;
            assert!(setup.cloud.remove_instance(node_one()));
        };
        let node = node_one();
        let (detached, ()) = tokio::join!(setup.try_detach(minutes(2), &disk, &node), remove_node);
        detached.unwrap();
        assert!(setup.attachments(&disk).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn detach_from_a_deleted_node_waits_until_the_disk_shows_no_attachment() {
    let setup = Setup::new(&["--detach-delay=30s"]);
    let disk = attached_disk(&setup).await;
    assert!(setup.cloud.remove_instance(node_one()));
    let early = setup.try_detach(seconds(10), &disk, &node_one()).await.unwrap_err();
    assert_failure(&early, Failure::NodeReleased);
    assert_eq!(setup.attachments(&disk).len(), 1);
    let node = node_one();
    with_retries(|| setup.try_detach(minutes(1), &disk, &node))
        .await
        .unwrap();
    assert!(setup.attachments(&disk).is_empty());
}

/// A regional disk whose detach from a node in zone a has been stuck for five seconds.
async fn stuck_disk(setup: &Setup) -> DiskId {
    let disk = setup.regional_disk();
    setup.attach(&disk, &node_one()).await;
    sleep(5).await;
    setup.fault("DetachDisk", &json!("fails-later"));
    setup.try_detach(seconds(5), &disk, &node_one()).await.unwrap_err();
    disk
}

#[tokio::test(start_paused = true)]
async fn a_stuck_detach_is_forced_at_once_from_a_stopped_node_and_after_a_minute_from_a_deleted_one() {
    for deleted in [false, true] {
        let setup = Setup::new(&["--attach-delay=1s"]);
        let disk = stuck_disk(&setup).await;
        if deleted {
            setup.configure(&json!({"delays": {"detach": "1h"}}));
            assert!(setup.cloud.remove_instance(node_one()));
        } else {
            setup.cloud.set_instance_power(node_one(), false);
            sleep(120).await;
        }
        let (started, node) = (Instant::now(), far());
        let row = with_retries(|| setup.try_attach(minutes(2), &disk, &node)).await;
        row.unwrap_or_else(|error| panic!("deleted: {deleted}: {}", text(&error)));
        assert_eq!(setup.attachments(&disk), attached_to(&far()));
        let elapsed = started.elapsed();
        let at_once = elapsed < Duration::from_secs(10);
        let after_a_minute = elapsed >= Duration::from_secs(55);
        assert!(if deleted { after_a_minute } else { at_once }, "{elapsed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_attached_externally_after_a_rejected_forced_attach_is_not_detached_again() {
    let setup = Setup::new(&["--attach-delay=1s"]);
    let disk = stuck_disk(&setup).await;
    setup.cloud.set_instance_power(node_one(), false);
    sleep(120).await;
    setup.cloud.clear_calls();
    let conflict = error_code(403, "InvalidOperation.Conflict");
    let second = json!({"action": "AttachDisk", "from": 2, "times": 1, "kind": conflict});
    setup.configure(&json!({"faults": [second]}));
    let attach_externally = async {
        while setup.calls("AttachDisk") < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        setup.cloud.release(&disk);
        let (external, ecs) = (attach_to(&disk, &node_two()), client(&setup.cloud));
        while ecs.attach_disk(minutes(1), &external).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let node = far();
    let (rejected, ()) = tokio::join!(setup.try_attach(minutes(2), &disk, &node), attach_externally);
    assert!(
        matches!(&rejected, Err(Error::InUseElsewhere { holder, .. }) if *holder == node_two()),
        "{rejected:?}"
    );
    assert_eq!(setup.attachments(&disk), attached_to(&node_two()));
    let calls = setup.cloud.calls();
    let force = |v: &String| v == "true";
    let forced = calls.iter().filter(|call| call.params.get("Force").is_some_and(force));
    assert_eq!(forced.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stuck_detach_from_a_running_node_is_forced_after_a_minute_and_a_disk_in_use_never() {
    let setup = Setup::new(&["--attach-delay=1s"]);
    let disk = stuck_disk(&setup).await;
    let (started, node) = (Instant::now(), far());
    with_retries(|| setup.try_attach(minutes(2), &disk, &node))
        .await
        .unwrap();
    assert!(started.elapsed() >= Duration::from_secs(55), "{:?}", started.elapsed());
    assert_eq!(setup.attachments(&disk), attached_to(&far()));
    // The disk is in use: without ControllerUnpublishVolume it is not detached, even if its node is stopped.
    setup.cloud.set_instance_power(far(), false);
    sleep(300).await;
    setup.cloud.clear_calls();
    let rejected = setup.try_attach(minutes(2), &disk, &node_one()).await;
    assert!(matches!(rejected, Err(Error::InUseElsewhere { .. })), "{rejected:?}");
    let calls = setup.cloud.calls();
    let mut forced = calls.iter().filter_map(|call| call.params.get("Force"));
    assert!(forced.all(|value| value == "false"));
}

#[tokio::test(start_paused = true)]
async fn attach_waits_for_a_stuck_detach_that_cannot_be_forced() {
    let setup = Setup::new(&["--attach-delay=1s"]);
    let disk = stuck_disk(&setup).await;
    // A forced attach is supported only between zones.
    let late = setup.try_attach(seconds(90), &disk, &node_two()).await.unwrap_err();
    assert_names(&late, &[disk.as_str()]);
    setup.cloud.release(&disk);
    setup.attach(&disk, &node_two()).await;
}
