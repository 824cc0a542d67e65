//! Disks are attached to instances and detached again.

use diskplugin::cloud::{DescribeDisks, Ecs, Kind};
use diskplugin::model::DiskStatus;
use serde_json::json;

use crate::world::{FAR_ZONE, World, essd, made, node, off, onto, refused, seen, soon, zone};

on_every_face!(
    an_attached_disk_names_its_holder,
    a_detached_disk_is_held_until_it_is_off,
    a_holder_finds_its_disks,
    a_disk_in_use_elsewhere_is_a_conflict,
    a_disk_is_not_attached_twice,
    one_instance_does_one_thing_at_a_time,
    an_instance_that_is_allowed_to_attaches_side_by_side,
    detaching_what_is_free_is_a_conflict_or_not_found,
    unknown_disks_and_instances_are_told_apart,
    a_disk_of_another_zone_is_refused,
    a_full_instance_is_a_quota,
);

pub(crate) async fn an_attached_disk_names_its_holder(ecs: &dyn Ecs, world: &World) {
    world.configure(json!({"delays": {"attach": "2s"}}));
    let disk = made(ecs, "held").await;
    ecs.attach_disk(soon(), &onto(&disk, "i-one"))
        .await
        .unwrap();
    let row = seen(ecs, &disk).await.unwrap();
    assert_eq!(
        (row.status, row.attachments),
        (DiskStatus::Attaching, vec![])
    );
    world.pass(2);
    let row = seen(ecs, &disk).await.unwrap();
    assert!(row.is_in_use_on(&node("i-one")), "{row}");
    assert_eq!(row.attachments.len(), 1);
}

pub(crate) async fn a_detached_disk_is_held_until_it_is_off(ecs: &dyn Ecs, world: &World) {
    world.configure(json!({"delays": {"detach": "2s"}}));
    let disk = made(ecs, "held").await;
    ecs.attach_disk(soon(), &onto(&disk, "i-one"))
        .await
        .unwrap();
    ecs.detach_disk(soon(), &off(&disk, "i-one")).await.unwrap();
    let row = seen(ecs, &disk).await.unwrap();
    assert_eq!(row.status, DiskStatus::Detaching);
    assert!(row.is_attached_to(&node("i-one")));
    world.pass(2);
    assert!(seen(ecs, &disk).await.unwrap().is_free());
}

pub(crate) async fn a_holder_finds_its_disks(ecs: &dyn Ecs, _: &World) {
    let mine = made(ecs, "mine").await;
    let other = made(ecs, "other").await;
    made(ecs, "free").await;
    ecs.attach_disk(soon(), &onto(&mine, "i-one"))
        .await
        .unwrap();
    ecs.attach_disk(soon(), &onto(&other, "i-two"))
        .await
        .unwrap();
    let query = DescribeDisks {
        instance: Some(node("i-one")),
        ..DescribeDisks::default()
    };
    let page = ecs.describe_disks(soon(), &query).await.unwrap();
    let ids: Vec<_> = page.rows.into_iter().map(|row| row.id).collect();
    assert_eq!(ids, [mine]);
}

pub(crate) async fn a_disk_in_use_elsewhere_is_a_conflict(ecs: &dyn Ecs, world: &World) {
    let disk = made(ecs, "theirs").await;
    ecs.attach_disk(soon(), &onto(&disk, "i-one"))
        .await
        .unwrap();
    for alternatives in ["first", "last"] {
        world.configure(json!({"rules": {"alternatives": alternatives}}));
        let outcome = ecs.attach_disk(soon(), &onto(&disk, "i-two")).await;
        refused(outcome, Kind::Conflict);
        let outcome = ecs.detach_disk(soon(), &off(&disk, "i-two")).await;
        refused(outcome, Kind::Conflict);
    }
    let row = seen(ecs, &disk).await.unwrap();
    assert!(row.is_in_use_on(&node("i-one")), "{row}");
}

pub(crate) async fn a_disk_is_not_attached_twice(ecs: &dyn Ecs, world: &World) {
    for alternatives in ["first", "last"] {
        world.configure(json!({
            "rules": {"alternatives": alternatives}, "delays": {"attach": "2s"}
        }));
        let disk = made(ecs, alternatives).await;
        let request = onto(&disk, "i-one");
        ecs.attach_disk(soon(), &request).await.unwrap();
        refused(ecs.attach_disk(soon(), &request).await, Kind::Conflict);
        world.pass(2);
        refused(ecs.attach_disk(soon(), &request).await, Kind::Conflict);
    }
}

pub(crate) async fn one_instance_does_one_thing_at_a_time(ecs: &dyn Ecs, world: &World) {
    for alternatives in ["first", "last"] {
        world.configure(json!({
            "rules": {"alternatives": alternatives}, "delays": {"attach": "2s", "detach": "2s"}
        }));
        let one = made(ecs, &format!("one-{alternatives}")).await;
        let two = made(ecs, &format!("two-{alternatives}")).await;
        ecs.attach_disk(soon(), &onto(&one, "i-one")).await.unwrap();
        let outcome = ecs.attach_disk(soon(), &onto(&two, "i-one")).await;
        refused(outcome, Kind::Conflict);
        world.pass(2);
        ecs.attach_disk(soon(), &onto(&two, "i-one")).await.unwrap();
        world.pass(2);
        ecs.detach_disk(soon(), &off(&one, "i-one")).await.unwrap();
        let outcome = ecs.detach_disk(soon(), &off(&two, "i-one")).await;
        refused(outcome, Kind::Conflict);
        world.pass(2);
        ecs.detach_disk(soon(), &off(&two, "i-one")).await.unwrap();
        world.pass(2);
    }
}

pub(crate) async fn an_instance_that_is_allowed_to_attaches_side_by_side(
    ecs: &dyn Ecs,
    world: &World,
) {
    world.configure(json!({"rules": {"serial_attach_detach": false}, "delays": {"attach": "2s"}}));
    let (one, two) = (made(ecs, "one").await, made(ecs, "two").await);
    ecs.attach_disk(soon(), &onto(&one, "i-one")).await.unwrap();
    ecs.attach_disk(soon(), &onto(&two, "i-one")).await.unwrap();
    world.pass(2);
    for disk in [one, two] {
        assert!(seen(ecs, &disk).await.unwrap().is_in_use_on(&node("i-one")));
    }
}

pub(crate) async fn detaching_what_is_free_is_a_conflict_or_not_found(
    ecs: &dyn Ecs,
    world: &World,
) {
    let disk = made(ecs, "free").await;
    for seed in 0..8 {
        world.configure(json!({"rules": {"alternatives": "seeded"}}));
        let error = ecs.detach_disk(soon(), &off(&disk, "i-one")).await;
        let kind = error.unwrap_err().kind();
        assert!(
            matches!(kind, Kind::Conflict | Kind::NotFound),
            "try {seed}: {kind:?}"
        );
    }
}

pub(crate) async fn unknown_disks_and_instances_are_told_apart(ecs: &dyn Ecs, _: &World) {
    let disk = made(ecs, "known").await;
    let nothing = "d-unknown".parse().unwrap();
    for (disk, instance, code) in [
        (&nothing, "i-one", "InvalidDiskId.NotFound"),
        (&disk, "i-unknown", "InvalidInstanceId.NotFound"),
    ] {
        let outcome = ecs.attach_disk(soon(), &onto(disk, instance)).await;
        assert_eq!(refused(outcome, Kind::NotFound).code(), Some(code));
        let outcome = ecs.detach_disk(soon(), &off(disk, instance)).await;
        assert_eq!(refused(outcome, Kind::NotFound).code(), Some(code));
    }
}

pub(crate) async fn a_disk_of_another_zone_is_refused(ecs: &dyn Ecs, _: &World) {
    let mut far = essd("far");
    far.zone = Some(zone(FAR_ZONE));
    let disk = ecs.create_disk(soon(), &far).await.unwrap();
    let outcome = ecs.attach_disk(soon(), &onto(&disk, "i-one")).await;
    let error = refused(outcome, Kind::Precondition);
    assert_eq!(error.code(), Some("ResourcesNotInSameZone"));
    ecs.attach_disk(soon(), &onto(&disk, "i-far"))
        .await
        .unwrap();
}

pub(crate) async fn a_full_instance_is_a_quota(ecs: &dyn Ecs, world: &World) {
    // The system disk counts.
    world.configure(json!({"rules": {"disk_quantity": 2}}));
    let (one, two) = (made(ecs, "one").await, made(ecs, "two").await);
    ecs.attach_disk(soon(), &onto(&one, "i-one")).await.unwrap();
    let outcome = ecs.attach_disk(soon(), &onto(&two, "i-one")).await;
    let error = refused(outcome, Kind::Quota);
    assert_eq!(error.code(), Some("InstanceDiskLimitExceeded"));
    assert!(seen(ecs, &two).await.unwrap().is_free());
}
