//! Stock and quotas.

use crate::contract::world::*;

contract!(a_category_without_stock_has_every_documented_code, |ecs, world| {
    world.configure(json!({"out_of_stock": [format!("{ZONE}/cloud_essd")]}));
    // Enough calls to get each of the three codes.
    for n in 0..12 {
        let outcome = create(ecs, &essd(&format!("disk-{n}"))).await;
        expect_error(outcome, Kind::OutOfStock);
    }
    let elsewhere = essd_with("elsewhere", |disk| disk.zone = Some(zone(FAR_ZONE)));
    create(ecs, &elsewhere).await.unwrap();
    world.configure(json!({"out_of_stock": [format!("{ZONE}/*")]}));
    for alternatives in ["first", "last"] {
        world.configure(json!({"rules": {"alternatives": alternatives}}));
        expect_error(create(ecs, &essd(alternatives)).await, Kind::OutOfStock);
    }
});

contract!(an_exhausted_quota_is_a_quota_error, |ecs, world| {
    create_essd(ecs, "first").await;
    for (limit, kind) in [
        (json!({"zone_category_gib": 39}), Kind::Quota),
        (json!({"total_gib": 39}), Kind::Quota),
        (json!({"no_balance": true}), Kind::Precondition),
    ] {
        world.configure(json!({"limits": null}));
        world.configure(json!({"limits": limit}));
        expect_error(create(ecs, &essd("one-too-many")).await, kind);
    }
    assert_eq!(world.disks(), 1);
});

async fn stock(ecs: &Client, query: &DescribeStock) -> Vec<ZoneStock> {
    ecs.describe_available_resource(deadline(), query).await.unwrap()
}

fn names(zone: &ZoneStock) -> Vec<&str> {
    zone.categories.iter().map(|stock| stock.category.as_str()).collect()
}

contract!(stock_lists_zones_and_their_categories, |ecs, world| {
    let zones = stock(ecs, &DescribeStock::default()).await;
    let ids: Vec<_> = zones.iter().filter_map(|z| z.zone.clone()).collect();
    assert_eq!(ids, [zone(ZONE), zone(FAR_ZONE), zone("cn-beijing-c")]);
    let has = |zone: &ZoneStock, category: &Category| {
        let mut found = zone.categories.iter();
        found.any(|s| s.category == *category && s.available)
    };
    for category in Category::CREATABLE {
        assert!(has(&zones[0], &category), "{category}");
    }
    world.configure(json!({"out_of_stock": [format!("{ZONE}/cloud_ssd")]}));
    let zones = stock(ecs, &DescribeStock::default()).await;
    let ssd = zones.iter().map(|zone| has(zone, &Category::CloudSsd));
    assert_eq!(ssd.collect::<Vec<_>>(), [false, true, true]);
});

contract!(stock_is_queried_by_zone_category_or_instance_type, |ecs, _| {
    let query = DescribeStock {
        zone: Some(zone(FAR_ZONE)),
        category: Some(Category::CloudAuto),
        ..DescribeStock::default()
    };
    let zones = stock(ecs, &query).await;
    assert_eq!((zones.len(), &zones[0].zone), (1, &query.zone));
    assert_eq!(names(&zones[0]), ["cloud_auto"]);
    let of_type = async |instance_type: &str| {
        let query = DescribeStock {
            zone: Some(zone(ZONE)),
            instance_type: Some(instance_type.to_owned()),
            ..DescribeStock::default()
        };
        stock(ecs, &query).await.remove(0)
    };
    assert_eq!(
        names(&of_type("ecs.g8i.large").await),
        [
            "cloud_essd",
            "cloud_auto",
            "elastic_ephemeral_disk_standard",
            "elastic_ephemeral_disk_premium",
            "cloud_essd_xc0",
            "cloud_essd_xc1"
        ]
    );
    assert!(names(&of_type("ecs.g5.large").await).contains(&"cloud"));
});

contract!(regional_stock_is_queried_separately_from_zonal_stock, |ecs, world| {
    let query = DescribeStock {
        regional: true,
        ..DescribeStock::default()
    };
    let region = stock(ecs, &query).await;
    assert_eq!((region.len(), &region[0].zone), (1, &None));
    assert_eq!(names(&region[0]), ["cloud_regional_disk_auto"]);
    assert!(region[0].categories[0].available);
    for zone in stock(ecs, &DescribeStock::default()).await {
        assert!(!names(&zone).contains(&"cloud_regional_disk_auto"));
    }
    world.configure(json!({"out_of_stock": ["region/*"]}));
    assert!(!stock(ecs, &query).await[0].categories[0].available);
});

contract!(stock_can_be_stale, |ecs, world| {
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
    let rejected = essd_with("rejected", |disk| disk.category = Category::CloudSsd);
    assert!(create(ecs, &rejected).await.is_err());
    world.pass(1);
    assert!(!stock(ecs, &ssd).await[0].categories[0].available);
});
