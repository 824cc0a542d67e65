//! Multi-attach disks, regional disks, and disks that are not portable.

use fake_ecs::ExistingDisk;

use diskplugin::model::DiskKind;

use crate::contract::world::*;

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
    create(ecs, &request).await.unwrap()
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
pub(crate) fn assert_refused<T: std::fmt::Debug>(outcome: Result<T>, status: u16, expected: &str) {
    assert_eq!(code(outcome), (status, expected.to_owned()));
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
    attach(ecs, &disk, "i-a").await.unwrap();
    world.pass(2);
    attach(ecs, &disk, "i-b").await.unwrap();
    let row = described(ecs, &disk).await.unwrap();
    assert!(row.multi_attach && row.status == DiskStatus::InUse);
    assert_eq!(row.attachments, [node("i-a")]);
    world.pass(2);
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(row.attachments, [node("i-a"), node("i-b")]);
    detach(ecs, &disk, "i-a").await.unwrap();
    world.pass(2);
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!((row.status, row.attachments), (DiskStatus::InUse, vec![node("i-b")]));
    assert_refused(detach(ecs, &disk, "i-a").await, 403, "DependencyViolation");
    detach(ecs, &disk, "i-b").await.unwrap();
    world.pass(2);
    assert!(described(ecs, &disk).await.unwrap().is_free());
}

pub(crate) async fn at_most_sixteen_instances_share_a_disk(ecs: &Client, world: &World) {
    let disk = shared(ecs).await;
    for n in 0..16 {
        let id = format!("i-{n}");
        nvme(world, &id, ZONE);
        attach(ecs, &disk, &id).await.unwrap();
    }
    nvme(world, "i-more", ZONE);
    assert_refused(attach(ecs, &disk, "i-more").await, 403, "DiskAttachedNumberExceeded");
    detach(ecs, &disk, "i-7").await.unwrap();
    attach(ecs, &disk, "i-more").await.unwrap();
}

pub(crate) async fn a_shared_disk_takes_an_instance_that_speaks_nvme_in_its_zone(ecs: &Client, world: &World) {
    nvme(world, "i-b", FAR_ZONE);
    let disk = shared(ecs).await;
    let old = attach(ecs, &disk, "i-one").await;
    assert_refused(old, 403, "InvalidInstanceType.NvmeUnsupported");
    assert_refused(attach(ecs, &disk, "i-b").await, 403, "ResourcesNotInSameZone");
    let efficiency = found(world, "cloud_efficiency", Some(FAR_ZONE));
    let category = attach(ecs, &efficiency, "i-b").await;
    assert_refused(category, 403, "InvalidInstanceType.NotSupportDiskCategory");
}

pub(crate) async fn a_regional_disk_attaches_in_every_zone(ecs: &Client, world: &World) {
    let disk = found(world, "cloud_regional_disk_auto", None);
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!((row.zone, row.category.is_regional()), (None, true));
    for instance in ["i-one", "i-far"] {
        attach(ecs, &disk, instance).await.unwrap();
        detach(ecs, &disk, instance).await.unwrap();
    }
}

pub(crate) async fn force_takes_only_a_regional_disk_and_only_from_another_zone(ecs: &Client, world: &World) {
    let zonal = create_essd(ecs, "zonal").await;
    let expect_error = ecs.attach_disk(deadline(), &by_force(&zonal, "i-one")).await;
    assert_refused(expect_error, 400, "InvalidParameterForce.DiskCategoryNotSupported");
    let disk = found(world, "cloud_regional_disk_auto", None);
    attach(ecs, &disk, "i-one").await.unwrap();
    world.configure(json!({"faults": [{"action": "DetachDisk", "kind": "fails-later"}]}));
    detach(ecs, &disk, "i-one").await.unwrap();
    world.pass(3600);
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(row.status, DiskStatus::Detaching);
    for instance in ["i-one", "i-two"] {
        assert_refused(attach(ecs, &disk, instance).await, 403, "IncorrectDiskStatus");
        assert_refused(
            ecs.attach_disk(deadline(), &by_force(&disk, instance)).await,
            403,
            "InvalidInstance.ZoneConflict",
        );
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
    assert_refused(attach(ecs, &disk, "i-one").await, 403, "DiskNotPortable");
    let disk = add_disk(world, &subscribed(Some("i-one")));
    assert_refused(detach(ecs, &disk, "i-one").await, 403, "DiskNotPortable");
}

pub(crate) async fn what_belongs_to_an_instance_is_not_attached_to_another_one(ecs: &Client, world: &World) {
    let disk = found(world, "local_ssd_pro", Some(ZONE));
    let expect_error = attach(ecs, &disk, "i-one").await;
    assert_refused(expect_error, 400, "DiskCategory.OperationNotSupported");
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
    assert_refused(detach(ecs, &system, "i-one").await, 403, "DiskTypeViolation");
}

pub(crate) async fn an_instance_that_is_tagged_attaches_side_by_side_and_detaches_five(ecs: &Client, world: &World) {
    world.configure(json!({
        "rules": {"alternatives": "last"}, "delays": {"attach": "2s", "detach": "2s"}
    }));
    let mut disks = Vec::new();
    for n in 0..6 {
        disks.push(create_essd(ecs, &format!("disk-{n}")).await);
    }
    attach(ecs, &disks[0], "i-one").await.unwrap();
    let second = attach(ecs, &disks[1], "i-one").await;
    assert_refused(second, 400, "OperationConflict.DisksAttachingParallellyExceed");
    for key in ["supportConcurrencyAttach", "supportConcurrencyDetach"] {
        assert!(world.cloud.tag_instance(node("i-one"), key, "true"));
    }
    for disk in &disks[1..] {
        attach(ecs, disk, "i-one").await.unwrap();
    }
    world.pass(2);
    for disk in &disks[..5] {
        detach(ecs, disk, "i-one").await.unwrap();
    }
    assert_refused(
        detach(ecs, &disks[5], "i-one").await,
        400,
        "DisksDetachingOnEcsExceeded",
    );
}

pub(crate) async fn attach_and_detach_can_exclude_each_other(ecs: &Client, world: &World) {
    let delays = json!({"attach": "2s", "detach": "2s"});
    world.configure(json!({"delays": delays, "rules": {"alternatives": "first"}}));
    let (one, two) = (create_essd(ecs, "one").await, create_essd(ecs, "two").await);
    attach(ecs, &one, "i-one").await.unwrap();
    world.pass(2);
    world.configure(json!({"rules": {"exclusive_attach_detach": true}}));
    detach(ecs, &one, "i-one").await.unwrap();
    assert_refused(attach(ecs, &two, "i-one").await, 403, "InvalidOperation.Conflict");
    world.pass(2);
    attach(ecs, &two, "i-one").await.unwrap();
}

pub(crate) async fn a_description_says_when_a_disk_was_attached_or_else_detached(ecs: &Client, world: &World) {
    world.configure(json!({"delays": {"attach": "2s", "detach": "3s"}}));
    let disk = create_essd(ecs, "timed").await;
    let times = async || {
        let row = described(ecs, &disk).await.unwrap();
        (row.attached, row.detached)
    };
    assert_eq!(times().await, (None, None));
    attach(ecs, &disk, "i-one").await.unwrap();
    world.pass(2);
    let second = |at: jiff::Timestamp| jiff::Timestamp::from_second(at.as_second()).ok();
    assert_eq!(times().await, (second(world.now()), None));
    detach(ecs, &disk, "i-one").await.unwrap();
    world.pass(3);
    assert_eq!(times().await, (None, second(world.now())));
}

pub(crate) async fn an_attaching_disk_cannot_be_deleted(ecs: &Client, world: &World) {
    world.configure(json!({"delays": {"attach": "2s", "delete": "2s"}}));
    let (first, second) = (create_essd(ecs, "first").await, create_essd(ecs, "second").await);
    attach(ecs, &first, "i-one").await.unwrap();
    assert_refused(ecs.delete_disk(deadline(), &first).await, 403, "IncorrectDiskStatus");
    world.pass(2);
    assert!(described(ecs, &first).await.unwrap().is_in_use_on(&node("i-one")));
    ecs.delete_disk(deadline(), &second).await.unwrap();
    assert_refused(attach(ecs, &second, "i-one").await, 404, "InvalidDiskId.NotFound");
}

pub(crate) async fn removing_an_instance_deletes_none_of_its_disks(ecs: &Client, world: &World) {
    world.configure(json!({"delays": {"detach": "5s", "power": "1s"}}));
    let disk = create_essd(ecs, "left").await;
    attach(ecs, &disk, "i-one").await.unwrap();
    assert!(world.cloud.set_instance_power(node("i-one"), false));
    world.pass(1);
    assert!(world.cloud.remove_instance(node("i-one")));
    assert_refused(detach(ecs, &disk, "i-one").await, 404, "InvalidInstanceId.NotFound");
    let row = described(ecs, &disk).await.unwrap();
    assert!(row.is_attached_to(&node("i-one")) && row.status == DiskStatus::Detaching);
    world.pass(5);
    assert!(described(ecs, &disk).await.unwrap().is_free());
}
