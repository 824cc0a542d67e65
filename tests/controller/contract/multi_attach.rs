//! Multi-attach disks, regional disks, and disks that are not portable.

use diskplugin::model::{DiskId, DiskKind, DiskStatus};
use ecs::{AttachDisk, Client, Error, Result};
use fake_ecs::ExistingDisk;
use serde_json::json;

use crate::contract::world::{
    FAR_ZONE, World, ZONE, attach_to, create_essd, deadline, described, detach_from, essd, node,
};

over_every_connection!(
    a_shared_disk_is_in_use_until_the_last_instance_lets_go,
    at_most_sixteen_instances_share_a_disk,
    a_shared_disk_takes_an_instance_that_speaks_nvme_in_its_zone,
    a_regional_disk_attaches_in_every_zone,
    force_takes_only_a_regional_disk_and_only_from_another_zone,
    a_subscription_disk_is_not_portable,
    what_belongs_to_an_instance_is_not_attached_to_another_one,
    an_instance_that_is_tagged_attaches_side_by_side_and_detaches_five,
    attach_and_detach_can_exclude_each_other,
    a_description_says_when_a_disk_was_attached_or_else_detached,
    an_attaching_disk_cannot_be_deleted,
    removing_an_instance_deletes_none_of_its_disks,
);

pub(crate) fn nvme(world: &World, id: &str, zone: &str) {
    let spec = format!("{id}={zone}=ecs.g8i.large").parse().unwrap();
    assert_eq!(world.cloud.add_instance(spec), id);
}

async fn shared(ecs: &Client) -> DiskId {
    let mut request = essd("shared");
    request.multi_attach = true;
    ecs.create_disk(deadline(), &request).await.unwrap()
}

fn add_disk(world: &World, disk: &ExistingDisk) -> DiskId {
    world.cloud.add_disk(disk).parse().unwrap()
}

fn found(world: &World, category: &str, zone: Option<&str>) -> DiskId {
    add_disk(
        world,
        &ExistingDisk {
            category: category.to_owned(),
            zone: zone.map(str::to_owned),
            system: false,
            portable: true,
            instance: None,
        },
    )
}

fn by_force(disk: &DiskId, instance: &str) -> AttachDisk {
    AttachDisk {
        force: true,
        ..attach_to(disk, instance)
    }
}

#[track_caller]
pub(crate) fn code<T: std::fmt::Debug>(outcome: Result<T>) -> (u16, String) {
    let error: Error = outcome.unwrap_err();
    let code = error.code().unwrap_or_default().to_owned();
    (error.status().unwrap_or_default(), code)
}

pub(crate) async fn a_shared_disk_is_in_use_until_the_last_instance_lets_go(ecs: &Client, world: &World) {
    nvme(world, "i-a", ZONE);
    nvme(world, "i-b", ZONE);
    world.configure(json!({"delays": {"attach": "2s", "detach": "2s"}}));
    let disk = shared(ecs).await;
    ecs.attach_disk(deadline(), &attach_to(&disk, "i-a")).await.unwrap();
    world.pass(2);
    ecs.attach_disk(deadline(), &attach_to(&disk, "i-b")).await.unwrap();
    let row = described(ecs, &disk).await.unwrap();
    assert!(row.multi_attach && row.status == DiskStatus::InUse);
    assert_eq!(row.attachments, [node("i-a")]);
    world.pass(2);
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(row.attachments, [node("i-a"), node("i-b")]);
    ecs.detach_disk(deadline(), &detach_from(&disk, "i-a")).await.unwrap();
    world.pass(2);
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!((row.status, row.attachments), (DiskStatus::InUse, vec![node("i-b")]));
    let gone = ecs.detach_disk(deadline(), &detach_from(&disk, "i-a")).await;
    assert_eq!(code(gone), (403, "DependencyViolation".to_owned()));
    ecs.detach_disk(deadline(), &detach_from(&disk, "i-b")).await.unwrap();
    world.pass(2);
    assert!(described(ecs, &disk).await.unwrap().is_free());
}

pub(crate) async fn at_most_sixteen_instances_share_a_disk(ecs: &Client, world: &World) {
    let disk = shared(ecs).await;
    for n in 0..16 {
        let id = format!("i-{n}");
        nvme(world, &id, ZONE);
        ecs.attach_disk(deadline(), &attach_to(&disk, &id)).await.unwrap();
    }
    nvme(world, "i-more", ZONE);
    let expect_error = ecs.attach_disk(deadline(), &attach_to(&disk, "i-more")).await;
    assert_eq!(code(expect_error), (403, "DiskAttachedNumberExceeded".to_owned()));
    ecs.detach_disk(deadline(), &detach_from(&disk, "i-7")).await.unwrap();
    ecs.attach_disk(deadline(), &attach_to(&disk, "i-more")).await.unwrap();
}

pub(crate) async fn a_shared_disk_takes_an_instance_that_speaks_nvme_in_its_zone(ecs: &Client, world: &World) {
    nvme(world, "i-b", FAR_ZONE);
    let disk = shared(ecs).await;
    let old = ecs.attach_disk(deadline(), &attach_to(&disk, "i-one")).await;
    let unsupported = "InvalidInstanceType.NvmeUnsupported";
    assert_eq!(code(old), (403, unsupported.to_owned()));
    let far = ecs.attach_disk(deadline(), &attach_to(&disk, "i-b")).await;
    assert_eq!(code(far), (403, "ResourcesNotInSameZone".to_owned()));
    let efficiency = found(world, "cloud_efficiency", Some(FAR_ZONE));
    let category = ecs.attach_disk(deadline(), &attach_to(&efficiency, "i-b")).await;
    let unsupported = "InvalidInstanceType.NotSupportDiskCategory";
    assert_eq!(code(category), (403, unsupported.to_owned()));
}

pub(crate) async fn a_regional_disk_attaches_in_every_zone(ecs: &Client, world: &World) {
    let disk = found(world, "cloud_regional_disk_auto", None);
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!((row.zone, row.category.is_regional()), (None, true));
    for instance in ["i-one", "i-far"] {
        ecs.attach_disk(deadline(), &attach_to(&disk, instance)).await.unwrap();
        ecs.detach_disk(deadline(), &detach_from(&disk, instance))
            .await
            .unwrap();
    }
}

pub(crate) async fn force_takes_only_a_regional_disk_and_only_from_another_zone(ecs: &Client, world: &World) {
    let zonal = create_essd(ecs, "zonal").await;
    let expect_error = ecs.attach_disk(deadline(), &by_force(&zonal, "i-one")).await;
    let unsupported = "InvalidParameterForce.DiskCategoryNotSupported";
    assert_eq!(code(expect_error), (400, unsupported.to_owned()));
    let disk = found(world, "cloud_regional_disk_auto", None);
    ecs.attach_disk(deadline(), &attach_to(&disk, "i-one")).await.unwrap();
    world.configure(json!({"faults": [{"action": "DetachDisk", "kind": "fails-later"}]}));
    ecs.detach_disk(deadline(), &detach_from(&disk, "i-one")).await.unwrap();
    world.pass(3600);
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(row.status, DiskStatus::Detaching);
    for instance in ["i-one", "i-two"] {
        let plain = ecs.attach_disk(deadline(), &attach_to(&disk, instance)).await;
        assert_eq!(code(plain), (403, "IncorrectDiskStatus".to_owned()));
        let near = ecs.attach_disk(deadline(), &by_force(&disk, instance)).await;
        assert_eq!(code(near), (403, "InvalidInstance.ZoneConflict".to_owned()));
    }
    ecs.attach_disk(deadline(), &by_force(&disk, "i-far")).await.unwrap();
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(row.attachments, [node("i-far")]);
}

pub(crate) async fn a_subscription_disk_is_not_portable(ecs: &Client, world: &World) {
    let subscribed = |instance: Option<&str>| ExistingDisk {
        category: "cloud_essd".to_owned(),
        zone: Some(ZONE.to_owned()),
        system: false,
        portable: false,
        instance: instance.map(str::to_owned),
    };
    let disk = add_disk(world, &subscribed(None));
    let expect_error = ecs.attach_disk(deadline(), &attach_to(&disk, "i-one")).await;
    assert_eq!(code(expect_error), (403, "DiskNotPortable".to_owned()));
    let disk = add_disk(world, &subscribed(Some("i-one")));
    let expect_error = ecs.detach_disk(deadline(), &detach_from(&disk, "i-one")).await;
    assert_eq!(code(expect_error), (403, "DiskNotPortable".to_owned()));
}

pub(crate) async fn what_belongs_to_an_instance_is_not_attached_to_another_one(ecs: &Client, world: &World) {
    let disk = found(world, "local_ssd_pro", Some(ZONE));
    let expect_error = ecs.attach_disk(deadline(), &attach_to(&disk, "i-one")).await;
    let refusal = "DiskCategory.OperationNotSupported";
    assert_eq!(code(expect_error), (400, refusal.to_owned()));
    let system = add_disk(
        world,
        &ExistingDisk {
            category: "cloud_essd".to_owned(),
            zone: Some(ZONE.to_owned()),
            system: true,
            portable: true,
            instance: Some("i-one".to_owned()),
        },
    );
    let row = described(ecs, &system).await.unwrap();
    assert_eq!(row.kind, DiskKind::System);
    let expect_error = ecs.detach_disk(deadline(), &detach_from(&system, "i-one")).await;
    assert_eq!(code(expect_error), (403, "DiskTypeViolation".to_owned()));
}

pub(crate) async fn an_instance_that_is_tagged_attaches_side_by_side_and_detaches_five(ecs: &Client, world: &World) {
    world.configure(json!({
        "rules": {"alternatives": "last"}, "delays": {"attach": "2s", "detach": "2s"}
    }));
    let mut disks = Vec::new();
    for n in 0..6 {
        disks.push(create_essd(ecs, &format!("disk-{n}")).await);
    }
    ecs.attach_disk(deadline(), &attach_to(&disks[0], "i-one"))
        .await
        .unwrap();
    let second = ecs.attach_disk(deadline(), &attach_to(&disks[1], "i-one")).await;
    let parallel = "OperationConflict.DisksAttachingParallellyExceed";
    assert_eq!(code(second), (400, parallel.to_owned()));
    for key in ["supportConcurrencyAttach", "supportConcurrencyDetach"] {
        assert!(world.cloud.tag_instance(node("i-one"), key, "true"));
    }
    for disk in &disks[1..] {
        ecs.attach_disk(deadline(), &attach_to(disk, "i-one")).await.unwrap();
    }
    world.pass(2);
    for disk in &disks[..5] {
        ecs.detach_disk(deadline(), &detach_from(disk, "i-one")).await.unwrap();
    }
    let sixth = ecs.detach_disk(deadline(), &detach_from(&disks[5], "i-one")).await;
    assert_eq!(code(sixth), (400, "DisksDetachingOnEcsExceeded".to_owned()));
}

pub(crate) async fn attach_and_detach_can_exclude_each_other(ecs: &Client, world: &World) {
    let delays = json!({"attach": "2s", "detach": "2s"});
    world.configure(json!({"delays": delays, "rules": {"alternatives": "first"}}));
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    ecs.attach_disk(deadline(), &attach_to(&one, "i-one")).await.unwrap();
    world.pass(2);
    world.configure(json!({"rules": {"exclusive_attach_detach": true}}));
    ecs.detach_disk(deadline(), &detach_from(&one, "i-one")).await.unwrap();
    let busy = ecs.attach_disk(deadline(), &attach_to(&two, "i-one")).await;
    assert_eq!(code(busy), (403, "InvalidOperation.Conflict".to_owned()));
    world.pass(2);
    ecs.attach_disk(deadline(), &attach_to(&two, "i-one")).await.unwrap();
}

pub(crate) async fn a_description_says_when_a_disk_was_attached_or_else_detached(ecs: &Client, world: &World) {
    world.configure(json!({"delays": {"attach": "2s", "detach": "3s"}}));
    let disk = create_essd(ecs, "timed").await;
    let times = async || {
        let row = described(ecs, &disk).await.unwrap();
        (row.attached, row.detached)
    };
    assert_eq!(times().await, (None, None));
    ecs.attach_disk(deadline(), &attach_to(&disk, "i-one")).await.unwrap();
    world.pass(2);
    let second = |at: jiff::Timestamp| jiff::Timestamp::from_second(at.as_second()).ok();
    assert_eq!(times().await, (second(world.now()), None));
    ecs.detach_disk(deadline(), &detach_from(&disk, "i-one")).await.unwrap();
    world.pass(3);
    assert_eq!(times().await, (None, second(world.now())));
}

pub(crate) async fn an_attaching_disk_cannot_be_deleted(ecs: &Client, world: &World) {
    world.configure(json!({"delays": {"attach": "2s", "delete": "2s"}}));
    let (first, second) = (create_essd(ecs, "first").await, create_essd(ecs, "second").await);
    ecs.attach_disk(deadline(), &attach_to(&first, "i-one")).await.unwrap();
    let late = ecs.delete_disk(deadline(), &first).await;
    assert_eq!(code(late), (403, "IncorrectDiskStatus".to_owned()));
    world.pass(2);
    assert!(described(ecs, &first).await.unwrap().is_in_use_on(&node("i-one")));
    ecs.delete_disk(deadline(), &second).await.unwrap();
    let late = ecs.attach_disk(deadline(), &attach_to(&second, "i-one")).await;
    assert_eq!(code(late), (404, "InvalidDiskId.NotFound".to_owned()));
}

pub(crate) async fn removing_an_instance_deletes_none_of_its_disks(ecs: &Client, world: &World) {
    world.configure(json!({"delays": {"detach": "5s", "power": "1s"}}));
    let disk = create_essd(ecs, "left").await;
    ecs.attach_disk(deadline(), &attach_to(&disk, "i-one")).await.unwrap();
    assert!(world.cloud.set_instance_power(node("i-one"), false));
    world.pass(1);
    assert!(world.cloud.remove_instance(node("i-one")));
    let gone = ecs.detach_disk(deadline(), &detach_from(&disk, "i-one")).await;
    assert_eq!(code(gone), (404, "InvalidInstanceId.NotFound".to_owned()));
    let row = described(ecs, &disk).await.unwrap();
    assert!(row.is_attached_to(&node("i-one")) && row.status == DiskStatus::Detaching);
    world.pass(5);
    assert!(described(ecs, &disk).await.unwrap().is_free());
}
