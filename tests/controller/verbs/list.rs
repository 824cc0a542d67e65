//! Listing of the disks and snapshots that this cluster owns. Pages are tested in tests/controller/service/listing.rs.

use crate::common::ecs::create_disks;
use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn a_list_of_1200_disks_is_complete_across_the_pages_of_the_cloud() {
    let setup = Setup::new(&[]);
    let created = create_disks(&client(&setup.cloud), 1200, Duration::ZERO).await;
    setup.other_cluster().create(&new_disk("pvc-1")).await;
    setup.unmanaged_disk(Tags::new()).await;
    setup.cloud.clear_calls();
    let listed = setup.list().await.unwrap();
    let ids: BTreeSet<_> = listed.iter().map(|disk| disk.id.to_string()).collect();
    assert_eq!((ids.len(), listed.len()), (1200, 1200));
    assert_eq!(ids, created.iter().cloned().collect());
    // The cloud ends a list filtered by tag after 1000 rows; the driver then lists without the filter.
    assert_eq!(setup.calls("DescribeDisks"), 2 + 3);
    setup.cloud.clear_calls();
    setup.list().await.unwrap();
    assert_eq!(setup.calls("DescribeDisks"), 3);
    setup.delete(&created[0].parse().unwrap()).await;
    setup.cloud.clear_calls();
    assert_eq!(setup.list().await.unwrap().len(), 1199);
    assert_eq!(setup.calls("DescribeDisks"), 3);
}

#[tokio::test(start_paused = true)]
async fn snapshots_are_listed_by_id_and_by_source() {
    let setup = Setup::new(&["--cut-delay=1s"]);
    let (disk, other) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
    let mut created = Vec::new();
    for n in 0..25 {
        created.push(setup.snapshot(&format!("snap-{n}"), &disk).await);
    }
    let other_snapshot = setup.snapshot("snap-other", &other).await;
    let by_id = setup.list_snapshots(Some(&other_snapshot), None).await.unwrap();
    assert_eq!((by_id.len(), &by_id[0].id), (1, &other_snapshot));
    let both = setup.list_snapshots(Some(&other_snapshot), Some(&disk)).await;
    assert!(both.unwrap().is_empty());
    let by_source = setup.list_snapshots(None, Some(&disk)).await.unwrap();
    let listed: Vec<_> = by_source.into_iter().map(|row| row.id).collect();
    assert_eq!(listed, created);
    let all = setup.list_snapshots(None, None).await.unwrap();
    assert_eq!(all.len(), 26);
    let none = setup.other_cluster().list_snapshots(None, None).await;
    assert!(none.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_list_of_1200_snapshots_is_complete_and_a_short_list_is_filtered_by_tag_again() {
    let setup = Setup::new(&[]);
    let ecs = client(&setup.cloud);
    let mut created = BTreeSet::new();
    for n in 0..1200 {
        if n % 200 == 0 {
            setup.disk(&format!("pvc-{n}")).await;
        }
        let disk = setup.disk(&format!("pvc-{}", n / 200 * 200)).await;
        let request = ecs::CreateSnapshot {
            tags: Tags::from([(tag::CLUSTER.to_owned(), "test".to_owned())]),
            ..snapshot_of(&disk, &format!("snap-{n}"))
        };
        created.insert(ecs.create_snapshot(minutes(60), &request).await.unwrap());
    }
    let list = async || {
        setup.cloud.clear_calls();
        let listed = setup.list_snapshots(None, None);
        let items = listed.await.unwrap().into_iter();
        let ids: BTreeSet<_> = items.map(|row| row.id).collect();
        (ids, setup.calls("DescribeSnapshots"))
    };
    assert_eq!(list().await, (created.clone(), 10 + 12));
    assert_eq!(list().await, (created.clone(), 12));
    for id in created.iter().skip(5) {
        ecs.delete_snapshot(minutes(60), id).await.unwrap();
    }
    let few: BTreeSet<_> = created.into_iter().take(5).collect();
    list().await;
    assert_eq!(list().await, (few, 1));
}

#[tokio::test(start_paused = true)]
async fn an_empty_response_is_not_accepted_while_owned_disks_are_known() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let snapshot = setup.snapshot("snap-1", &disk).await;
    // Lists include recently created disks without a call to the cloud.
    sleep(4).await;
    let deny = |actions: &[&str]| setup.configure(&json!({"denied": actions}));
    let lists = async |process: &Setup| (process.list().await, process.list_snapshots(None, None).await);
    deny(&["DescribeDisks", "DescribeSnapshots"]);
    // A process without a record of disks accepts an empty response.
    let (disks, snapshots) = lists(&setup.restarted()).await;
    assert!(disks.unwrap().is_empty() && snapshots.unwrap().is_empty());
    let (disks, snapshots) = lists(&setup).await;
    for error in [disks.unwrap_err(), snapshots.unwrap_err()] {
        assert_eq!(error.failure_kind(), FailureKind::Unavailable, "{error}");
    }
    // A process that has listed the disks has a record of them.
    deny(&[]);
    let other = setup.restarted();
    assert!(lists(&other).await.0.unwrap().len() == 1);
    deny(&["DescribeDisks"]);
    assert!(lists(&other).await.0.is_err());
    deny(&[]);
    setup.delete_snapshot(&snapshot).await;
    setup.delete(&disk).await;
    sleep(4).await;
    let (disks, snapshots) = lists(&setup).await;
    assert!(disks.unwrap().is_empty() && snapshots.unwrap().is_empty());
    // The system disk of a node proves that the permission exists.
    assert!(lists(&other).await.0.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_list_awaits_an_index_that_lags() {
    let setup = Setup::without_canary(&["--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    setup.configure(&json!({"stale": {"lag": "70s"}}));
    let listing = setup.disks.inventory.list(minutes(1), |disk| disk.id.clone());
    let (listed, ()) = tokio::join!(listing, async {
        sleep(2).await;
        setup.configure(&json!({"stale": {"lag": "0s"}}));
    });
    assert_eq!(listed.unwrap(), [disk]);
}

/// IDs of the listed disks, and of the listed snapshots of `source` or of all disks.
async fn listed(setup: &Setup, source: Option<&DiskId>) -> (Vec<DiskId>, Vec<SnapshotId>) {
    let disks = setup.list().await;
    let snapshots = setup.list_snapshots(None, source);
    (
        disks.unwrap().into_iter().map(|row| row.id).collect(),
        snapshots.await.unwrap().into_iter().map(|row| row.id).collect(),
    )
}

#[tokio::test(start_paused = true)]
async fn stale_reads_neither_hide_created_items_nor_return_deleted_ones() {
    let setup = Setup::new(&["--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    assert_eq!(listed(&setup, None).await, (vec![disk.clone()], vec![]));
    let snapshot = setup.snapshot("snap-1", &disk).await;
    let all = (vec![disk.clone()], vec![snapshot.clone()]);
    assert_eq!(listed(&setup, None).await, all);
    assert_eq!(listed(&setup, Some(&disk)).await, all);
    let other: DiskId = "d-other".parse().unwrap();
    assert_eq!(listed(&setup, Some(&other)).await.1, []);
    sleep(10).await;
    assert_eq!(listed(&setup, None).await, all);
    setup.delete_snapshot(&snapshot).await;
    assert_eq!(listed(&setup, None).await, (vec![disk.clone()], vec![]));
    let by_id = setup.list_snapshots(Some(&snapshot), None);
    assert_eq!(by_id.await.unwrap(), []);
    setup.delete(&disk).await;
    assert_eq!(listed(&setup, None).await, (vec![], vec![]));
    sleep(10).await;
    assert_eq!(listed(&setup, None).await, (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_disk_deleted_externally_is_not_listed_after_the_staleness_bound() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    // A visible disk proves that the permission exists.
    setup.unmanaged_disk(Tags::new()).await;
    let ecs = client(&setup.cloud);
    ecs.delete_disk(minutes(1), &disk).await.unwrap();
    sleep(4).await;
    assert_eq!(listed(&setup, None).await, (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn a_stale_read_does_not_list_a_detached_disk_as_attached() {
    let setup = Setup::new(&["--stale=2s"]);
    let disk = setup.attached("pvc-1").await;
    sleep(10).await;
    let attachments = async || {
        let listed = setup.list().await.unwrap();
        listed[0].attachments.clone()
    };
    assert_eq!(attachments().await, [node_one()]);
    setup.detach(&disk, &node_one()).await;
    assert_eq!(attachments().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_create_after_a_delete_returns_a_new_disk_or_snapshot() {
    let jumping = ["--stale=0s..2s", "--stale-jumping"];
    let stale = seeds(20).map(|seed| (seed, &jumping[..]));
    let current = [("--seed=0".to_owned(), &[][..])];
    for (seed, flags) in stale.chain(current) {
        for new in [new_disk("pvc-1"), available("pvc-1")] {
            let setup = Setup::new(&[flags, &[&seed]].concat());
            let mut disk = setup.create(&new).await.id;
            for _ in 0..2 {
                setup.delete(&disk).await;
                let next = setup.create(&new).await.id;
                assert_ne!(disk, next);
                assert_eq!(setup.only_disk(), next);
                disk = next;
            }
            let mut snapshot = setup.snapshot("snap-1", &disk).await;
            for _ in 0..2 {
                setup.delete_snapshot(&snapshot).await;
                let next = setup.snapshot("snap-1", &disk).await;
                assert_ne!(snapshot, next);
                assert_eq!(setup.only_snapshot(), next);
                snapshot = next;
            }
        }
    }
}
