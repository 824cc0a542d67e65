//! Stock and quotas.

use crate::contract::world::*;

over_every_connection!(
    a_sold_out_category_is_out_of_stock_in_every_documented_code,
    a_zone_without_stock_is_out_of_stock,
    an_exhausted_quota_is_a_quota_error,
    stock_lists_zones_and_their_categories,
    stock_reports_categories_that_are_out_of_stock,
    stock_can_be_queried_for_one_zone_and_category,
);

pub(crate) async fn a_sold_out_category_is_out_of_stock_in_every_documented_code(ecs: &Client, world: &World) {
    world.configure(json!({"out_of_stock": [format!("{ZONE}/cloud_essd")]}));
    // Enough calls to get each of the three codes.
    for n in 0..12 {
        let outcome = create(ecs, &essd(&format!("disk-{n}"))).await;
        expect_error(outcome, Kind::OutOfStock);
    }
    let mut elsewhere = essd("elsewhere");
    elsewhere.zone = Some(zone(FAR_ZONE));
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
        let outcome = create(ecs, &essd("one-too-many")).await;
        expect_error(outcome, kind);
    }
    assert_eq!(world.disks(), 1);
}

async fn stock(ecs: &Client, query: &DescribeStock) -> Vec<ZoneStock> {
    ecs.describe_available_resource(deadline(), query).await.unwrap()
}

pub(crate) async fn stock_lists_zones_and_their_categories(ecs: &Client, _: &World) {
    let zones = stock(ecs, &DescribeStock::default()).await;
    let names: Vec<_> = zones.iter().filter_map(|z| z.zone.clone()).collect();
    assert_eq!(names, [zone(ZONE), zone(FAR_ZONE), zone("cn-beijing-c")]);
    for category in Category::CREATABLE {
        let sold = zones[0].categories.iter();
        assert!(sold.clone().any(|s| s.category == category && s.available));
    }
}

pub(crate) async fn stock_reports_categories_that_are_out_of_stock(ecs: &Client, world: &World) {
    world.configure(json!({"out_of_stock": [format!("{ZONE}/cloud_ssd")]}));
    let zones = stock(ecs, &DescribeStock::default()).await;
    let has = |zone: &ZoneStock| {
        let mut sold = zone.categories.iter();
        sold.any(|s| s.category == Category::CloudSsd && s.available)
    };
    assert_eq!(zones.iter().map(has).collect::<Vec<_>>(), [false, true, true]);
}

pub(crate) async fn stock_can_be_queried_for_one_zone_and_category(ecs: &Client, _: &World) {
    let query = DescribeStock {
        zone: Some(zone(FAR_ZONE)),
        category: Some(Category::CloudAuto),
        ..DescribeStock::default()
    };
    let zones = stock(ecs, &query).await;
    assert_eq!(zones.len(), 1);
    assert_eq!(zones[0].zone, query.zone);
    let categories: Vec<_> = zones[0].categories.iter().map(|s| &s.category).collect();
    assert_eq!(categories, [&Category::CloudAuto]);
}
