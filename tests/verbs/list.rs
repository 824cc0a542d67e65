//! Listing, in pages that stay right while items come and go.

use std::collections::BTreeSet;
use std::time::Duration;

use diskplugin::cloud::{CreateDisk, CreateSnapshot, Ecs};
use diskplugin::disk::Cursor;
use diskplugin::model::{Category, ClientToken, DiskId, Gib, SnapshotId, Tags, tag};

use crate::kit::{Stage, minutes, one, wanted, zone};

/// So many disks of this cluster, made a second apart or all at once.
async fn many(stage: &Stage, count: usize, apart: Duration) -> Vec<String> {
    let ecs = stage.cloud.ecs();
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

async fn page(stage: &Stage, after: Option<&Cursor>, most: usize) -> (Vec<String>, Option<Cursor>) {
    let listed = stage
        .disks
        .inventory
        .list(minutes(1), after, Some(most))
        .await
        .unwrap();
    // A cursor travels as text.
    let next = listed
        .next
        .map(|cursor| cursor.to_string().parse().unwrap());
    (
        listed
            .items
            .iter()
            .map(|disk| disk.id.to_string())
            .collect(),
        next,
    )
}

#[tokio::test(start_paused = true)]
async fn twelve_hundred_disks_are_listed_whole_through_the_clouds_pages() {
    let stage = Stage::new(&[]);
    let made = many(&stage, 1200, Duration::ZERO).await;
    stage
        .neighbour()
        .provisioner
        .create(minutes(1), &wanted("pvc-1"))
        .await
        .unwrap();
    stage.foreign(Tags::new()).await;
    stage.cloud.clear_calls();
    let listed = stage
        .disks
        .inventory
        .list(minutes(1), None, None)
        .await
        .unwrap();
    let ids: BTreeSet<_> = listed
        .items
        .iter()
        .map(|disk| disk.id.to_string())
        .collect();
    assert_eq!(
        (ids.len(), listed.items.len(), listed.next),
        (1200, 1200, None)
    );
    assert_eq!(ids, made.into_iter().collect());
    // A thousand by their tag, at which the cloud ends such a list; then all without it.
    assert_eq!(stage.calls("DescribeDisks"), 2 + 3);
    stage.cloud.clear_calls();
    stage
        .disks
        .inventory
        .list(minutes(1), None, None)
        .await
        .unwrap();
    assert_eq!(stage.calls("DescribeDisks"), 3);
}

#[tokio::test(start_paused = true)]
async fn pages_of_ten_tell_each_disk_once_also_when_all_are_of_one_second() {
    for apart in [Duration::ZERO, Duration::from_secs(1)] {
        let stage = Stage::new(&[]);
        let made = many(&stage, 35, apart).await;
        let (mut seen, mut after, mut pages) = (Vec::new(), None, 0);
        loop {
            let (ids, next) = page(&stage, after.as_ref(), 10).await;
            seen.extend(ids);
            pages += 1;
            after = next;
            if after.is_none() {
                break;
            }
        }
        let distinct: BTreeSet<_> = seen.iter().cloned().collect();
        assert_eq!(
            (pages, seen.len(), distinct),
            (4, 35, made.into_iter().collect())
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_stays_is_told_once_while_others_come_and_go_between_pages() {
    let stage = Stage::new(&[]);
    let made = many(&stage, 30, Duration::from_secs(1)).await;
    let ecs = stage.cloud.ecs();
    let remove = |id: &str| {
        let (ecs, id) = (ecs.clone(), id.parse::<DiskId>().unwrap());
        async move { ecs.delete_disk(minutes(1), &id).await.unwrap() }
    };
    let (first, next) = page(&stage, None, 10).await;
    assert_eq!(first, made[..10]);
    // The last of the page, one before it and the first after it.
    for n in [9, 3, 10] {
        remove(&made[n]).await;
    }
    let late = stage.disk("late").await.to_string();
    let (second, next) = page(&stage, next.as_ref(), 10).await;
    assert_eq!(second, made[11..21]);
    let (third, next) = page(&stage, next.as_ref(), 100).await;
    assert_eq!(third[..9], made[21..]);
    assert_eq!((&third[9..], next), (&[late][..], None));
}

#[tokio::test(start_paused = true)]
async fn snapshots_are_listed_by_id_by_source_and_in_pages() {
    let stage = Stage::new(&["--cut-delay=1s"]);
    let (disk, other) = (stage.disk("pvc-1").await, stage.disk("pvc-2").await);
    let mut made = Vec::new();
    for n in 0..25 {
        made.push(stage.snapshot(&format!("snap-{n}"), &disk).await);
    }
    let theirs = stage.snapshot("snap-other", &other).await;
    let disks = &stage.disks;
    let by_id = disks
        .inventory
        .list_snapshots(minutes(1), Some(&theirs), None, (None, None))
        .await
        .unwrap();
    assert_eq!((by_id.items.len(), &by_id.items[0].id), (1, &theirs));
    let both = disks
        .inventory
        .list_snapshots(minutes(1), Some(&theirs), Some(&disk), (None, None))
        .await;
    assert!(both.unwrap().items.is_empty());
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = (after.as_ref(), Some(10));
        let listed = disks
            .inventory
            .list_snapshots(minutes(1), None, Some(&disk), page)
            .await
            .unwrap();
        seen.extend(listed.items.into_iter().map(|row| row.id));
        after = listed.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, made);
    let all = disks
        .inventory
        .list_snapshots(minutes(1), None, None, (None, None))
        .await
        .unwrap();
    assert_eq!(all.items.len(), 26);
    let none = stage
        .neighbour()
        .inventory
        .list_snapshots(minutes(1), None, None, (None, None))
        .await;
    assert!(none.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn twelve_hundred_snapshots_are_listed_whole_and_few_again_by_their_tag() {
    let stage = Stage::new(&[]);
    let ecs = stage.cloud.ecs();
    let mut made = BTreeSet::new();
    for n in 0..1200 {
        if n % 200 == 0 {
            stage.disk(&format!("pvc-{n}")).await;
        }
        let disk = stage.disk(&format!("pvc-{}", n / 200 * 200)).await;
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
        stage.cloud.clear_calls();
        let listed = stage
            .disks
            .inventory
            .list_snapshots(minutes(1), None, None, (None, None));
        let items = listed.await.unwrap().items.into_iter();
        let ids: BTreeSet<_> = items.map(|row| row.id).collect();
        (ids, stage.calls("DescribeSnapshots"))
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
async fn without_permission_lists_are_empty() {
    let stage = Stage::new(&[]);
    stage.disk("pvc-1").await;
    // What was just made is known without asking.
    tokio::time::sleep(Duration::from_secs(4)).await;
    stage.configure(&serde_json::json!({"denied": ["DescribeDisks", "DescribeSnapshots"]}));
    assert!(
        stage
            .disks
            .inventory
            .list(minutes(1), None, None)
            .await
            .unwrap()
            .items
            .is_empty()
    );
    let snapshots = stage
        .disks
        .inventory
        .list_snapshots(minutes(1), None, None, (None, None))
        .await;
    assert!(snapshots.unwrap().items.is_empty());
}

/// What is listed: the disks, and the snapshots of this disk or of all.
async fn listed(stage: &Stage, source: Option<&DiskId>) -> (Vec<DiskId>, Vec<SnapshotId>) {
    let disks = stage.disks.inventory.list(minutes(1), None, None).await;
    let page = (None, None);
    let snapshots = stage
        .disks
        .inventory
        .list_snapshots(minutes(1), None, source, page);
    (
        disks.unwrap().items.into_iter().map(|row| row.id).collect(),
        snapshots
            .await
            .unwrap()
            .items
            .into_iter()
            .map(|row| row.id)
            .collect(),
    )
}

#[tokio::test(start_paused = true)]
async fn old_reads_neither_hide_what_was_just_made_nor_show_what_was_just_deleted() {
    let stage = Stage::new(&["--stale=2s"]);
    let disk = stage.disk("pvc-1").await;
    assert_eq!(listed(&stage, None).await, (vec![disk.clone()], vec![]));
    let snapshot = stage.snapshot("snap-1", &disk).await;
    let all = (vec![disk.clone()], vec![snapshot.clone()]);
    assert_eq!(listed(&stage, None).await, all);
    assert_eq!(listed(&stage, Some(&disk)).await, all);
    let other: DiskId = "d-other".parse().unwrap();
    assert_eq!(listed(&stage, Some(&other)).await.1, []);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(listed(&stage, None).await, all);
    let deleted = stage.disks.snapshotter.delete(minutes(1), &snapshot).await;
    deleted.unwrap();
    assert_eq!(listed(&stage, None).await, (vec![disk.clone()], vec![]));
    let page = (None, None);
    let by_id = stage
        .disks
        .inventory
        .list_snapshots(minutes(1), Some(&snapshot), None, page);
    assert_eq!(by_id.await.unwrap().items, []);
    stage
        .disks
        .provisioner
        .delete(minutes(1), &disk)
        .await
        .unwrap();
    assert_eq!(listed(&stage, None).await, (vec![], vec![]));
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(listed(&stage, None).await, (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn what_was_made_and_deleted_by_others_is_listed_no_longer_than_reads_lag() {
    let stage = Stage::new(&[]);
    let disk = stage.disk("pvc-1").await;
    let ecs = stage.cloud.ecs();
    ecs.delete_disk(minutes(1), &disk).await.unwrap();
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(listed(&stage, None).await, (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn an_old_read_does_not_list_a_disk_on_the_node_that_it_has_left() {
    let stage = Stage::new(&["--stale=2s"]);
    let disk = stage.disk("pvc-1").await;
    stage
        .disks
        .attacher
        .attach(minutes(1), &disk, &one())
        .await
        .unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    let holders = async || {
        let listed = stage
            .disks
            .inventory
            .list(minutes(1), None, None)
            .await
            .unwrap();
        listed.items[0].attachments.clone()
    };
    assert_eq!(holders().await, [one()]);
    stage
        .disks
        .attacher
        .detach(minutes(1), &disk, &one())
        .await
        .unwrap();
    assert_eq!(holders().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_was_just_deleted_is_not_answered_with_what_it_had() {
    for seed in 0..20 {
        let seed = format!("--seed={seed}");
        let stage = Stage::new(&["--stale=0s..2s", "--stale-jumping", &seed]);
        let first = stage.disk("pvc-1").await;
        stage
            .disks
            .provisioner
            .delete(minutes(1), &first)
            .await
            .unwrap();
        let next = stage.disk("pvc-1").await;
        assert_ne!(first, next, "{seed}");
        assert_eq!(stage.only_disk(), next, "{seed}");
        let first = stage.snapshot("snap-1", &next).await;
        let deleted = stage.disks.snapshotter.delete(minutes(1), &first).await;
        deleted.unwrap();
        assert_ne!(stage.snapshot("snap-1", &next).await, first, "{seed}");
    }
}
