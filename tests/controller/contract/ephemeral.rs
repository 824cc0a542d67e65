//! Elastic ephemeral disks, and the categories of the finance cloud.

use crate::contract::multi_attach::{assert_refused, nvme};
use crate::contract::world::*;

fn of(category: Category, size: u32) -> CreateDisk {
    essd_with("disk", |disk| (disk.category, disk.size) = (category, Gib(size)))
}

/// An ephemeral disk, and two instances that support it.
async fn ephemeral(ecs: &Client, world: &World) -> DiskId {
    nvme(world, "i-a", ZONE);
    nvme(world, "i-b", ZONE);
    let request = of(Category::EphemeralPremium, 64);
    create(ecs, &request).await.unwrap()
}

async fn ephemeral_attach(ecs: &Client, disk: &DiskId, instance: &str) -> Result<()> {
    let request = AttachDisk {
        delete_with_instance: true,
        ..attach_to(disk, &node(instance))
    };
    ecs.attach_disk(deadline(), &request).await
}

async fn ephemeral_detach(ecs: &Client, disk: &DiskId, instance: &str) -> Result<()> {
    let request = DetachDisk {
        delete_with_instance: true,
        ..detach_from(disk, &node(instance))
    };
    ecs.detach_disk(deadline(), &request).await
}

contract!(an_ephemeral_disk_requires_delete_with_instance, |ecs, world| {
    let required = "InvalidParameter.DeleteWithInstance";
    let disk = ephemeral(ecs, world).await;
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(row.category, Category::EphemeralPremium);
    assert_refused(attach(ecs, &disk, "i-a").await, 403, required);
    ephemeral_attach(ecs, &disk, "i-a").await.unwrap();
    let row = described(ecs, &disk).await.unwrap();
    assert!(row.is_in_use_on(&node("i-a")));
    assert_refused(detach(ecs, &disk, "i-a").await, 403, required);
    ephemeral_detach(ecs, &disk, "i-a").await.unwrap();
    assert!(described(ecs, &disk).await.unwrap().is_free());
});

contract!(an_ephemeral_disk_returns_to_its_first_instance_only, |ecs, world| {
    let disk = ephemeral(ecs, world).await;
    for _ in 0..2 {
        ephemeral_attach(ecs, &disk, "i-a").await.unwrap();
        ephemeral_detach(ecs, &disk, "i-a").await.unwrap();
    }
    let other = ephemeral_attach(ecs, &disk, "i-b").await;
    assert_refused(other, 403, "InvalidOperation.OtherInstanceUnsupported");
});

contract!(an_ephemeral_disk_is_deleted_with_its_instance, |ecs, world| {
    let disk = ephemeral(ecs, world).await;
    ephemeral_attach(ecs, &disk, "i-a").await.unwrap();
    assert!(world.cloud.remove_instance(node("i-a")));
    assert_eq!(described(ecs, &disk).await, None);
});

contract!(an_ephemeral_disk_has_no_snapshots_and_restores_none, |ecs, world| {
    let disk = ephemeral(ecs, world).await;
    ephemeral_attach(ecs, &disk, "i-a").await.unwrap();
    for alternatives in ["first", "last"] {
        world.configure(json!({"rules": {"alternatives": alternatives}}));
        expect_error(snapshot(ecs, &snapshot_of(&disk, "snapshot")).await, Kind::Precondition);
    }
    assert_eq!(world.snapshots(), 0);
    let source = create(ecs, &essd("source")).await.unwrap();
    attach(ecs, &source, "i-b").await.unwrap();
    let snapshot = snapshot(ecs, &snapshot_of(&source, "snapshot")).await;
    let restored = CreateDisk {
        snapshot: Some(snapshot.unwrap()),
        token: ClientToken::derive("test", ["restored"]),
        ..of(Category::EphemeralStandard, 64)
    };
    let outcome = create(ecs, &restored).await;
    assert_refused(outcome, 403, "InvalidOperation.CreateFromSnapshotUnsupported");
});

contract!(an_ephemeral_disk_can_be_resized_but_not_converted, |ecs, world| {
    let disk = ephemeral(ecs, world).await;
    let to = |size| resize_to(&disk, size, ResizeMode::Offline);
    expect_error(resize(ecs, &to(8193)).await, Kind::OutOfRange);
    resize(ecs, &to(8192)).await.unwrap();
    assert_eq!(described(ecs, &disk).await.unwrap().size, Gib(8192));
    let other = ModifyDiskSpec {
        dry_run: true,
        ..to_category(&disk, Category::CloudEssd)
    };
    assert_refused(modify(ecs, &other).await, 403, "InvalidDiskCategory.NotSupported");
});

contract!(each_category_rejects_sizes_out_of_range, |ecs, world| {
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
            let outcome = create(ecs, &sized(size)).await;
            // A size of 0 is not sent.
            let kinds = [Kind::OutOfRange, Kind::Bug];
            let kind = outcome.unwrap_err().kind();
            assert!(kinds.contains(&kind), "{category} {size}: {kind:?}");
        }
        assert_eq!(world.disks(), before, "{category}");
        for size in [least, most] {
            create(ecs, &sized(size)).await.unwrap();
        }
        assert_eq!(world.disks(), before + 2, "{category}");
    }
});
