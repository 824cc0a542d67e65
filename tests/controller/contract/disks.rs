//! Creating, describing and deleting disks.

use diskplugin::model::DiskKind;

use crate::contract::world::*;

over_every_connection!(
    a_new_disk_becomes_available_after_its_delay,
    a_disk_is_described_as_requested,
    performance_level_and_kms_key_are_stored,
    a_repeated_create_returns_the_same_disk,
    a_token_of_a_different_request_is_a_mismatch,
    an_unknown_id_is_omitted_from_the_response,
    no_ids_match_nothing,
    a_deleted_disk_is_not_described,
    deleting_a_missing_disk_is_success_or_not_found,
    an_attached_or_creating_disk_cannot_be_deleted,
    a_wrong_zone_or_size_is_invalid,
);

pub(crate) async fn a_new_disk_becomes_available_after_its_delay(ecs: &Client, world: &World) {
    world.configure(json!({"delays": {"create": "3s"}}));
    let disk = create_essd(ecs, "new").await;
    assert_eq!(described(ecs, &disk).await.unwrap().status, DiskStatus::Creating);
    world.pass(3);
    assert!(described(ecs, &disk).await.unwrap().is_free());
}

pub(crate) async fn a_disk_is_described_as_requested(ecs: &Client, world: &World) {
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
}

pub(crate) async fn performance_level_and_kms_key_are_stored(ecs: &Client, _: &World) {
    let wanted = essd_with("small-and-encrypted", |disk| {
        disk.performance_level = Some(PerformanceLevel::Pl0);
        disk.size = Gib(1);
        disk.encrypted = true;
        disk.kms_key = Some("key-1".to_owned());
    });
    let disk = create(ecs, &wanted).await.unwrap();
    let disk = described(ecs, &disk).await.unwrap();
    assert_eq!(disk.performance_level.as_deref(), Some("PL0"));
    assert_eq!((disk.size, disk.encrypted), (Gib(1), true));
    assert_eq!(disk.kms_key.as_deref(), Some("key-1"));
    let legacy = essd_with("no-level", |disk| disk.category = Category::CloudEfficiency);
    let disk = create(ecs, &legacy).await.unwrap();
    assert_eq!(described(ecs, &disk).await.unwrap().performance_level, None);
}

pub(crate) async fn a_repeated_create_returns_the_same_disk(ecs: &Client, world: &World) {
    let first = create_essd(ecs, "twice").await;
    world.pass(3600);
    assert_eq!(create_essd(ecs, "twice").await, first);
    assert_eq!(world.disks(), 1);
}

pub(crate) async fn a_token_of_a_different_request_is_a_mismatch(ecs: &Client, world: &World) {
    let disk = create_essd(ecs, "first").await;
    let other = create(ecs, &essd_with("first", |disk| disk.size = Gib(21))).await;
    assert_rejected(other, Kind::TokenMismatch, "IdempotentParameterMismatch");
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(20));
    assert_eq!(world.disks(), 1);
}

pub(crate) async fn an_unknown_id_is_omitted_from_the_response(ecs: &Client, _: &World) {
    let disk = create_essd(ecs, "known").await;
    let query = DescribeDisks {
        ids: Some(vec!["d-unknown".parse().unwrap(), disk.clone()]),
        ..DescribeDisks::default()
    };
    assert_eq!(listed(ecs, &query).await, [disk]);
}

pub(crate) async fn no_ids_match_nothing(ecs: &Client, _: &World) {
    create_essd(ecs, "present").await;
    let query = DescribeDisks {
        ids: Some(vec![]),
        ..DescribeDisks::default()
    };
    assert_eq!(listed(ecs, &query).await, []);
}

pub(crate) async fn a_deleted_disk_is_not_described(ecs: &Client, world: &World) {
    world.configure(json!({"delays": {"delete": "9s"}}));
    let disk = create_essd(ecs, "gone").await;
    ecs.delete_disk(deadline(), &disk).await.unwrap();
    assert_eq!(described(ecs, &disk).await, None);
    world.pass(9);
    assert_eq!(described(ecs, &disk).await, None);
    assert_rejected(
        attach(ecs, &disk, "i-one").await,
        Kind::NotFound,
        "InvalidDiskId.NotFound",
    );
}

pub(crate) async fn deleting_a_missing_disk_is_success_or_not_found(ecs: &Client, world: &World) {
    let disk = "d-unknown".parse().unwrap();
    ecs.delete_disk(deadline(), &disk).await.unwrap();
    world.configure(json!({"rules": {"missing_is_error": true}}));
    expect_error(ecs.delete_disk(deadline(), &disk).await, Kind::NotFound);
}

pub(crate) async fn an_attached_or_creating_disk_cannot_be_deleted(ecs: &Client, world: &World) {
    for alternatives in ["first", "last"] {
        world.configure(json!({
            "rules": {"alternatives": alternatives}, "delays": {"create": "3s"}
        }));
        let disk = create_essd(ecs, alternatives).await;
        expect_error(ecs.delete_disk(deadline(), &disk).await, Kind::Conflict);
        world.pass(3);
        attach(ecs, &disk, "i-one").await.unwrap();
        expect_error(ecs.delete_disk(deadline(), &disk).await, Kind::Conflict);
        detach(ecs, &disk, "i-one").await.unwrap();
        ecs.delete_disk(deadline(), &disk).await.unwrap();
    }
}

pub(crate) async fn a_wrong_zone_or_size_is_invalid(ecs: &Client, world: &World) {
    let nowhere = essd_with("nowhere", |disk| disk.zone = Some(zone("cn-beijing-z")));
    expect_error(create(ecs, &nowhere).await, Kind::Invalid);
    for alternatives in ["first", "last"] {
        world.configure(json!({"rules": {"alternatives": alternatives}}));
        let tiny = essd_with("tiny", |disk| disk.size = Gib(19));
        expect_error(create(ecs, &tiny).await, Kind::OutOfRange);
    }
    assert_eq!(world.disks(), 0);
}
