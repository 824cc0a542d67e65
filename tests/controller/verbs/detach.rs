//! Detaching disks: idempotent, and only from the requested node.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn detach_returns_after_the_detachment_and_polls_rarely() {
    let setup = Setup::new(&["--detach-delay=3s"]);
    let disk = setup.attached("pvc-1").await;
    setup.cloud.clear_calls();
    let begun = Instant::now();
    setup.detach(&disk, &node_one()).await;
    assert!(begun.elapsed() <= Duration::from_secs(3) + POLL_TOLERANCE);
    assert!(setup.attachments(&disk).is_empty());
    assert_eq!(setup.cloud.calls()[0].action, "DetachDisk");
    assert_eq!(setup.calls("DetachDisk"), 1);
    assert!(setup.calls("DescribeDisks") <= 5);
}

#[tokio::test(start_paused = true)]
async fn detach_of_a_detached_or_deleted_disk_or_from_a_deleted_node_succeeds() {
    for alternatives in ["first", "last", "seeded"] {
        let setup = Setup::new(&["--detach-delay=1s"]);
        setup.configure(&json!({"rules": {"alternatives": alternatives}}));
        let disk = setup.attached("pvc-1").await;
        setup.detach(&disk, &node_one()).await;
        setup.detach(&disk, &node_one()).await;
        setup.detach_everywhere(&disk).await;
        setup.delete(&disk).await;
        setup.detach(&disk, &node_one()).await;
        setup.detach_everywhere(&disk).await;
        let disk = setup.attached("pvc-2").await;
        assert!(setup.cloud.remove_instance(node_one()));
        setup.detach(&disk, &node_one()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn detach_of_a_disk_on_another_node_succeeds_without_detaching_it() {
    for setup in Setup::alternatives(&[]) {
        let disk = setup.attached("pvc-1").await;
        setup.detach(&disk, &node_two()).await;
        assert_eq!(setup.attachments(&disk), [("i-one".to_owned(), "Attached".to_owned())]);
    }
}

#[tokio::test(start_paused = true)]
async fn detach_everywhere_includes_a_node_to_which_the_disk_is_attaching() {
    for flags in [
        &["--attach-delay=4s"][..],
        &["--stale=2s"],
        &["--stale=2s", "--attach-delay=4s", "--detach-delay=2s"],
    ] {
        let setup = Setup::new(flags);
        let disk = setup.disk("pvc-1").await;
        setup.attach_externally(&disk, &node_two()).await;
        let detached = setup.disks.detacher.detach_everywhere(minutes(1), &disk).await;
        detached.unwrap_or_else(|error| panic!("{flags:?}: {}", text(&error)));
        assert!(setup.attachments(&disk).is_empty());
        sleep(20).await;
        assert!(setup.attachments(&disk).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_stuck_detachment_exceeds_the_deadline_and_the_retry_succeeds_after_it_ends() {
    for setup in Setup::alternatives(&["--detach-delay=1s"]) {
        let disk = setup.attached("pvc-1").await;
        setup.fault("DetachDisk", &json!("fails-later"));
        // The second call ends because the operation is overdue.
        for limit in [20, 5] {
            let begun = Instant::now();
            let late = setup.try_detach(seconds(20), &disk, &node_one()).await.unwrap_err();
            // A call that ends with an observation takes slightly longer.
            assert_eq!(begun.elapsed().as_secs(), limit);
            let observed = format!("last observed: disk {disk} is Detaching, attached to i-one");
            let parts = ["detach disk", "from node i-one", &observed, "stop the instance"];
            assert_failure(&late, Failure::DetachStuck);
            assert_error(&late, FailureKind::DeadlineExceeded, &parts);
        }
        assert_eq!(setup.calls("DetachDisk"), 1);
        setup.cloud.release(&disk);
        setup.restarted().detach(&disk, &node_one()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn detach_succeeds_after_a_lost_response() {
    for loss in [
        "reset-before",
        "reset-after",
        "empty",
        "internal-error",
        "internal-error-after",
    ] {
        for stale in ["--stale=0s", "--stale=2s"] {
            let setup = Setup::new(&["--detach-delay=3s", stale]);
            let disk = setup.attached("pvc-1").await;
            setup.fault("DetachDisk", &json!(loss));
            setup.detach(&disk, &node_one()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn detach_of_an_attaching_disk_waits_and_then_detaches_it() {
    let setup = Setup::new(&["--attach-delay=5s"]);
    let disk = setup.disk("pvc-1").await;
    setup.attach_externally(&disk, &node_one()).await;
    setup.detach(&disk, &node_one()).await;
}

#[tokio::test(start_paused = true)]
async fn detach_waits_for_a_stopping_node_and_reports_the_cloud_code_at_the_deadline() {
    let setup = Setup::new(&[]);
    let disk = setup.attached("pvc-1").await;
    setup.configure(&json!({"delays": {"power": "5s"}}));
    setup.cloud.set_instance_power(node_one(), false);
    setup.detach(&disk, &node_one()).await;
    let disk = setup.attached("pvc-2").await;
    setup.configure(&json!({"delays": {"power": "1h"}}));
    setup.cloud.set_instance_power(node_one(), false);
    let late = setup.try_detach(seconds(20), &disk, &node_one()).await.unwrap_err();
    assert_names(&late, &[disk.as_str(), "i-one", "IncorrectInstanceStatus", "RequestId"]);
}
