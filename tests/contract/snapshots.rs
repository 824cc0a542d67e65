//! Snapshots are cut, disks are made from them, and they go.

use diskplugin::cloud::{DescribeSnapshots, Ecs, Kind};
use diskplugin::model::{Category, Gib, SnapshotStatus};
use serde_json::json;

use crate::world::{World, cut, essd, made, refused, seen, seen_snapshot, soon, tags};

on_every_face!(
    a_snapshot_is_cut_then_complete,
    a_legacy_snapshot_is_usable_only_when_complete,
    a_snapshot_is_described_as_it_was_wanted,
    a_disk_from_a_snapshot_names_it,
    a_disk_from_a_snapshot_is_not_smaller,
    a_disk_from_an_unfinished_or_unknown_snapshot_is_refused,
    a_repeated_cut_is_the_same_snapshot,
    a_cut_token_of_another_request_is_a_mismatch,
    what_is_not_there_is_not_cut,
    a_legacy_disk_is_cut_once_at_a_time,
    snapshots_are_found_by_their_disk_and_by_id,
    a_deleted_snapshot_is_gone_though_disks_were_made_from_it,
    deleting_an_unknown_snapshot_is_success_or_not_found,
);

pub(crate) async fn a_snapshot_is_cut_then_complete(ecs: &dyn Ecs, world: &World) {
    world.configure(json!({"delays": {"cut": "1s", "snapshot": "5s"}}));
    let disk = made(ecs, "source").await;
    let id = ecs.create_snapshot(soon(), &cut(&disk, "one")).await;
    let id = id.unwrap();
    let row = seen_snapshot(ecs, &id).await.unwrap();
    assert_eq!(row.status, SnapshotStatus::Progressing);
    assert_eq!((row.created, row.available), (None, false));
    world.pass(1);
    // The ESSD family has it at once.
    let row = seen_snapshot(ecs, &id).await.unwrap();
    assert_eq!(row.status, SnapshotStatus::Progressing);
    assert!(row.available);
    let time = row
        .created
        .map(|at| (at.as_second(), at.subsec_nanosecond()));
    assert_eq!(time, Some((world.now().as_second(), 0)));
    world.pass(4);
    let row = seen_snapshot(ecs, &id).await.unwrap();
    assert_eq!(row.status, SnapshotStatus::Accomplished);
}

pub(crate) async fn a_legacy_snapshot_is_usable_only_when_complete(ecs: &dyn Ecs, world: &World) {
    world.configure(json!({"delays": {"cut": "1s", "snapshot": "5s"}}));
    let mut legacy = essd("legacy");
    legacy.category = Category::CloudSsd;
    let disk = ecs.create_disk(soon(), &legacy).await.unwrap();
    let id = ecs.create_snapshot(soon(), &cut(&disk, "one")).await;
    let id = id.unwrap();
    world.pass(4);
    assert!(!seen_snapshot(ecs, &id).await.unwrap().available);
    world.pass(1);
    assert!(seen_snapshot(ecs, &id).await.unwrap().available);
}

pub(crate) async fn a_snapshot_is_described_as_it_was_wanted(ecs: &dyn Ecs, _: &World) {
    let disk = made(ecs, "source").await;
    let mut wanted = cut(&disk, "wanted");
    wanted.tags = tags(&[("k", "v")]);
    wanted.retention_days = Some(7);
    let id = ecs.create_snapshot(soon(), &wanted).await.unwrap();
    let row = seen_snapshot(ecs, &id).await.unwrap();
    assert_eq!((row.id, row.name), (id, "wanted".to_owned()));
    assert_eq!((row.source_disk, row.source_size), (Some(disk), Gib(20)));
    assert_eq!(row.tags, wanted.tags);
}

pub(crate) async fn a_disk_from_a_snapshot_names_it(ecs: &dyn Ecs, _: &World) {
    let disk = made(ecs, "source").await;
    let snapshot = ecs.create_snapshot(soon(), &cut(&disk, "one")).await;
    let mut restored = essd("restored");
    restored.snapshot = Some(snapshot.unwrap());
    restored.size = Gib(40);
    let id = ecs.create_disk(soon(), &restored).await.unwrap();
    let row = seen(ecs, &id).await.unwrap();
    assert_eq!(
        (row.source_snapshot, row.size),
        (restored.snapshot, Gib(40))
    );
}

pub(crate) async fn a_disk_from_a_snapshot_is_not_smaller(ecs: &dyn Ecs, _: &World) {
    let mut large = essd("large");
    large.size = Gib(40);
    let disk = ecs.create_disk(soon(), &large).await.unwrap();
    let snapshot = ecs.create_snapshot(soon(), &cut(&disk, "one")).await;
    let mut restored = essd("restored");
    restored.snapshot = Some(snapshot.unwrap());
    let error = refused(ecs.create_disk(soon(), &restored).await, Kind::OutOfRange);
    assert_eq!(error.code(), Some("InvalidDiskSize.TooSmall"));
}

pub(crate) async fn a_disk_from_an_unfinished_or_unknown_snapshot_is_refused(
    ecs: &dyn Ecs,
    world: &World,
) {
    world.configure(json!({"delays": {"cut": "1s", "snapshot": "5s"}}));
    let disk = made(ecs, "source").await;
    let snapshot = ecs.create_snapshot(soon(), &cut(&disk, "one")).await;
    let mut restored = essd("restored");
    restored.snapshot = Some(snapshot.unwrap());
    let error = ecs.create_disk(soon(), &restored).await.unwrap_err();
    assert_eq!(error.code(), Some("InvalidSnapshotId.NotReady"));
    restored.snapshot = Some("s-unknown".parse().unwrap());
    let error = refused(ecs.create_disk(soon(), &restored).await, Kind::NotFound);
    assert_eq!(error.code(), Some("InvalidSnapshotId.NotFound"));
}

pub(crate) async fn a_repeated_cut_is_the_same_snapshot(ecs: &dyn Ecs, world: &World) {
    let disk = made(ecs, "source").await;
    let first = ecs.create_snapshot(soon(), &cut(&disk, "one")).await;
    world.pass(60);
    let second = ecs.create_snapshot(soon(), &cut(&disk, "one")).await;
    assert_eq!(first.unwrap(), second.unwrap());
    assert_eq!(world.snapshots(), 1);
}

pub(crate) async fn a_cut_token_of_another_request_is_a_mismatch(ecs: &dyn Ecs, world: &World) {
    let (one, two) = (made(ecs, "one").await, made(ecs, "two").await);
    let request = cut(&one, "name");
    ecs.create_snapshot(soon(), &request).await.unwrap();
    let outcome = ecs.create_snapshot(soon(), &cut(&two, "name")).await;
    refused(outcome, Kind::TokenMismatch);
    assert_eq!(world.snapshots(), 1);
}

pub(crate) async fn what_is_not_there_is_not_cut(ecs: &dyn Ecs, _: &World) {
    let request = cut(&"d-unknown".parse().unwrap(), "one");
    let error = refused(ecs.create_snapshot(soon(), &request).await, Kind::NotFound);
    assert_eq!(error.code(), Some("InvalidDiskId.NotFound"));
}

pub(crate) async fn a_legacy_disk_is_cut_once_at_a_time(ecs: &dyn Ecs, world: &World) {
    for alternatives in ["first", "last"] {
        world.configure(json!({
            "rules": {"alternatives": alternatives}, "delays": {"snapshot": "5s"}
        }));
        let mut legacy = essd(alternatives);
        legacy.category = Category::CloudEfficiency;
        let disk = ecs.create_disk(soon(), &legacy).await.unwrap();
        let one = cut(&disk, &format!("one-{alternatives}"));
        let two = cut(&disk, &format!("two-{alternatives}"));
        ecs.create_snapshot(soon(), &one).await.unwrap();
        refused(ecs.create_snapshot(soon(), &two).await, Kind::Conflict);
        world.pass(5);
        ecs.create_snapshot(soon(), &two).await.unwrap();
    }
}

pub(crate) async fn snapshots_are_found_by_their_disk_and_by_id(ecs: &dyn Ecs, _: &World) {
    let (one, two) = (made(ecs, "one").await, made(ecs, "two").await);
    let of_one = ecs.create_snapshot(soon(), &cut(&one, "of-one")).await;
    ecs.create_snapshot(soon(), &cut(&two, "of-two"))
        .await
        .unwrap();
    let by_disk = DescribeSnapshots {
        disk: Some(one),
        ..DescribeSnapshots::default()
    };
    let page = ecs.describe_snapshots(soon(), &by_disk).await.unwrap();
    let ids: Vec<_> = page.rows.into_iter().map(|row| row.id).collect();
    assert_eq!(ids, [of_one.unwrap()]);
    let nothing = DescribeSnapshots {
        ids: Some(vec![]),
        ..DescribeSnapshots::default()
    };
    let page = ecs.describe_snapshots(soon(), &nothing).await.unwrap();
    assert_eq!(page.rows, []);
    let unknown = "s-unknown".parse().unwrap();
    assert_eq!(seen_snapshot(ecs, &unknown).await, None);
}

pub(crate) async fn a_deleted_snapshot_is_gone_though_disks_were_made_from_it(
    ecs: &dyn Ecs,
    _: &World,
) {
    let disk = made(ecs, "source").await;
    let id = ecs.create_snapshot(soon(), &cut(&disk, "one")).await;
    let id = id.unwrap();
    let mut restored = essd("restored");
    restored.snapshot = Some(id.clone());
    ecs.create_disk(soon(), &restored).await.unwrap();
    ecs.delete_snapshot(soon(), &id).await.unwrap();
    assert_eq!(seen_snapshot(ecs, &id).await, None);
}

pub(crate) async fn deleting_an_unknown_snapshot_is_success_or_not_found(
    ecs: &dyn Ecs,
    world: &World,
) {
    let id = "s-unknown".parse().unwrap();
    ecs.delete_snapshot(soon(), &id).await.unwrap();
    world.configure(json!({"rules": {"missing_is_error": true}}));
    refused(ecs.delete_snapshot(soon(), &id).await, Kind::NotFound);
}
