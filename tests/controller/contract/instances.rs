//! Instances and their types.

use ecs::DescribeInstances;

use diskplugin::model::InstanceStatus;

use crate::contract::world::*;

fn by(ids: &[&str]) -> DescribeInstances {
    DescribeInstances {
        ids: Some(ids.iter().map(|id| node(id)).collect()),
        next: None,
    }
}

contract!(instances_are_listed_with_type_zone_and_status, |ecs, _| {
    let all = DescribeInstances::default();
    let page = ecs.describe_instances(deadline(), &all).await.unwrap();
    assert_eq!((page.rows.len(), page.next), (3, None));
    for row in page.rows {
        let far = row.id == node("i-far");
        assert_eq!(row.zone, zone(if far { FAR_ZONE } else { ZONE }));
        assert_eq!(row.status, InstanceStatus::Running);
        let wanted = if far { "ecs.g7.large" } else { "ecs.g6.large" };
        assert_eq!(row.instance_type, wanted);
    }
});

contract!(instances_are_found_by_id_and_unknown_ones_are_missing, |ecs, _| {
    for (query, found) in [(&["i-two", "i-unknown"][..], &[node("i-two")][..]), (&[], &[])] {
        let page = ecs.describe_instances(deadline(), &by(query)).await.unwrap();
        let ids: Vec<_> = page.rows.into_iter().map(|row| row.id).collect();
        assert_eq!(ids, found, "{query:?}");
    }
});

contract!(a_stopped_instance_is_described_as_stopped, |ecs, world| {
    world.configure(json!({"delays": {"power": "5s"}}));
    // The calls of the test advance the fake cloud to the current time.
    let query = by(&["i-one"]);
    ecs.describe_instances(deadline(), &query).await.unwrap();
    assert!(world.cloud.set_instance_power(node("i-one"), false));
    for expected in [InstanceStatus::Stopping, InstanceStatus::Stopped] {
        let page = ecs.describe_instances(deadline(), &query).await.unwrap();
        assert_eq!(page.rows[0].status, expected);
        world.pass(5);
    }
});

contract!(types_have_a_disk_quantity_and_ten_are_the_maximum, |ecs, _| {
    let names = ["ecs.g6.large".to_owned()];
    let types = ecs.describe_instance_types(deadline(), &names).await.unwrap();
    assert_eq!(types.len(), 1);
    assert_eq!(types[0].name, names[0]);
    assert!(types[0].disk_quantity > 1);
    let names: Vec<String> = (0..11).map(|n| format!("ecs.g{n}.large")).collect();
    expect_error(ecs.describe_instance_types(deadline(), &names).await, Kind::Invalid);
});
