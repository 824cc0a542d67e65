//! What can be bought, and what cannot.

use diskplugin::cloud::{DescribeStock, Ecs, Kind};
use diskplugin::model::{Category, ZoneStock};
use serde_json::json;

use crate::world::{FAR_ZONE, World, ZONE, essd, made, refused, soon, zone};

on_every_face!(
    a_sold_out_category_is_out_of_stock_in_every_documented_code,
    a_sold_out_zone_is_out_of_stock,
    a_spent_quota_is_a_quota,
    stock_lists_zones_and_what_they_sell,
    stock_shows_what_is_sold_out,
    stock_is_asked_for_one_zone_and_category,
);

pub(crate) async fn a_sold_out_category_is_out_of_stock_in_every_documented_code(
    ecs: &dyn Ecs,
    world: &World,
) {
    world.configure(json!({"out_of_stock": [format!("{ZONE}/cloud_essd")]}));
    // Enough to meet each of the three.
    for n in 0..12 {
        let outcome = ecs.create_disk(soon(), &essd(&format!("disk-{n}"))).await;
        refused(outcome, Kind::OutOfStock);
    }
    let mut elsewhere = essd("elsewhere");
    elsewhere.zone = Some(zone(FAR_ZONE));
    ecs.create_disk(soon(), &elsewhere).await.unwrap();
}

pub(crate) async fn a_sold_out_zone_is_out_of_stock(ecs: &dyn Ecs, world: &World) {
    for alternatives in ["first", "last"] {
        world.configure(json!({
            "rules": {"alternatives": alternatives}, "out_of_stock": [format!("{ZONE}/*")]
        }));
        let outcome = ecs.create_disk(soon(), &essd(alternatives)).await;
        refused(outcome, Kind::OutOfStock);
    }
}

pub(crate) async fn a_spent_quota_is_a_quota(ecs: &dyn Ecs, world: &World) {
    made(ecs, "first").await;
    for (limit, kind) in [
        (json!({"zone_category_gib": 39}), Kind::Quota),
        (json!({"total_gib": 39}), Kind::Quota),
        (json!({"no_balance": true}), Kind::Precondition),
    ] {
        world.configure(json!({"limits": null}));
        world.configure(json!({"limits": limit}));
        let outcome = ecs.create_disk(soon(), &essd("one-too-many")).await;
        refused(outcome, kind);
    }
    assert_eq!(world.disks(), 1);
}

async fn stock(ecs: &dyn Ecs, query: &DescribeStock) -> Vec<ZoneStock> {
    ecs.describe_available_resource(soon(), query)
        .await
        .unwrap()
}

pub(crate) async fn stock_lists_zones_and_what_they_sell(ecs: &dyn Ecs, _: &World) {
    let zones = stock(ecs, &DescribeStock::default()).await;
    let names: Vec<_> = zones.iter().filter_map(|z| z.zone.clone()).collect();
    assert_eq!(names, [zone(ZONE), zone(FAR_ZONE), zone("cn-beijing-c")]);
    for category in Category::CREATABLE {
        let sold = zones[0].categories.iter();
        assert!(sold.clone().any(|s| s.category == category && s.available));
    }
}

pub(crate) async fn stock_shows_what_is_sold_out(ecs: &dyn Ecs, world: &World) {
    world.configure(json!({"out_of_stock": [format!("{ZONE}/cloud_ssd")]}));
    let zones = stock(ecs, &DescribeStock::default()).await;
    let has = |zone: &ZoneStock| {
        let mut sold = zone.categories.iter();
        sold.any(|s| s.category == Category::CloudSsd && s.available)
    };
    assert_eq!(
        zones.iter().map(has).collect::<Vec<_>>(),
        [false, true, true]
    );
}

pub(crate) async fn stock_is_asked_for_one_zone_and_category(ecs: &dyn Ecs, _: &World) {
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
