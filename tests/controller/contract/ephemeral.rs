//! Elastic ephemeral disks, and the categories of the finance cloud.

use diskplugin::model::{Category, ClientToken, DiskId, Gib, Tags};
use ecs::{AttachDisk, Client, CreateDisk, CreateSnapshot, DetachDisk, Kind, ModifyDiskSpec, ResizeDisk, ResizeMode};
use serde_json::json;

use crate::contract::multi_attach::{code, nvme};
use crate::contract::world::{World, ZONE, attach_to, deadline, described, detach_from, essd, expect_error, node};

over_every_connection!(
    an_ephemeral_disk_comes_and_goes_with_delete_with_instance_only,
    an_ephemeral_disk_returns_to_its_first_instance_only,
    an_ephemeral_disk_is_deleted_with_its_instance,
    an_ephemeral_disk_has_no_snapshots_and_is_made_from_none,
    an_ephemeral_disk_can_be_resized_but_not_converted,
    each_category_rejects_sizes_out_of_range,
);

fn of(category: Category, size: u32) -> CreateDisk {
    CreateDisk {
        category,
        size: Gib(size),
        ..essd("disk")
    }
}

/// An ephemeral disk, and two instances that support it.
async fn ephemeral(ecs: &Client, world: &World) -> DiskId {
    nvme(world, "i-a", ZONE);
    nvme(world, "i-b", ZONE);
    let request = of(Category::EphemeralPremium, 64);
    ecs.create_disk(deadline(), &request).await.unwrap()
}

fn ephemeral_attach(disk: &DiskId, instance: &str) -> AttachDisk {
    AttachDisk {
        delete_with_instance: true,
        ..attach_to(disk, instance)
    }
}

fn ephemeral_detach(disk: &DiskId, instance: &str) -> DetachDisk {
    DetachDisk {
        delete_with_instance: true,
        ..detach_from(disk, instance)
    }
}

pub(crate) async fn an_ephemeral_disk_comes_and_goes_with_delete_with_instance_only(ecs: &Client, world: &World) {
    let needs = || (403, "InvalidParameter.DeleteWithInstance".to_owned());
    let disk = ephemeral(ecs, world).await;
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(row.category, Category::EphemeralPremium);
    let lacking = ecs.attach_disk(deadline(), &attach_to(&disk, "i-a")).await;
    assert_eq!(code(lacking), needs());
    ecs.attach_disk(deadline(), &ephemeral_attach(&disk, "i-a"))
        .await
        .unwrap();
    let row = described(ecs, &disk).await.unwrap();
    assert!(row.is_in_use_on(&node("i-a")));
    let lacking = ecs.detach_disk(deadline(), &detach_from(&disk, "i-a")).await;
    assert_eq!(code(lacking), needs());
    ecs.detach_disk(deadline(), &ephemeral_detach(&disk, "i-a"))
        .await
        .unwrap();
    assert!(described(ecs, &disk).await.unwrap().is_free());
}

pub(crate) async fn an_ephemeral_disk_returns_to_its_first_instance_only(ecs: &Client, world: &World) {
    let disk = ephemeral(ecs, world).await;
    for _ in 0..2 {
        ecs.attach_disk(deadline(), &ephemeral_attach(&disk, "i-a"))
            .await
            .unwrap();
        ecs.detach_disk(deadline(), &ephemeral_detach(&disk, "i-a"))
            .await
            .unwrap();
    }
    let other = ecs.attach_disk(deadline(), &ephemeral_attach(&disk, "i-b")).await;
    let refusal = "InvalidOperation.OtherInstanceUnsupported";
    assert_eq!(code(other), (403, refusal.to_owned()));
}

pub(crate) async fn an_ephemeral_disk_is_deleted_with_its_instance(ecs: &Client, world: &World) {
    let disk = ephemeral(ecs, world).await;
    ecs.attach_disk(deadline(), &ephemeral_attach(&disk, "i-a"))
        .await
        .unwrap();
    assert!(world.cloud.remove_instance(node("i-a")));
    assert_eq!(described(ecs, &disk).await, None);
}

pub(crate) async fn an_ephemeral_disk_has_no_snapshots_and_is_made_from_none(ecs: &Client, world: &World) {
    let snapshot = |disk: &DiskId| CreateSnapshot {
        disk: disk.clone(),
        name: "snapshot".to_owned(),
        retention_days: None,
        resource_group: None,
        tags: Tags::new(),
        token: ClientToken::derive("CreateSnapshot", [disk.as_str()]),
    };
    let disk = ephemeral(ecs, world).await;
    ecs.attach_disk(deadline(), &ephemeral_attach(&disk, "i-a"))
        .await
        .unwrap();
    for alternatives in ["first", "last"] {
        world.configure(json!({"rules": {"alternatives": alternatives}}));
        let outcome = ecs.create_snapshot(deadline(), &snapshot(&disk)).await;
        expect_error(outcome, Kind::Precondition);
    }
    assert_eq!(world.snapshots(), 0);
    let source = ecs.create_disk(deadline(), &essd("source")).await.unwrap();
    ecs.attach_disk(deadline(), &attach_to(&source, "i-b")).await.unwrap();
    let snapshot = ecs.create_snapshot(deadline(), &snapshot(&source)).await;
    let restored = CreateDisk {
        snapshot: Some(snapshot.unwrap()),
        token: ClientToken::derive("test", ["restored"]),
        ..of(Category::EphemeralStandard, 64)
    };
    let outcome = ecs.create_disk(deadline(), &restored).await;
    let refusal = "InvalidOperation.CreateFromSnapshotUnsupported";
    assert_eq!(code(outcome), (403, refusal.to_owned()));
}

pub(crate) async fn an_ephemeral_disk_can_be_resized_but_not_converted(ecs: &Client, world: &World) {
    let disk = ephemeral(ecs, world).await;
    let to = |size: u32| ResizeDisk {
        disk: disk.clone(),
        size: Gib(size),
        mode: ResizeMode::Offline,
        token: ClientToken::derive("ResizeDisk", [size.to_string().as_str()]),
    };
    expect_error(ecs.resize_disk(deadline(), &to(8193)).await, Kind::OutOfRange);
    ecs.resize_disk(deadline(), &to(8192)).await.unwrap();
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(8192));
    let other = ModifyDiskSpec {
        disk: disk.clone(),
        category: Some(Category::CloudEssd),
        performance_level: None,
        provisioned_iops: None,
        dry_run: true,
    };
    let outcome = ecs.modify_disk_spec(deadline(), &other).await;
    assert_eq!(code(outcome), (403, "InvalidDiskCategory.NotSupported".to_owned()));
}

pub(crate) async fn each_category_rejects_sizes_out_of_range(ecs: &Client, world: &World) {
    for category in Category::KNOWN {
        let sizes = category.sizes().unwrap();
        let (least, most) = (sizes.start().0, sizes.end().0);
        let regional = category.is_regional();
        let sized = |size: u32| CreateDisk {
            zone: essd("x").zone.filter(|_| !regional),
            token: ClientToken::derive("test", [category.as_str(), size.to_string().as_str()]),
            ..of(category.clone(), size)
        };
        let before = world.disks();
        for size in [least - 1, most + 1] {
            let outcome = ecs.create_disk(deadline(), &sized(size)).await;
            // A size of 0 is not sent.
            let kinds = [Kind::OutOfRange, Kind::Bug];
            let kind = outcome.unwrap_err().kind();
            assert!(kinds.contains(&kind), "{category} {size}: {kind:?}");
        }
        assert_eq!(world.disks(), before, "{category}");
        for size in [least, most] {
            ecs.create_disk(deadline(), &sized(size)).await.unwrap();
        }
        assert_eq!(world.disks(), before + 2, "{category}");
    }
}
