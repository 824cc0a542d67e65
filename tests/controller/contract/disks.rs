//! Creating, describing and deleting disks.

use diskplugin::model::DiskKind;

use crate::contract::world::*;

contract!(a_new_disk_becomes_available_after_its_delay, |ecs, world| {
    world.configure(json!({"delays": {"create": "3s"}}));
    let disk = create_essd(ecs, "new").await;
    assert_eq!(described(ecs, &disk).await.unwrap().status, DiskStatus::Creating);
    world.pass(3);
    assert!(described(ecs, &disk).await.unwrap().is_free());
});

contract!(a_disk_is_described_as_requested, |ecs, world| {
    let wanted = tagged_essd("wanted", &[("a/b", "ä ö&=+ %"), ("empty", "")]);
    let id = create(ecs, &wanted).await.unwrap();
    let disk = described(ecs, &id).await.unwrap();
    assert_eq!(disk.id, id);
    assert!(disk.serial.is_some());
    assert_eq!(disk.name, "wanted");
    assert_eq!(disk.zone, wanted.zone);
    assert_eq!(disk.category, wanted.category);
    assert_eq!(disk.performance_level.as_deref(), Some("PL1"));
    assert_eq!((disk.size, disk.kind), (Gib(20), DiskKind::Data));
    assert_eq!((disk.attachments, disk.source_snapshot), (vec![], None));
    assert_eq!((disk.encrypted, disk.kms_key), (false, None));
    assert_eq!(disk.tags, wanted.tags);
    // Responses contain whole seconds.
    let second = world.now().as_second();
    assert_eq!(
        disk.created.map(|at| (at.as_second(), at.subsec_nanosecond())),
        Some((second, 0))
    );
});

contract!(a_create_is_repeated_and_another_size_is_a_mismatch, |ecs, world| {
    let disk = create_essd(ecs, "first").await;
    world.pass(3600);
    assert_eq!(create_essd(ecs, "first").await, disk);
    let other = create(ecs, &essd_with("first", |disk| disk.size = Gib(21))).await;
    assert_rejected(other, Kind::TokenMismatch, "IdempotentParameterMismatch");
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(20));
    assert_eq!(world.disks(), 1);
});

contract!(a_list_by_ids_has_only_those_that_exist, |ecs, _| {
    let disk = create_essd(ecs, "known").await;
    let unknown = "d-unknown".parse().unwrap();
    for (ids, found) in [(vec![unknown, disk.clone()], vec![disk]), (vec![], vec![])] {
        let query = DescribeDisks {
            ids: Some(ids),
            ..DescribeDisks::default()
        };
        assert_eq!(listed(ecs, &query).await, found);
    }
});

contract!(a_deleted_disk_is_not_described_or_attached, |ecs, world| {
    world.configure(json!({"delays": {"delete": "9s"}}));
    let disk = create_essd(ecs, "gone").await;
    ecs.delete_disk(deadline(), &disk).await.unwrap();
    for _ in 0..2 {
        assert_eq!(described(ecs, &disk).await, None);
        let attached = attach(ecs, &disk, "i-one").await;
        assert_rejected(attached, Kind::NotFound, "InvalidDiskId.NotFound");
        world.pass(9);
    }
});

contract!(an_attached_or_busy_disk_cannot_be_deleted, |ecs, world| {
    for alternatives in ["first", "last"] {
        world.configure(json!({
            "rules": {"alternatives": alternatives}, "delays": {"create": "3s", "attach": "2s"}
        }));
        let disk = create_essd(ecs, alternatives).await;
        expect_error(ecs.delete_disk(deadline(), &disk).await, Kind::Conflict);
        world.pass(3);
        attach(ecs, &disk, "i-one").await.unwrap();
        expect_error(ecs.delete_disk(deadline(), &disk).await, Kind::Conflict);
        world.pass(2);
        assert!(described(ecs, &disk).await.unwrap().is_in_use_on(&node("i-one")));
        expect_error(ecs.delete_disk(deadline(), &disk).await, Kind::Conflict);
        detach(ecs, &disk, "i-one").await.unwrap();
        ecs.delete_disk(deadline(), &disk).await.unwrap();
    }
});

contract!(a_wrong_zone_or_size_is_invalid, |ecs, world| {
    let nowhere = essd_with("nowhere", |disk| disk.zone = Some(zone("cn-beijing-z")));
    expect_error(create(ecs, &nowhere).await, Kind::Invalid);
    for alternatives in ["first", "last"] {
        world.configure(json!({"rules": {"alternatives": alternatives}}));
        let tiny = essd_with("tiny", |disk| disk.size = Gib(19));
        expect_error(create(ecs, &tiny).await, Kind::OutOfRange);
    }
    assert_eq!(world.disks(), 0);
});
