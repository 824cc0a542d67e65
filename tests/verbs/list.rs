//! Listing what this cluster owns. Pages are in tests/controller/listing.rs.

use std::collections::BTreeSet;
use std::time::Duration;

use diskplugin::cloud::{CreateDisk, CreateSnapshot, EcsApi};
use diskplugin::disk::{DiskServices, FailureKind};
use diskplugin::model::{
    Category, ClientToken, Disk, DiskId, Gib, Snapshot, SnapshotId, Tags, tag,
};

use crate::kit::{Setup, minutes, new_disk, node_one, zone};

/// So many disks of this cluster, made a second apart or all at once.
async fn many(setup: &Setup, count: usize, apart: Duration) -> Vec<String> {
    let ecs = setup.cloud.ecs();
    let mut ids = Vec::new();
    for n in 0..count {
        let request = CreateDisk {
            zone: Some(zone("a")),
            category: Category::CloudEssd,
            performance_level: None,
            provisioned_iops: None,
            bursting: false,
            multi_attach: false,
            resource_group: None,
            size: Gib(20),
            name: format!("disk-{n}"),
            snapshot: None,
            encrypted: false,
            kms_key: None,
            tags: Tags::from([(tag::CLUSTER.to_owned(), "test".to_owned())]),
            token: ClientToken::derive("test", [n.to_string().as_str()]),
        };
        ids.push(
            ecs.create_disk(minutes(60), &request)
                .await
                .unwrap()
                .to_string(),
        );
        tokio::time::sleep(apart).await;
    }
    ids
}

#[tokio::test(start_paused = true)]
async fn twelve_hundred_disks_are_listed_whole_through_the_clouds_pages() {
    let setup = Setup::new(&[]);
    let made = many(&setup, 1200, Duration::ZERO).await;
    setup
        .other_cluster()
        .provisioner
        .create(minutes(1), &new_disk("pvc-1"))
        .await
        .unwrap();
    setup.unmanaged_disk(Tags::new()).await;
    setup.cloud.clear_calls();
    let listed = setup
        .disks
        .inventory
        .list(minutes(1), Disk::clone)
        .await
        .unwrap();
    let ids: BTreeSet<_> = listed.iter().map(|disk| disk.id.to_string()).collect();
    assert_eq!((ids.len(), listed.len()), (1200, 1200));
    assert_eq!(ids, made.into_iter().collect());
    // A thousand by their tag, at which the cloud ends such a list; then all without it.
    assert_eq!(setup.calls("DescribeDisks"), 2 + 3);
    setup.cloud.clear_calls();
    setup
        .disks
        .inventory
        .list(minutes(1), Disk::clone)
        .await
        .unwrap();
    assert_eq!(setup.calls("DescribeDisks"), 3);
}

#[tokio::test(start_paused = true)]
async fn snapshots_are_listed_by_id_and_by_source() {
    let setup = Setup::new(&["--cut-delay=1s"]);
    let (disk, other) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
    let mut made = Vec::new();
    for n in 0..25 {
        made.push(setup.snapshot(&format!("snap-{n}"), &disk).await);
    }
    let theirs = setup.snapshot("snap-other", &other).await;
    let disks = &setup.disks;
    let by_id = disks
        .inventory
        .list_snapshots(minutes(1), Some(&theirs), None, Snapshot::clone)
        .await
        .unwrap();
    assert_eq!((by_id.len(), &by_id[0].id), (1, &theirs));
    let both = disks
        .inventory
        .list_snapshots(minutes(1), Some(&theirs), Some(&disk), Snapshot::clone)
        .await;
    assert!(both.unwrap().is_empty());
    let of_disk = disks
        .inventory
        .list_snapshots(minutes(1), None, Some(&disk), Snapshot::clone)
        .await
        .unwrap();
    let seen: Vec<_> = of_disk.into_iter().map(|row| row.id).collect();
    assert_eq!(seen, made);
    let all = disks
        .inventory
        .list_snapshots(minutes(1), None, None, Snapshot::clone)
        .await
        .unwrap();
    assert_eq!(all.len(), 26);
    let none = setup
        .other_cluster()
        .inventory
        .list_snapshots(minutes(1), None, None, Snapshot::clone)
        .await;
    assert!(none.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn twelve_hundred_snapshots_are_listed_whole_and_few_again_by_their_tag() {
    let setup = Setup::new(&[]);
    let ecs = setup.cloud.ecs();
    let mut made = BTreeSet::new();
    for n in 0..1200 {
        if n % 200 == 0 {
            setup.disk(&format!("pvc-{n}")).await;
        }
        let disk = setup.disk(&format!("pvc-{}", n / 200 * 200)).await;
        let request = CreateSnapshot {
            disk,
            name: format!("snap-{n}"),
            retention_days: None,
            resource_group: None,
            tags: Tags::from([(tag::CLUSTER.to_owned(), "test".to_owned())]),
            token: ClientToken::derive("test", [n.to_string().as_str()]),
        };
        made.insert(ecs.create_snapshot(minutes(60), &request).await.unwrap());
    }
    let list = async || {
        setup.cloud.clear_calls();
        let listed = setup
            .disks
            .inventory
            .list_snapshots(minutes(1), None, None, Snapshot::clone);
        let items = listed.await.unwrap().into_iter();
        let ids: BTreeSet<_> = items.map(|row| row.id).collect();
        (ids, setup.calls("DescribeSnapshots"))
    };
    assert_eq!(list().await, (made.clone(), 10 + 12));
    assert_eq!(list().await, (made.clone(), 12));
    for id in made.iter().skip(5) {
        ecs.delete_snapshot(minutes(60), id).await.unwrap();
    }
    let few: BTreeSet<_> = made.into_iter().take(5).collect();
    list().await;
    assert_eq!(list().await, (few, 1));
}

#[tokio::test(start_paused = true)]
async fn an_empty_response_is_no_list_where_something_of_ours_exists() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let snapshot = setup.snapshot("snap-1", &disk).await;
    // What was just made is known without asking.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let denied = |actions: &[&str]| setup.configure(&serde_json::json!({"denied": actions}));
    let lists = async |disks: &DiskServices| {
        (
            disks.inventory.list(minutes(1), Disk::clone).await,
            disks
                .inventory
                .list_snapshots(minutes(1), None, None, Snapshot::clone)
                .await,
        )
    };
    denied(&["DescribeDisks", "DescribeSnapshots"]);
    // A process that knows of nothing has nothing to hold against it.
    let (disks, snapshots) = lists(&setup.restarted()).await;
    assert!(disks.unwrap().is_empty() && snapshots.unwrap().is_empty());
    let (disks, snapshots) = lists(&setup.disks).await;
    for error in [disks.unwrap_err(), snapshots.unwrap_err()] {
        assert_eq!(error.failure_kind(), FailureKind::Unavailable, "{error}");
    }
    // One that has listed them knows of them as well.
    denied(&[]);
    let other = setup.restarted();
    assert!(lists(&other).await.0.unwrap().len() == 1);
    denied(&["DescribeDisks"]);
    assert!(lists(&other).await.0.is_err());
    denied(&[]);
    setup
        .disks
        .snapshotter
        .delete(minutes(1), &snapshot)
        .await
        .unwrap();
    setup
        .disks
        .provisioner
        .delete(minutes(1), &disk)
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    let (disks, snapshots) = lists(&setup.disks).await;
    assert!(disks.unwrap().is_empty() && snapshots.unwrap().is_empty());
    // Rows of others prove that the response is no lack of permission.
    assert!(lists(&other).await.0.is_err());
    setup.unmanaged_disk(Tags::new()).await;
    assert!(lists(&other).await.0.unwrap().is_empty());
}

/// What is listed: the disks, and the snapshots of this disk or of all.
async fn listed(setup: &Setup, source: Option<&DiskId>) -> (Vec<DiskId>, Vec<SnapshotId>) {
    let disks = setup.disks.inventory.list(minutes(1), Disk::clone).await;
    let snapshots = setup
        .disks
        .inventory
        .list_snapshots(minutes(1), None, source, Snapshot::clone);
    (
        disks.unwrap().into_iter().map(|row| row.id).collect(),
        snapshots
            .await
            .unwrap()
            .into_iter()
            .map(|row| row.id)
            .collect(),
    )
}

#[tokio::test(start_paused = true)]
async fn old_reads_neither_hide_what_was_just_made_nor_show_what_was_just_deleted() {
    let setup = Setup::new(&["--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    assert_eq!(listed(&setup, None).await, (vec![disk.clone()], vec![]));
    let snapshot = setup.snapshot("snap-1", &disk).await;
    let all = (vec![disk.clone()], vec![snapshot.clone()]);
    assert_eq!(listed(&setup, None).await, all);
    assert_eq!(listed(&setup, Some(&disk)).await, all);
    let other: DiskId = "d-other".parse().unwrap();
    assert_eq!(listed(&setup, Some(&other)).await.1, []);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(listed(&setup, None).await, all);
    let deleted = setup.disks.snapshotter.delete(minutes(1), &snapshot).await;
    deleted.unwrap();
    assert_eq!(listed(&setup, None).await, (vec![disk.clone()], vec![]));
    let by_id =
        setup
            .disks
            .inventory
            .list_snapshots(minutes(1), Some(&snapshot), None, Snapshot::clone);
    assert_eq!(by_id.await.unwrap(), []);
    setup
        .disks
        .provisioner
        .delete(minutes(1), &disk)
        .await
        .unwrap();
    assert_eq!(listed(&setup, None).await, (vec![], vec![]));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(listed(&setup, None).await, (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn what_was_made_and_deleted_by_others_is_listed_no_longer_than_reads_lag() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    // What shows that the account has no other disks because it may see them.
    setup.unmanaged_disk(Tags::new()).await;
    let ecs = setup.cloud.ecs();
    ecs.delete_disk(minutes(1), &disk).await.unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(listed(&setup, None).await, (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn an_old_read_does_not_list_a_disk_on_the_node_that_it_has_left() {
    let setup = Setup::new(&["--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    setup
        .disks
        .attacher
        .attach(minutes(1), &disk, &node_one())
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let holders = async || {
        let listed = setup
            .disks
            .inventory
            .list(minutes(1), Disk::clone)
            .await
            .unwrap();
        listed[0].attachments.clone()
    };
    assert_eq!(holders().await, [node_one()]);
    setup
        .disks
        .attacher
        .detach(minutes(1), &disk, &node_one())
        .await
        .unwrap();
    assert_eq!(holders().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_was_just_deleted_is_not_answered_with_what_it_had() {
    for seed in 0..20 {
        let seed = format!("--seed={seed}");
        let setup = Setup::new(&["--stale=0s..2s", "--stale-jumping", &seed]);
        let first = setup.disk("pvc-1").await;
        setup
            .disks
            .provisioner
            .delete(minutes(1), &first)
            .await
            .unwrap();
        let next = setup.disk("pvc-1").await;
        assert_ne!(first, next, "{seed}");
        assert_eq!(setup.only_disk(), next, "{seed}");
        let first = setup.snapshot("snap-1", &next).await;
        let deleted = setup.disks.snapshotter.delete(minutes(1), &first).await;
        deleted.unwrap();
        assert_ne!(setup.snapshot("snap-1", &next).await, first, "{seed}");
    }
}
