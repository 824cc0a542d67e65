//! Creation and listing of snapshot groups.

use ecs::DescribeSnapshotGroups;

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn create_returns_once_all_snapshots_are_cut_at_one_instant() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::new(&["--cut-delay=4s", "--snapshot-delay=10m", stale]);
        let (one, two) = two_disks(&setup).await;
        let new = NewGroupSnapshot {
            tags: Tags::from([("team".to_owned(), "blue".to_owned())]),
            resource_group: Some("rg-1".to_owned()),
            ..new_group("group", &[&one, &two])
        };
        let group = setup.create_group(&new).await;
        assert_eq!(group.snapshots.len(), 2);
        assert!(group.snapshots.iter().all(|row| row.created == Some(group.created)));
        let sources = group.snapshots.iter().filter_map(|row| row.source_disk.clone());
        assert_eq!(sources.collect::<BTreeSet<_>>(), new.sources);
        assert_eq!(setup.groups()[0]["resource_group"], "rg-1");
        sleep(3).await;
        // ListSnapshots, GetSnapshot and GetVolumeGroupSnapshot all report the group.
        let listed = setup.list_snapshots(None, None).await.unwrap();
        assert_eq!(listed.len(), 2);
        for row in &listed {
            assert_eq!(row.tags["team"], "blue");
            let alone = setup.disks.snapshotter.get(minutes(1), &row.id).await.unwrap();
            assert_eq!([&row.group, &alone.group], [&Some(group.id.clone()); 2]);
        }
        let read = setup.get_group(&group.id, &snapshot_ids(&group)).await.unwrap();
        assert!(read.is_ready() && read.id == group.id);
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_create_returns_the_same_group_and_other_volumes_are_rejected_with_the_difference() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::without_canary(&["--cut-delay=1s", stale]);
        let (one, two) = two_disks(&setup).await;
        let three = setup.disk("pvc-3").await;
        let new = new_group("group", &[&one, &two]);
        let first = setup.create_group(&new).await;
        sleep(2).await;
        setup.cloud.clear_calls();
        assert_eq!(setup.create_group(&new).await.id, first.id);
        // Existing tags are not set again.
        assert_eq!(setup.calls("TagResources"), 0);
        assert_eq!(setup.restarted().create_group(&new).await.id, first.id);
        for process in [setup.clone(), setup.restarted()] {
            let other = new_group("group", &[&one, &three]);
            let rejected = process.try_group(minutes(1), &other).await.unwrap_err();
            assert!(matches!(rejected, Error::AlreadyExists { .. }), "{}", text(&rejected));
            let parts = [
                first.id.as_str(),
                &format!("volume {two} is not requested"),
                &format!("volume {three} is missing"),
            ];
            assert_names(&rejected, &parts);
        }
        assert_groups(&setup, 1, 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_lost_at_any_call_results_in_one_group_after_a_restart() {
    for action in [
        "CreateSnapshotGroup",
        "DescribeSnapshotGroups",
        "DescribeSnapshots",
        "TagResources",
    ] {
        for loss in ["reset-before", "reset-after", "truncated", "internal-error-after"] {
            let setup = Setup::new(&["--cut-delay=2s", "--stale=2s"]);
            let new = group_of_two(&setup).await;
            setup.faults(action, 1_000_000, &json!(loss));
            // Until its deadline the client's retries fail too. The driver handles some of these losses itself.
            drop(setup.try_group(seconds(10), &new).await);
            setup.clear_faults();
            let group = setup.restarted().create_group(&new).await;
            assert_groups(&setup, 1, 2);
            let tag = "diskplugin.csi.example/snapshot-group";
            for row in setup.snapshots() {
                assert_eq!(row["tags"][tag], group.id.as_str());
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_group_creations_share_polls() {
    let setup = Setup::new(&["--cut-delay=5s"]);
    let mut calls = JoinSet::new();
    for n in 0..30 {
        let (one, two) = (setup.disk(&format!("a-{n}")).await, setup.disk(&format!("b-{n}")).await);
        let setup = setup.clone();
        calls.spawn(async move {
            let new = new_group(&format!("group-{n}"), &[&one, &two]);
            setup.create_group(&new).await.id
        });
    }
    setup.cloud.clear_calls();
    let created: BTreeSet<_> = calls.join_all().await.into_iter().collect();
    assert_eq!(created.len(), 30);
    // One call per interval covers all 60 snapshots.
    let polls = setup.calls("DescribeSnapshots");
    assert!(polls < 20, "{polls}");
    let query = DescribeSnapshotGroups::default();
    let page = client(&setup.cloud).describe_snapshot_groups(minutes(1), &query).await;
    assert_eq!(page.unwrap().rows.len(), 30);
}
