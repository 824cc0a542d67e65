//! Stock and quotas.

use crate::contract::world::*;

over_every_connection!(
    a_category_out_of_stock_is_rejected_with_every_documented_code,
    a_zone_without_stock_is_out_of_stock,
    an_exhausted_quota_is_a_quota_error,
    stock_lists_zones_and_their_categories,
    stock_reports_categories_that_are_out_of_stock,
    stock_can_be_queried_for_a_zone_and_a_category_or_an_instance_type,
    regional_stock_is_queried_separately_from_zonal_stock,
    stock_can_be_stale,
);

pub(crate) async fn a_category_out_of_stock_is_rejected_with_every_documented_code(ecs: &Client, world: &World) {
    world.configure(json!({"out_of_stock": [format!("{ZONE}/cloud_essd")]}));
    // Enough calls to get each of the three codes.
    for n in 0..12 {
        let outcome = create(ecs, &essd(&format!("disk-{n}"))).await;
        expect_error(outcome, Kind::OutOfStock);
    }
    let elsewhere = essd_with("elsewhere", |disk| disk.zone = Some(zone(FAR_ZONE)));
    create(ecs, &elsewhere).await.unwrap();
}

pub(crate) async fn a_zone_without_stock_is_out_of_stock(ecs: &Client, world: &World) {
    for alternatives in ["first", "last"] {
        world.configure(json!({
            "rules": {"alternatives": alternatives}, "out_of_stock": [format!("{ZONE}/*")]
        }));
        expect_error(create(ecs, &essd(alternatives)).await, Kind::OutOfStock);
    }
}

pub(crate) async fn an_exhausted_quota_is_a_quota_error(ecs: &Client, world: &World) {
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
}

async fn stock(ecs: &Client, query: &DescribeStock) -> Vec<ZoneStock> {
    ecs.describe_available_resource(deadline(), query).await.unwrap()
}

fn names(zone: &ZoneStock) -> Vec<&str> {
    zone.categories.iter().map(|stock| stock.category.as_str()).collect()
}

pub(crate) async fn stock_lists_zones_and_their_categories(ecs: &Client, _: &World) {
    let zones = stock(ecs, &DescribeStock::default()).await;
    let ids: Vec<_> = zones.iter().filter_map(|z| z.zone.clone()).collect();
    assert_eq!(ids, [zone(ZONE), zone(FAR_ZONE), zone("cn-beijing-c")]);
    for category in Category::CREATABLE {
        let mut found = zones[0].categories.iter();
        assert!(found.any(|s| s.category == category && s.available), "{category}");
    }
}

pub(crate) async fn stock_reports_categories_that_are_out_of_stock(ecs: &Client, world: &World) {
    world.configure(json!({"out_of_stock": [format!("{ZONE}/cloud_ssd")]}));
    let zones = stock(ecs, &DescribeStock::default()).await;
    let has = |zone: &ZoneStock| {
        let mut found = zone.categories.iter();
        found.any(|s| s.category == Category::CloudSsd && s.available)
    };
    assert_eq!(zones.iter().map(has).collect::<Vec<_>>(), [false, true, true]);
}

pub(crate) async fn stock_can_be_queried_for_a_zone_and_a_category_or_an_instance_type(ecs: &Client, _: &World) {
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
}

pub(crate) async fn regional_stock_is_queried_separately_from_zonal_stock(ecs: &Client, world: &World) {
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
    let rejected = essd_with("rejected", |disk| disk.category = Category::CloudSsd);
    assert!(create(ecs, &rejected).await.is_err());
    world.pass(1);
    assert!(!stock(ecs, &ssd).await[0].categories[0].available);
}
