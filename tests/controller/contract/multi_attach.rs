//! Multi-attach disks, regional disks, and disks that are not portable.

use fake_ecs::ExistingDisk;

use diskplugin::model::DiskKind;

use crate::contract::world::*;

pub(crate) fn nvme(world: &World, id: &str, zone: &str) {
    let spec = format!("{id}={zone}=ecs.g8i.large").parse().unwrap();
    assert_eq!(world.cloud.add_instance(spec), id);
}

async fn shared(ecs: &Client) -> DiskId {
    let request = essd_with("shared", |disk| disk.multi_attach = true);
    create(ecs, &request).await.unwrap()
}

/// A data disk that exists already, with changes.
fn existing(world: &World, category: &str, zone: Option<&str>, change: impl FnOnce(&mut ExistingDisk)) -> DiskId {
    let mut disk = ExistingDisk {
        category: category.to_owned(),
        zone: zone.map(str::to_owned),
        system: false,
        portable: true,
        instance: None,
    };
    change(&mut disk);
    world.cloud.add_disk(&disk).parse().unwrap()
}

fn regional(world: &World) -> DiskId {
    existing(world, "cloud_regional_disk_auto", None, |_| {})
}

async fn force_attach(ecs: &Client, disk: &DiskId, instance: &str) -> Result<()> {
    let request = AttachDisk {
        force: true,
        ..attach_to(disk, &node(instance))
    };
    ecs.attach_disk(deadline(), &request).await
}

#[track_caller]
pub(crate) fn assert_refused<T: std::fmt::Debug>(outcome: Result<T>, status: u16, expected: &str) {
    let error = outcome.unwrap_err();
    assert_eq!((error.status(), error.code()), (Some(status), Some(expected)));
}

contract!(a_multi_attach_disk_is_in_use_until_its_last_detachment, |ecs, world| {
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
});

contract!(at_most_sixteen_instances_share_a_disk, |ecs, world| {
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
});

contract!(multi_attach_requires_an_nvme_instance_in_the_zone, |ecs, world| {
    nvme(world, "i-b", FAR_ZONE);
    let disk = shared(ecs).await;
    let old = attach(ecs, &disk, "i-one").await;
    assert_refused(old, 403, "InvalidInstanceType.NvmeUnsupported");
    assert_refused(attach(ecs, &disk, "i-b").await, 403, "ResourcesNotInSameZone");
    let efficiency = existing(world, "cloud_efficiency", Some(FAR_ZONE), |_| {});
    let category = attach(ecs, &efficiency, "i-b").await;
    assert_refused(category, 403, "InvalidInstanceType.NotSupportDiskCategory");
});

contract!(a_regional_disk_attaches_in_every_zone, |ecs, world| {
    let disk = regional(world);
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!((row.zone, row.category.is_regional()), (None, true));
    for instance in ["i-one", "i-far"] {
        attach(ecs, &disk, instance).await.unwrap();
        detach(ecs, &disk, instance).await.unwrap();
    }
});

contract!(a_forced_attach_requires_a_regional_disk, |ecs, world| {
    let zonal = create_essd(ecs, "zonal").await;
    let rejected = force_attach(ecs, &zonal, "i-one").await;
    assert_refused(rejected, 400, "InvalidParameterForce.DiskCategoryNotSupported");
    let disk = regional(world);
    attach(ecs, &disk, "i-one").await.unwrap();
    world.configure(json!({"faults": [{"action": "DetachDisk", "kind": "fails-later"}]}));
    detach(ecs, &disk, "i-one").await.unwrap();
    world.pass(3600);
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(row.status, DiskStatus::Detaching);
    for instance in ["i-one", "i-two"] {
        assert_refused(attach(ecs, &disk, instance).await, 403, "IncorrectDiskStatus");
        let rejected = force_attach(ecs, &disk, instance).await;
        assert_refused(rejected, 403, "InvalidInstance.ZoneConflict");
    }
    force_attach(ecs, &disk, "i-far").await.unwrap();
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(row.attachments, [node("i-far")]);
});

contract!(a_disk_bound_to_an_instance_does_not_move, |ecs, world| {
    let on_one = || Some("i-one".to_owned());
    // Of a subscription.
    let disk = existing(world, "cloud_essd", Some(ZONE), |disk| disk.portable = false);
    assert_refused(attach(ecs, &disk, "i-one").await, 403, "DiskNotPortable");
    let disk = existing(world, "cloud_essd", Some(ZONE), |disk| {
        (disk.portable, disk.instance) = (false, on_one());
    });
    assert_refused(detach(ecs, &disk, "i-one").await, 403, "DiskNotPortable");
    let local = existing(world, "local_ssd_pro", Some(ZONE), |_| {});
    let rejected = attach(ecs, &local, "i-one").await;
    assert_refused(rejected, 400, "DiskCategory.OperationNotSupported");
    let system = existing(world, "cloud_essd", Some(ZONE), |disk| {
        (disk.system, disk.instance) = (true, on_one());
    });
    let row = described(ecs, &system).await.unwrap();
    assert_eq!(row.kind, DiskKind::System);
    assert_refused(detach(ecs, &system, "i-one").await, 403, "DiskTypeViolation");
});

contract!(a_tagged_instance_detaches_five_disks_in_parallel, |ecs, world| {
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
    let sixth = detach(ecs, &disks[5], "i-one").await;
    assert_refused(sixth, 400, "DisksDetachingOnEcsExceeded");
});

contract!(attach_and_detach_can_exclude_each_other, |ecs, world| {
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
});

contract!(a_disk_has_the_time_of_its_last_attachment, |ecs, world| {
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
});

contract!(removing_an_instance_deletes_none_of_its_disks, |ecs, world| {
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
});
