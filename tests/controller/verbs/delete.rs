//! Deleting disks: attached disks and disks of other owners are kept, and a deletion is reported only with proof.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn delete_of_an_attached_or_attaching_disk_fails_and_names_the_node() {
    for is_attaching in [false, true] {
        for stale in ["--stale=0s", "--stale=2s"] {
            let setup = Setup::new(&["--attach-delay=3s", stale]);
            let disk = setup.disk("pvc-1").await;
            match is_attaching {
                true => setup.attach_externally(&disk, &node_one()).await,
                false => drop(setup.attach(&disk, &node_one()).await),
            }
            let rejected = setup.try_delete(minutes(1), &disk).await.unwrap_err();
            assert_failure(&rejected, Failure::DiskStillAttached);
            assert_error(&rejected, FailureKind::FailedPrecondition, &[disk.as_str(), "i-one"]);
            assert_eq!(setup.row(&disk)["status"], "In_use");
            assert!(is_attaching || setup.calls("DeleteDisk") == 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn delete_after_detach_succeeds_with_stale_reads() {
    for seed in seeds(20) {
        let setup = Setup::new(&["--stale=0s..2s", "--stale-jumping", "--detach-delay=2s", &seed]);
        let disk = setup.attached("pvc-1").await;
        setup.detach(&disk, &node_one()).await;
        setup.delete(&disk).await;
    }
}

#[tokio::test(start_paused = true)]
async fn delete_of_an_untagged_disk_or_a_disk_of_another_cluster_fails() {
    let setup = Setup::new(&[]);
    let untagged = setup.unmanaged_disk(Tags::new()).await;
    let foreign = setup.other_cluster().create(&new_disk("pvc-1")).await.id;
    // Created by this process, which remembers its tags.
    let retagged = setup.disk("pvc-2").await;
    let theirs = ecs::TagResources {
        targets: ecs::TagTarget::Disks(vec![retagged.clone()]),
        tags: [(tag::CLUSTER.to_owned(), "third".to_owned())].into(),
    };
    client(&setup.cloud).tag_resources(minutes(1), &theirs).await.unwrap();
    for (disk, owner) in [(untagged, "missing"), (foreign, "other-cluster"), (retagged, "third")] {
        let rejected = setup.try_delete(minutes(1), &disk).await.unwrap_err();
        let parts = [disk.as_str(), owner, tag::CLUSTER, "cluster test"];
        assert_error(&rejected, FailureKind::FailedPrecondition, &parts);
        assert_eq!(setup.row(&disk)["status"], "Available");
    }
    assert_eq!(setup.calls("DeleteDisk"), 0);
}

#[tokio::test(start_paused = true)]
async fn delete_of_an_externally_deleted_disk_succeeds() {
    let setup = Setup::new(&["--missing-is-error", "--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    // Stale reads still return the disk.
    client(&setup.cloud).delete_disk(minutes(1), &disk).await.unwrap();
    // The cloud accepted its creation just now, and new disks can be hidden for ten minutes.
    let delete = async || setup.try_delete(seconds(20), &disk).await;
    retry(900, delete).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_new_disk_missing_from_stale_reads_is_deleted() {
    for flags in [&["--stale=2s"][..], &["--stale=0s..2s", "--stale-jumping"]] {
        let setup = Setup::new(flags);
        let tags = Tags::from([(tag::CLUSTER.to_owned(), "test".to_owned())]);
        let disk = setup.unmanaged_disk(tags).await;
        setup.delete(&disk).await;
        assert!(setup.rows().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn delete_waits_while_the_disk_is_being_created_or_initialized() {
    for setup in Setup::alternatives(&["--create-delay=2s", "--load-delay=20s"]) {
        let source = setup.disk("source").await;
        let snapshot = setup.snapshot("snap", &source).await;
        let new = restored("pvc-1", &snapshot);
        setup.try_create(seconds(1), &new).await.unwrap_err();
        let disk = setup.other_disk(&source);
        let begun = Instant::now();
        setup.delete(&disk).await;
        assert!(begun.elapsed() >= Duration::from_secs(20), "{:?}", begun.elapsed());
        assert_eq!(setup.only_disk(), source);
        // At most one attempt per poll.
        assert!(setup.calls("DeleteDisk") <= 46, "{}", setup.calls("DeleteDisk"));
    }
}

#[tokio::test(start_paused = true)]
async fn delete_of_an_initializing_disk_reports_the_cloud_code_at_the_deadline() {
    let setup = Setup::new(&["--load-delay=10m"]);
    let source = setup.disk("source").await;
    let snapshot = setup.snapshot("snap", &source).await;
    let new = restored("pvc-1", &snapshot);
    let disk = setup.create(&new).await.id;
    let late = setup.try_delete(seconds(30), &disk).await.unwrap_err();
    assert_names(&late, &[disk.as_str(), "IncorrectDiskStatus.Initializing", "RequestId"]);
    assert_eq!(late.failure_kind(), FailureKind::Aborted);
}

#[tokio::test(start_paused = true)]
async fn a_lost_delete_response_is_not_final_and_the_retry_succeeds() {
    for loss in ["reset-before", "reset-after", "internal-error-after"] {
        let setup = Setup::new(&["--missing-is-error", "--stale=2s"]);
        let disk = setup.disk("pvc-1").await;
        let delete = setup.try_delete(seconds(1), &disk);
        setup.lose("DeleteDisk", &json!(loss), delete).await;
        setup.delete(&disk).await;
        assert!(setup.rows().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_long_blocked_deletion_is_attempted_rarely() {
    let setup = Setup::new(&["--cut-delay=60s", "--attach-delay=5s"]);
    let disk = setup.disk("pvc-1").await;
    let snapshot = new_snapshot("snap", &disk);
    setup.try_snapshot(seconds(1), &snapshot).await.unwrap_err();
    let other = setup.disk("pvc-2").await;
    // Even while other operations poll faster.
    let busy = async {
        for _ in 0..15 {
            setup.attach(&other, &node_one()).await;
            setup.detach(&other, &node_one()).await;
        }
    };
    let delete = async || setup.try_delete(minutes(5), &disk).await;
    let (deleted, ()) = tokio::join!(retry(300, delete), busy);
    deleted.unwrap();
    assert!(setup.row(&disk).is_null());
    let attempts = setup.calls("DeleteDisk");
    assert!((10..=30).contains(&attempts), "{attempts} attempts in a minute");
}

#[tokio::test(start_paused = true)]
async fn an_empty_response_does_not_prove_a_disk_deleted() {
    for others in [0, 1] {
        let setup = Setup::new(&["--missing-is-error"]);
        setup.other_disks(others).await;
        let disk = setup.disk("pvc-1").await;
        let restarted = setup.restarted();
        sleep(60).await;
        setup.hide_disks(30);
        for process in [&setup, &restarted] {
            let rejected = process.try_delete(seconds(9), &disk).await.unwrap_err();
            let parts = ["ABSENCE_UNPROVEN", "ecs:DescribeDisks", disk.as_str()];
            assert_error(&rejected, FailureKind::Unavailable, &parts);
        }
        assert_eq!(setup.row(&disk)["status"], "Available");
        sleep(30).await;
        restarted.delete(&disk).await;
        assert!(setup.row(&disk).is_null());
    }
}

#[tokio::test(start_paused = true)]
async fn delete_of_a_nonexistent_disk_costs_few_calls() {
    for others in [0, 1] {
        let setup = Setup::new(&[]);
        setup.other_disks(others).await;
        sleep(60).await;
        setup.cloud.clear_calls();
        let begun = Instant::now();
        let none = "d-none".parse().unwrap();
        let restarted = setup.restarted();
        for _ in 0..2 {
            let unproven = restarted.try_delete(seconds(20), &none).await;
            assert_eq!(unproven.unwrap_err().failure(), Failure::AbsenceUnproven);
            assert!(begun.elapsed() <= Duration::from_millis(7000));
        }
        sleep(60).await;
        restarted.try_delete(seconds(20), &none).await.unwrap();
        let calls = setup.cloud.calls();
        // Two reads per call, the search for a canary, and the last read.
        assert!(calls.len() <= 8, "{calls:#?}");
        assert!(calls.iter().all(|call| call.action != "DeleteDisk"));
    }
}
