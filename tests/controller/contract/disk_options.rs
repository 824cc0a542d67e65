//! Disk features: performance levels, IOPS, multi-attach, encryption, regional disks, and stale stock.

use crate::contract::world::*;

over_every_connection!(
    a_regional_disk_is_created_without_a_zone_and_refused_with_one,
    stock_of_the_region_is_asked_apart_from_that_of_its_zones,
    stock_can_be_queried_for_an_instance_type,
    stock_can_be_stale,
    a_level_and_multi_attach_can_be_out_of_stock_in_a_zone,
    sizes_and_iops_beyond_the_matrix_are_refused_in_the_documented_codes,
    a_shared_disk_is_of_a_shareable_category_and_does_not_burst,
    a_key_must_be_there_enabled_authorised_and_symmetric,
    default_encryption_encrypts_or_rejects,
    unset_fields_get_defaults,
);

/// The error code of the rejected request, which must not have created a disk.
async fn code(ecs: &Client, world: &World, request: &CreateDisk) -> String {
    let before = world.disks();
    let expect_error = create(ecs, request).await.unwrap_err();
    assert_eq!(world.disks(), before);
    expect_error.code().unwrap().to_owned()
}

fn regional(name: &str) -> CreateDisk {
    CreateDisk {
        zone: None,
        category: Category::CloudRegionalDiskAuto,
        ..essd(name)
    }
}

fn auto(name: &str, gib: u32) -> CreateDisk {
    CreateDisk {
        category: Category::CloudAuto,
        size: Gib(gib),
        ..essd(name)
    }
}

pub(crate) async fn a_regional_disk_is_created_without_a_zone_and_refused_with_one(ecs: &Client, world: &World) {
    let zonal = CreateDisk {
        zone: Some(zone(ZONE)),
        ..regional("zonal")
    };
    assert_eq!(code(ecs, world, &zonal).await, "InvalidZoneId.DiskCategoryUnsupported");
    let id = create(ecs, &regional("regional")).await.unwrap();
    let disk = described(ecs, &id).await.unwrap();
    assert_eq!((disk.zone, disk.category.is_regional()), (None, true));
    let nowhere = CreateDisk {
        zone: None,
        ..essd("nowhere")
    };
    assert_eq!(code(ecs, world, &nowhere).await, "MissingParameter");
    world.configure(json!({"out_of_stock": ["region/cloud_regional_disk_auto"],
        "rules": {"alternatives": "last"}}));
    let sold = regional("sold");
    assert_eq!(code(ecs, world, &sold).await, "OperationDenied.NoStock");
}

async fn stock(ecs: &Client, query: &DescribeStock) -> Vec<ZoneStock> {
    let answer = ecs.describe_available_resource(deadline(), query).await;
    answer.unwrap()
}

fn names(zone: &ZoneStock) -> Vec<&str> {
    zone.categories.iter().map(|stock| stock.category.as_str()).collect()
}

pub(crate) async fn stock_of_the_region_is_asked_apart_from_that_of_its_zones(ecs: &Client, world: &World) {
    let query = DescribeStock {
        regional: true,
        ..DescribeStock::default()
    };
    let region = stock(ecs, &query).await;
    assert_eq!(region.len(), 1);
    assert_eq!(region[0].zone, None);
    assert_eq!(names(&region[0]), ["cloud_regional_disk_auto"]);
    assert!(region[0].categories[0].available);
    for zone in stock(ecs, &DescribeStock::default()).await {
        assert!(!names(&zone).contains(&"cloud_regional_disk_auto"));
    }
    world.configure(json!({"out_of_stock": ["region/*"]}));
    assert!(!stock(ecs, &query).await[0].categories[0].available);
}

pub(crate) async fn stock_can_be_queried_for_an_instance_type(ecs: &Client, _: &World) {
    let of = |instance_type: &str| DescribeStock {
        zone: Some(zone(ZONE)),
        instance_type: Some(instance_type.to_owned()),
        ..DescribeStock::default()
    };
    let new = stock(ecs, &of("ecs.g8i.large")).await;
    assert_eq!(
        names(&new[0]),
        [
            "cloud_essd",
            "cloud_auto",
            "elastic_ephemeral_disk_standard",
            "elastic_ephemeral_disk_premium",
            "cloud_essd_xc0",
            "cloud_essd_xc1"
        ]
    );
    let old = stock(ecs, &of("ecs.g5.large")).await;
    assert!(names(&old[0]).contains(&"cloud"));
}

pub(crate) async fn stock_can_be_stale(ecs: &Client, world: &World) {
    let ssd = DescribeStock {
        zone: Some(zone(ZONE)),
        category: Some(Category::CloudSsd),
        ..DescribeStock::default()
    };
    world.configure(json!({"rules": {"stock_lag": "30s"}}));
    world.pass(60);
    world.configure(json!({"out_of_stock": ["*/cloud_ssd"]}));
    world.pass(29);
    assert!(stock(ecs, &ssd).await[0].categories[0].available);
    let expect_error = CreateDisk {
        category: Category::CloudSsd,
        ..essd("refused")
    };
    assert!(create(ecs, &expect_error).await.is_err());
    world.pass(1);
    assert!(!stock(ecs, &ssd).await[0].categories[0].available);
}

pub(crate) async fn a_level_and_multi_attach_can_be_out_of_stock_in_a_zone(ecs: &Client, world: &World) {
    let sold = [format!("{ZONE}/PL0"), format!("{ZONE}/multi-attach")];
    world.configure(json!({"out_of_stock": sold}));
    let level = CreateDisk {
        performance_level: Some(PerformanceLevel::Pl0),
        ..essd("level")
    };
    assert_eq!(
        code(ecs, world, &level).await,
        "InvalidPerformanceLevel.ValueNotSupported"
    );
    let shared = CreateDisk {
        multi_attach: true,
        ..essd("shared")
    };
    assert_eq!(
        code(ecs, world, &shared).await,
        "OperationDenied.ZoneNotSupportMultiAttachDisk"
    );
    create_essd(ecs, "plain").await;
}

pub(crate) async fn sizes_and_iops_beyond_the_matrix_are_refused_in_the_documented_codes(ecs: &Client, world: &World) {
    let iops = |name: &str, gib, iops| CreateDisk {
        provisioned_iops: Some(iops),
        ..auto(name, gib)
    };
    for (request, wanted) in [
        (iops("iops", 10, 7001), "InvalidProvisionedIops.LimitExceed"),
        (iops("none", 3, 1), "InvalidProvisionedIops.LimitExceed"),
        (
            CreateDisk {
                provisioned_iops: Some(1),
                ..essd("essd")
            },
            "ProvisionedIopsForDiskCategoryUnsupported",
        ),
        (
            CreateDisk {
                bursting: true,
                ..auto("small", 3)
            },
            "InvalidBurstingEnabled.DiskSizeTooSmall",
        ),
        (
            CreateDisk {
                bursting: true,
                ..essd("burst")
            },
            "BurstingEnabledForDiskCategoryUnsupported",
        ),
        (
            CreateDisk {
                performance_level: Some(PerformanceLevel::Pl2),
                size: Gib(460),
                ..essd("level")
            },
            "OperationDenied.PerformanceLevelNotMatch",
        ),
    ] {
        assert_eq!(code(ecs, world, &request).await, wanted, "{request:?}");
    }
    let id = create(ecs, &iops("most", 10, 7000)).await.unwrap();
    assert_eq!(described(ecs, &id).await.unwrap().provisioned_iops, 7000);
}

pub(crate) async fn a_shared_disk_is_of_a_shareable_category_and_does_not_burst(ecs: &Client, world: &World) {
    let burst = CreateDisk {
        multi_attach: true,
        bursting: true,
        ..auto("burst", 20)
    };
    assert_eq!(
        code(ecs, world, &burst).await,
        "BurstingEnabledForMultiAttachDiskUnsupported"
    );
    let ssd = CreateDisk {
        multi_attach: true,
        category: Category::CloudSsd,
        ..essd("ssd")
    };
    assert_eq!(
        code(ecs, world, &ssd).await,
        "InvalidParameter.DiskCategoryAndMultiAttachConflict"
    );
    let shared = CreateDisk {
        multi_attach: true,
        ..essd("shared")
    };
    let id = create(ecs, &shared).await.unwrap();
    assert!(described(ecs, &id).await.unwrap().multi_attach);
}

fn encrypted(name: &str, key: Option<&str>) -> CreateDisk {
    CreateDisk {
        encrypted: true,
        kms_key: key.map(str::to_owned),
        ..essd(name)
    }
}

pub(crate) async fn a_key_must_be_there_enabled_authorised_and_symmetric(ecs: &Client, world: &World) {
    world.configure(json!({"keys": {"missing": ["k-1"], "disabled": ["k-2"],
        "unauthorized": ["k-3"], "asymmetric": ["k-4"]}}));
    for (key, wanted) in [
        ("k-1", "InvalidParameter.KMSKeyId.NotFound"),
        ("k-2", "InvalidParameter.KMSKeyId.CMKNotEnabled"),
        ("k-3", "InvalidParameter.KMSKeyId.CMKUnauthorized"),
        ("k-4", "InvalidKMSKeyId.NotSymmetric"),
    ] {
        assert_eq!(code(ecs, world, &encrypted(key, Some(key))).await, wanted);
    }
    let id = create(ecs, &encrypted("good", Some("k-5"))).await;
    let disk = described(ecs, &id.unwrap()).await.unwrap();
    assert_eq!((disk.encrypted, disk.kms_key.as_deref()), (true, Some("k-5")));
}

pub(crate) async fn default_encryption_encrypts_or_rejects(ecs: &Client, world: &World) {
    world.configure(json!({"keys": {"default_encryption": "refuse"}}));
    assert_eq!(
        code(ecs, world, &essd("plain")).await,
        "InvalidEncrypted.NotMatchDiskDefaultEncryption"
    );
    create(ecs, &encrypted("asked", None)).await.unwrap();
    world.configure(json!({"keys": {"default_encryption": "upgrade"}}));
    let id = create_essd(ecs, "upgraded").await;
    let disk = described(ecs, &id).await.unwrap();
    assert!(disk.encrypted && disk.kms_key.is_some());
}

pub(crate) async fn unset_fields_get_defaults(ecs: &Client, _: &World) {
    let id = create(ecs, &encrypted("asked", None)).await.unwrap();
    let disk = described(ecs, &id).await.unwrap();
    assert!(disk.kms_key.is_some(), "the id of the service key");
    assert!(disk.resource_group.is_some(), "the default group");
    assert_eq!(disk.performance_level.as_deref(), Some("PL1"));
    let grouped = CreateDisk {
        resource_group: Some("rg-1".to_owned()),
        ..essd("grouped")
    };
    let id = create(ecs, &grouped).await.unwrap();
    let group = described(ecs, &id).await.unwrap().resource_group;
    assert_eq!(group.as_deref(), Some("rg-1"));
}
