//! Disk features: performance levels, IOPS, multi-attach, encryption and regional disks.

use crate::contract::world::*;

/// The error code of the rejected request, which must not have created a disk.
async fn code(ecs: &Client, world: &World, request: &CreateDisk) -> String {
    let before = world.disks();
    let rejected = create(ecs, request).await.unwrap_err();
    assert_eq!(world.disks(), before);
    rejected.code().unwrap().to_owned()
}

fn regional(name: &str) -> CreateDisk {
    essd_with(name, |disk| {
        disk.zone = None;
        disk.category = Category::CloudRegionalDiskAuto;
    })
}

fn auto(name: &str, gib: u32, change: impl FnOnce(&mut CreateDisk)) -> CreateDisk {
    essd_with(name, |disk| {
        disk.category = Category::CloudAuto;
        disk.size = Gib(gib);
        change(disk);
    })
}

contract!(a_regional_disk_is_created_only_without_a_zone, |ecs, world| {
    let zonal = CreateDisk {
        zone: Some(zone(ZONE)),
        ..regional("zonal")
    };
    assert_eq!(code(ecs, world, &zonal).await, "InvalidZoneId.DiskCategoryUnsupported");
    let id = create(ecs, &regional("regional")).await.unwrap();
    let disk = described(ecs, &id).await.unwrap();
    assert_eq!((disk.zone, disk.category.is_regional()), (None, true));
    let nowhere = essd_with("nowhere", |disk| disk.zone = None);
    assert_eq!(code(ecs, world, &nowhere).await, "MissingParameter");
    world.configure(json!({"out_of_stock": ["region/cloud_regional_disk_auto"],
        "rules": {"alternatives": "last"}}));
    assert_eq!(
        code(ecs, world, &regional("out-of-stock")).await,
        "OperationDenied.NoStock"
    );
});

contract!(a_level_and_multi_attach_can_be_out_of_stock_in_a_zone, |ecs, world| {
    world.configure(json!({"out_of_stock": [format!("{ZONE}/PL0"), format!("{ZONE}/multi-attach")]}));
    let level = essd_with("level", |disk| disk.performance_level = Some(PerformanceLevel::Pl0));
    let shared = essd_with("shared", |disk| disk.multi_attach = true);
    for (request, expected) in [
        (level, "InvalidPerformanceLevel.ValueNotSupported"),
        (shared, "OperationDenied.ZoneNotSupportMultiAttachDisk"),
    ] {
        assert_eq!(code(ecs, world, &request).await, expected, "{request:?}");
    }
    create_essd(ecs, "plain").await;
});

contract!(sizes_and_iops_out_of_range_have_the_documented_codes, |ecs, world| {
    let iops = |name: &str, gib, iops| auto(name, gib, |disk| disk.provisioned_iops = Some(iops));
    let level = essd_with("level", |disk| {
        disk.performance_level = Some(PerformanceLevel::Pl2);
        disk.size = Gib(460);
    });
    for (request, expected) in [
        (iops("iops", 10, 7001), "InvalidProvisionedIops.LimitExceed"),
        (iops("none", 3, 1), "InvalidProvisionedIops.LimitExceed"),
        (
            essd_with("essd", |disk| disk.provisioned_iops = Some(1)),
            "ProvisionedIopsForDiskCategoryUnsupported",
        ),
        (
            auto("small", 3, |disk| disk.bursting = true),
            "InvalidBurstingEnabled.DiskSizeTooSmall",
        ),
        (
            essd_with("burst", |disk| disk.bursting = true),
            "BurstingEnabledForDiskCategoryUnsupported",
        ),
        (level, "OperationDenied.PerformanceLevelNotMatch"),
    ] {
        assert_eq!(code(ecs, world, &request).await, expected, "{request:?}");
    }
    let id = create(ecs, &iops("most", 10, 7000)).await.unwrap();
    assert_eq!(described(ecs, &id).await.unwrap().provisioned_iops, 7000);
});

contract!(multi_attach_excludes_bursting_and_some_categories, |ecs, world| {
    let burst = auto("burst", 20, |disk| (disk.multi_attach, disk.bursting) = (true, true));
    let ssd = essd_with("ssd", |disk| {
        (disk.multi_attach, disk.category) = (true, Category::CloudSsd);
    });
    for (request, expected) in [
        (burst, "BurstingEnabledForMultiAttachDiskUnsupported"),
        (ssd, "InvalidParameter.DiskCategoryAndMultiAttachConflict"),
    ] {
        assert_eq!(code(ecs, world, &request).await, expected, "{request:?}");
    }
    let id = create(ecs, &essd_with("shared", |disk| disk.multi_attach = true)).await;
    assert!(described(ecs, &id.unwrap()).await.unwrap().multi_attach);
});

fn encrypted(name: &str, key: Option<&str>) -> CreateDisk {
    essd_with(name, |disk| {
        (disk.encrypted, disk.kms_key) = (true, key.map(str::to_owned));
    })
}

contract!(a_kms_key_must_be_enabled_authorized_and_symmetric, |ecs, world| {
    world.configure(json!({"keys": {"missing": ["k-1"], "disabled": ["k-2"],
        "unauthorized": ["k-3"], "asymmetric": ["k-4"]}}));
    for (key, expected) in [
        ("k-1", "InvalidParameter.KMSKeyId.NotFound"),
        ("k-2", "InvalidParameter.KMSKeyId.CMKNotEnabled"),
        ("k-3", "InvalidParameter.KMSKeyId.CMKUnauthorized"),
        ("k-4", "InvalidKMSKeyId.NotSymmetric"),
    ] {
        assert_eq!(code(ecs, world, &encrypted(key, Some(key))).await, expected);
    }
    let id = create(ecs, &encrypted("good", Some("k-5"))).await;
    let disk = described(ecs, &id.unwrap()).await.unwrap();
    assert_eq!((disk.encrypted, disk.kms_key.as_deref()), (true, Some("k-5")));
});

contract!(default_encryption_encrypts_or_rejects, |ecs, world| {
    world.configure(json!({"keys": {"default_encryption": "refuse"}}));
    let rejected = code(ecs, world, &essd("plain")).await;
    assert_eq!(rejected, "InvalidEncrypted.NotMatchDiskDefaultEncryption");
    create(ecs, &encrypted("encrypted", None)).await.unwrap();
    world.configure(json!({"keys": {"default_encryption": "upgrade"}}));
    let id = create_essd(ecs, "upgraded").await;
    let disk = described(ecs, &id).await.unwrap();
    assert!(disk.encrypted && disk.kms_key.is_some());
});

contract!(unset_fields_get_defaults_and_others_are_stored, |ecs, _| {
    let id = create(ecs, &encrypted("encrypted", None)).await.unwrap();
    let disk = described(ecs, &id).await.unwrap();
    assert!(disk.kms_key.is_some(), "the id of the service key");
    assert!(disk.resource_group.is_some(), "the default group");
    assert_eq!(disk.performance_level.as_deref(), Some("PL1"));
    let grouped = essd_with("grouped", |disk| disk.resource_group = Some("rg-1".to_owned()));
    let id = create(ecs, &grouped).await.unwrap();
    let group = described(ecs, &id).await.unwrap().resource_group;
    assert_eq!(group.as_deref(), Some("rg-1"));
    let small = essd_with("small", |disk| {
        (disk.performance_level, disk.size) = (Some(PerformanceLevel::Pl0), Gib(1));
    });
    let legacy = essd_with("no-level", |disk| disk.category = Category::CloudEfficiency);
    for (request, level) in [(small, Some("PL0")), (legacy, None)] {
        let id = create(ecs, &request).await.unwrap();
        let disk = described(ecs, &id).await.unwrap();
        assert_eq!((disk.performance_level.as_deref(), disk.size), (level, request.size));
    }
});
