//! Conclusions from the cloud's responses: only those that the responses prove.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn hidden_new_disks_are_created_once() {
    for hidden in ["6s", "60s", "300s"] {
        let setup = Setup::new(&["--create-delay=1s"]);
        setup.configure(&json!({"rules": {"hidden": hidden}}));
        for claim in 0..5 {
            let new = new_disk(&format!("pvc-{claim}"));
            let disk = retry(400, async || setup.try_create(seconds(30), &new).await);
            let disk = disk.await.unwrap_or_else(|error| panic!("{hidden}: {}", text(&error)));
            assert_eq!(setup.rows().len(), claim + 1);
            assert_eq!(setup.row(&disk.id)["status"], "Available");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn hidden_new_snapshots_and_groups_are_created_once() {
    let setup = Setup::new(&["--cut-delay=1s"]);
    let (one, two) = two_disks(&setup).await;
    setup.snapshot("other", &one).await;
    setup.configure(&json!({"rules": {"hidden": "100s"}}));
    let new = new_snapshot("snap", &one);
    let snapshotter = &setup.disks.snapshotter;
    let created = retry(200, async || snapshotter.create(seconds(30), &new).await).await;
    created.unwrap_or_else(|error| panic!("{}", text(&error)));
    assert_eq!(setup.snapshots().len(), 2);
    let new = new_group("group", &[&one, &two]);
    let created = retry(200, async || snapshotter.create_group(seconds(30), &new).await).await;
    created.unwrap_or_else(|error| panic!("{}", text(&error)));
    assert_groups(&setup, 1, 4);
}

/// The access key of another account.
const OTHER_KEY: &str = "--access-key-id=LTAI5tOTHER";

/// A process whose Secret becomes the key of another account.
fn two_accounts(first: &Setup, second: &Setup) -> (Arc<Overlay>, Setup) {
    let overlay = Overlay::new(&[&first.cloud, &second.cloud]);
    let disks = established(overlay.client());
    let cloud = first.cloud.clone();
    (overlay, Setup { cloud, disks })
}

#[tokio::test(start_paused = true)]
async fn the_access_key_of_another_account_deletes_and_detaches_nothing() {
    for other_has_disks in [false, true] {
        let setup = Setup::new(&["--missing-is-error"]);
        // An account without the nodes of the cluster.
        let other = Setup::with_nodes(1, &["--missing-is-error", OTHER_KEY]);
        if other_has_disks {
            other.unmanaged_disk(Default::default()).await;
        }
        let disk = setup.attached("pvc-1").await;
        let (key, process) = two_accounts(&setup, &other);
        key.use_account(1);
        let end = Instant::now() + Duration::from_secs(200);
        while Instant::now() < end {
            let detached = process.try_detach(seconds(20), &disk, &node_one()).await;
            let deleted = process.try_delete(seconds(20), &disk).await;
            for error in [detached.unwrap_err(), deleted.unwrap_err()] {
                assert_not_final(&error);
            }
            sleep(10).await;
        }
        assert_eq!(setup.row(&disk)["status"], "In_use");
        // Reads with the other key have no effect any longer.
        key.use_account(0);
        process.detach(&disk, &node_one()).await;
        process.delete(&disk).await;
        assert!(setup.rows().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn absence_is_proven_by_two_reads_with_a_canary_a_minute_apart() {
    // An account without the nodes of the cluster.
    let setup = Setup::with_nodes(1, &[]);
    let disk = setup.disk("pvc-1").await;
    sleep(600).await;
    client(&setup.cloud).delete_disk(minutes(1), &disk).await.unwrap();
    let restarted = setup.restarted();
    // The new process has no record of a node yet, and the cluster has no other disk.
    let delete = async || restarted.try_delete(seconds(20), &disk).await;
    let unproven = retry(200, delete).await.unwrap_err();
    assert_failure(&unproven, Failure::AbsenceUnproven);
    setup.disk("canary").await;
    let begun = Instant::now();
    retry(200, delete).await.unwrap();
    let elapsed = begun.elapsed();
    assert!((60..80).contains(&elapsed.as_secs()), "{elapsed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rejection_after_a_takeover_is_not_final_while_an_earlier_response_may_be_lost() {
    let denied = error_code(403, "Forbidden.RAM");
    let unknown = error_code(404, "InvalidAccessKeyId.NotFound");
    for (kind, is_read_denied) in [(&denied, false), (&unknown, true)] {
        let setup = Setup::new(&["--create-delay=1s"]);
        let new = new_disk("pvc-1");
        setup.lose_create(&json!("reset-after"), &new).await;
        let created = setup.only_disk();
        let restarted = setup.restarted();
        let mut faults = vec![json!({"action": "CreateDisk", "times": 10_000, "kind": kind})];
        faults.push(match is_read_denied {
            true => json!({"action": "DescribeDisks", "times": 10_000, "kind": kind}),
            false => json!({"action": "DescribeDisks", "for": "150s", "kind": "no-rows"}),
        });
        setup.replace_faults(&json!(faults));
        for _ in 0..4 {
            let refused = restarted.try_create(seconds(20), &new).await.unwrap_err();
            assert_not_final(&refused);
            sleep(10).await;
        }
        setup.clear_faults();
        let found = retry(100, async || restarted.try_create(seconds(20), &new).await).await;
        assert_eq!((found.unwrap().id, setup.only_disk()), (created.clone(), created));
    }
}

#[tokio::test(start_paused = true)]
async fn a_create_never_returns_a_disk_that_the_previous_process_deleted() {
    let setup = Setup::new(&["--stale=2s", "--create-delay=1s"]);
    setup.disk("canary").await;
    let new = new_disk("pvc-1");
    let first = setup.create(&new).await.id;
    sleep(3).await;
    setup.delete(&first).await;
    let restarted = setup.restarted();
    let create = async || {
        let created = restarted.try_create(seconds(20), &new).await;
        created.inspect_err(|error| assert_error(error, FailureKind::Unavailable, &[]))
    };
    let created = retry(1000, create).await.unwrap();
    assert_ne!(created.id, first);
    assert!(!setup.row(&created.id).is_null());
    assert_eq!(setup.rows().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_create_never_returns_a_snapshot_or_group_that_the_previous_process_deleted() {
    let setup = Setup::new(&["--stale=2s", "--cut-delay=1s"]);
    let (one, two) = two_disks(&setup).await;
    setup.snapshot("canary", &one).await;
    setup.create_group(&new_group("canary", &[&one, &two])).await;
    let (snapshot, group) = (new_snapshot("snap", &one), new_group("group", &[&one, &two]));
    let first = setup.snapshot("snap", &one).await;
    let first_group = setup.create_group(&group).await.id;
    sleep(3).await;
    setup.try_delete_snapshot(minutes(1), &first).await.unwrap();
    setup.delete_group(&first_group, &BTreeSet::new()).await.unwrap();
    let restarted = setup.restarted();
    let created = retry(2000, async || restarted.try_snapshot(seconds(20), &snapshot).await);
    assert_ne!(created.await.unwrap().id, first);
    let restarted = setup.restarted();
    let created = retry(2000, async || restarted.try_group(seconds(20), &group).await);
    assert_ne!(created.await.unwrap().id, first_group);
}

#[tokio::test(start_paused = true)]
async fn a_create_does_not_return_a_disk_in_an_unfinished_or_unknown_status() {
    for status in ["Deleting", "Transferring", "Creating"] {
        let setup = Setup::new(&["--create-delay=1s"]);
        let new = new_disk("pvc-1");
        let disk = setup.create(&new).await.id;
        let overlay = Overlay::new(&[&setup.cloud]);
        overlay.show_status(&disk, Some(status));
        let process = Setup {
            cloud: setup.cloud.clone(),
            disks: disk_services(overlay.client(), "test"),
        };
        for _ in 0..5 {
            let rejected = process.try_create(seconds(20), &new).await.unwrap_err();
            assert_not_final(&rejected);
            sleep(20).await;
        }
        overlay.show_status(&disk, None);
        assert_eq!(process.try_create(seconds(20), &new).await.unwrap().id, disk);
        assert_eq!(setup.only_disk(), disk);
    }
}

#[tokio::test(start_paused = true)]
async fn members_of_a_missing_group_are_deleted() {
    let setup = Setup::new(&["--cut-delay=1s", "--missing-is-error"]);
    let (one, two) = two_disks(&setup).await;
    let group = setup.create_group(&new_group("group", &[&one, &two])).await;
    let members = snapshot_ids(&group);
    // Another program deletes the group object; its snapshots remain.
    let hidden = json!({"action": "DescribeSnapshotGroups", "for": "24h", "kind": "no-rows"});
    let missing = error_code(404, "InvalidSnapshotGroupId.NotFound");
    let missing = json!({"action": "DeleteSnapshotGroup", "times": 1000, "kind": missing});
    setup.configure(&json!({"faults": [hidden, missing]}));
    let restarted = setup.restarted();
    let delete = async || restarted.delete_group(&group.id, &members).await;
    retry(200, delete).await.unwrap();
    assert!(setup.snapshots().is_empty());
    // Repeated, it succeeds without a call that changes anything.
    delete().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn reading_a_hidden_disk_sends_only_reads() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let restarted = setup.restarted();
    setup.hide_disks(1000);
    setup.cloud.clear_calls();
    for _ in 0..10 {
        let hidden = restarted.disks.inventory.disk(seconds(20), &disk).await.unwrap_err();
        assert_failure(&hidden, Failure::AbsenceUnproven);
        sleep(20).await;
    }
    let calls = setup.cloud.calls();
    let is_read = |action: &str| action.starts_with("Describe");
    assert!(calls.iter().all(|call| is_read(&call.action)), "{calls:#?}");
}
