//! Creating, restoring, deleting and expiring snapshots, and their limits.

use crate::contract::world::*;

contract!(a_snapshot_is_captured_then_complete, |ecs, world| {
    world.configure(json!({"delays": {"cut": "1s", "snapshot": "5s"}}));
    let disk = create_essd(ecs, "source").await;
    let id = snapshot(ecs, &snapshot_of(&disk, "one")).await.unwrap();
    let row = described_snapshot(ecs, &id).await.unwrap();
    assert_eq!(row.status, SnapshotStatus::Progressing);
    assert_eq!((row.created, row.available), (None, false));
    world.pass(1);
    // Snapshots of ESSDs are usable immediately.
    let row = described_snapshot(ecs, &id).await.unwrap();
    assert_eq!(row.status, SnapshotStatus::Progressing);
    assert!(row.available);
    let time = row.created.map(|at| (at.as_second(), at.subsec_nanosecond()));
    assert_eq!(time, Some((world.now().as_second(), 0)));
    world.pass(4);
    let row = described_snapshot(ecs, &id).await.unwrap();
    assert_eq!(row.status, SnapshotStatus::Accomplished);
});

/// A request for a disk from the snapshot.
fn restored(snapshot: &SnapshotId) -> CreateDisk {
    essd_with("restored", |disk| disk.snapshot = Some(snapshot.clone()))
}

contract!(a_snapshot_of_an_older_category_is_usable_when_complete, |ecs, world| {
    world.configure(json!({"delays": {"cut": "1s", "snapshot": "5s"}}));
    let disk = disk_of(ecs, "legacy", Category::CloudSsd, 20).await;
    let id = snapshot(ecs, &snapshot_of(&disk, "one")).await.unwrap();
    world.pass(4);
    assert!(!described_snapshot(ecs, &id).await.unwrap().available);
    world.pass(1);
    assert!(described_snapshot(ecs, &id).await.unwrap().available);
});

contract!(a_snapshot_is_described_as_requested, |ecs, _| {
    let disk = create_essd(ecs, "source").await;
    let mut wanted = tagged_snapshot_of(&disk, "wanted", &[("k", "v")]);
    wanted.retention_days = Some(7);
    let id = snapshot(ecs, &wanted).await.unwrap();
    let row = described_snapshot(ecs, &id).await.unwrap();
    assert_eq!((row.id, row.name), (id, "wanted".to_owned()));
    assert_eq!((row.source_disk, row.source_size), (Some(disk), Gib(20)));
    assert_eq!(row.tags, wanted.tags);
});

contract!(a_disk_from_a_snapshot_has_its_source_and_is_not_smaller, |ecs, _| {
    let disk = disk_of(ecs, "source", Category::CloudEssd, 40).await;
    let snapshot = snapshot(ecs, &snapshot_of(&disk, "one")).await.unwrap();
    let small = create(ecs, &restored(&snapshot)).await;
    assert_rejected(small, Kind::OutOfRange, "InvalidDiskSize.TooSmall");
    let larger = CreateDisk {
        size: Gib(50),
        ..restored(&snapshot)
    };
    let id = create(ecs, &larger).await.unwrap();
    let row = described(ecs, &id).await.unwrap();
    assert_eq!((row.source_snapshot, row.size), (Some(snapshot), Gib(50)));
});

contract!(an_unfinished_or_unknown_snapshot_is_not_restored, |ecs, world| {
    world.configure(json!({"delays": {"cut": "1s", "snapshot": "5s"}}));
    let disk = create_essd(ecs, "source").await;
    let unfinished = snapshot(ecs, &snapshot_of(&disk, "one")).await.unwrap();
    let rejected = create(ecs, &restored(&unfinished)).await;
    assert_eq!(code(rejected), "InvalidSnapshotId.NotReady");
    let rejected = create(ecs, &restored(&"s-unknown".parse().unwrap())).await;
    assert_rejected(rejected, Kind::NotFound, "InvalidSnapshotId.NotFound");
});

contract!(a_create_is_repeated_and_another_disk_is_a_mismatch, |ecs, world| {
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    let first = snapshot(ecs, &snapshot_of(&one, "name")).await;
    world.pass(60);
    let second = snapshot(ecs, &snapshot_of(&one, "name")).await;
    assert_eq!(first.unwrap(), second.unwrap());
    expect_error(snapshot(ecs, &snapshot_of(&two, "name")).await, Kind::TokenMismatch);
    assert_eq!(world.snapshots(), 1);
});

contract!(an_older_category_has_one_snapshot_in_progress, |ecs, world| {
    for alternatives in ["first", "last"] {
        world.configure(json!({
            "rules": {"alternatives": alternatives}, "delays": {"snapshot": "5s"}
        }));
        let disk = disk_of(ecs, alternatives, Category::CloudEfficiency, 20).await;
        let one = snapshot_of(&disk, &format!("one-{alternatives}"));
        let two = snapshot_of(&disk, &format!("two-{alternatives}"));
        snapshot(ecs, &one).await.unwrap();
        expect_error(snapshot(ecs, &two).await, Kind::Conflict);
        world.pass(5);
        snapshot(ecs, &two).await.unwrap();
    }
});

contract!(snapshots_are_listed_by_disk_and_by_id, |ecs, _| {
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    let of_one = snapshot(ecs, &snapshot_of(&one, "of-one")).await;
    snapshot(ecs, &snapshot_of(&two, "of-two")).await.unwrap();
    let by_disk = DescribeSnapshots {
        disk: Some(one),
        ..DescribeSnapshots::default()
    };
    assert_eq!(listed_snapshots(ecs, &by_disk).await, [of_one.unwrap()]);
    let no_ids = DescribeSnapshots {
        ids: Some(vec![]),
        ..DescribeSnapshots::default()
    };
    assert_eq!(listed_snapshots(ecs, &no_ids).await, []);
    let unknown = "s-unknown".parse().unwrap();
    assert_eq!(described_snapshot(ecs, &unknown).await, None);
});

contract!(a_snapshot_is_deleted_although_disks_were_created_from_it, |ecs, _| {
    let disk = create_essd(ecs, "source").await;
    let id = snapshot(ecs, &snapshot_of(&disk, "one")).await.unwrap();
    create(ecs, &restored(&id)).await.unwrap();
    ecs.delete_snapshot(deadline(), &id).await.unwrap();
    assert_eq!(described_snapshot(ecs, &id).await, None);
});

contract!(a_snapshot_expires_after_its_retention_days, |ecs, world| {
    let disk = create_essd(ecs, "source").await;
    let mut request = snapshot_of(&disk, "kept");
    request.retention_days = Some(1);
    let id = snapshot(ecs, &request).await.unwrap();
    world.pass(24 * 3600 - 1);
    assert!(described_snapshot(ecs, &id).await.is_some());
    world.pass(1);
    assert_eq!(described_snapshot(ecs, &id).await, None);
    for days in [0, 65537] {
        request.retention_days = Some(days);
        request.token = ClientToken::derive("CreateSnapshot", [days.to_string().as_str()]);
        assert_eq!(code(snapshot(ecs, &request).await), "InvalidRetentionDays.Malformed");
    }
});

contract!(a_held_snapshot_is_rejected_with_the_code_of_its_hold, |ecs, world| {
    let disk = create_essd(ecs, "source").await;
    let id = snapshot(ecs, &snapshot_of(&disk, "one")).await.unwrap();
    for (hold, expected) in [
        ("images", "SnapshotCreatedImage"),
        ("locked", "InvalidOperation.SnapshotIsLocked"),
    ] {
        world.configure(json!({"holds": {hold: [id.as_str()]}}));
        assert_eq!(code(ecs.delete_snapshot(deadline(), &id).await), expected);
        world.configure(json!({"holds": null}));
    }
    world.configure(json!({"holds": {"archived": [id.as_str()]}}));
    assert_eq!(code(create(ecs, &restored(&id)).await), "InvalidSnapshotId.NotReady");
    ecs.delete_snapshot(deadline(), &id).await.unwrap();
});

contract!(snapshots_per_disk_and_in_progress_are_limited, |ecs, world| {
    world.configure(json!({"delays": {"snapshot": "60s"}, "rules": {"alternatives": "first"}}));
    let disk = create_essd(ecs, "source").await;
    let take = async |n: usize| snapshot(ecs, &snapshot_of(&disk, &format!("cut-{n}"))).await;
    for n in 0..10 {
        take(n).await.unwrap();
    }
    assert_rejected(take(10).await, Kind::Conflict, "QuotaExceed.ConcurrentSnapshotQuota");
    world.pass(60);
    world.configure(json!({"delays": {"snapshot": "0s"}}));
    for n in 10..256 {
        take(n).await.unwrap();
    }
    assert_eq!(code(take(256).await), "QuotaExceed.SnapshotQuota");
});
