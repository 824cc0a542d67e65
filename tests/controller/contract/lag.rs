//! Stale lists.

use crate::contract::world::*;

contract!(new_disks_and_snapshots_are_missing_from_stale_reads, |ecs, world| {
    world.configure(json!({"stale": {"lag": "2s"}}));
    let disk = create_essd(ecs, "new").await;
    assert_eq!(described(ecs, &disk).await, None);
    world.pass(3);
    assert!(described(ecs, &disk).await.is_some());
    let snapshot = snapshot(ecs, &snapshot_of(&disk, "new")).await.unwrap();
    assert_eq!(described_snapshot(ecs, &snapshot).await, None);
    world.pass(3);
    assert!(described_snapshot(ecs, &snapshot).await.is_some());
});

contract!(an_attached_disk_is_described_as_available_during_lag, |ecs, world| {
    world.configure(json!({"stale": {"lag": "2s"}, "delays": {"attach": "3s"}}));
    let disk = create_essd(ecs, "lagging").await;
    world.pass(3);
    attach(ecs, &disk, "i-one").await.unwrap();
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(described(ecs, &disk).await.unwrap().status);
        world.pass(1);
    }
    statuses.dedup();
    let wanted = [DiskStatus::Available, DiskStatus::Attaching, DiskStatus::InUse];
    assert_eq!(statuses, wanted);
});

contract!(a_torn_read_of_a_detached_disk_still_has_its_node, |ecs, world| {
    world.configure(json!({"stale": {"lag": "2s", "torn": true}}));
    let disk = create_essd(ecs, "torn").await;
    attach(ecs, &disk, "i-one").await.unwrap();
    world.pass(10);
    detach(ecs, &disk, "i-one").await.unwrap();
    world.pass(1);
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(row.attachments, [node("i-one")]);
    world.pass(2);
    assert!(described(ecs, &disk).await.unwrap().attachments.is_empty());
});

contract!(new_tags_are_found_by_id_but_not_by_tags, |ecs, world| {
    world.configure(json!({"stale": {"tags": "5s"}}));
    let own = [("name", "pvc-1")];
    let disk = create(ecs, &tagged_essd("tagged", &own)).await.unwrap();
    let snapshot = snapshot(ecs, &tagged_snapshot_of(&disk, "tagged", &own)).await.unwrap();
    let found = async |key: &str| {
        let by = [(key, "pvc-1")];
        (
            disks_by_tags(ecs, &by).await.len(),
            snapshots_by_tags(ecs, &by).await.len(),
        )
    };
    assert_eq!(described(ecs, &disk).await.unwrap().tags.len(), 1);
    assert!(described_snapshot(ecs, &snapshot).await.is_some());
    assert_eq!(found("name").await, (0, 0));
    world.pass(4);
    assert_eq!(found("name").await, (0, 0));
    world.pass(1);
    assert_eq!(found("name").await, (1, 1));

    let change = TagResources {
        targets: TagTarget::Disks(vec![disk.clone()]),
        tags: tags(&[("more", "pvc-1")]),
    };
    ecs.tag_resources(deadline(), &change).await.unwrap();
    assert_eq!(found("more").await, (0, 0));
    assert_eq!(found("name").await, (1, 1));
    world.pass(5);
    assert_eq!(found("more").await, (1, 0));
});
