//! How disks are, and rows that make no sense.

use diskplugin::cloud::{DescribeDisks, Ecs};
use diskplugin::model::DiskId;
use serde_json::json;

use crate::world::{World, made, soon};

on_every_face!(
    a_disk_that_is_ill_is_told_with_what_happens_to_it,
    the_health_of_what_is_not_there_is_missing,
    a_lock_shows_in_the_row,
    a_row_that_makes_no_sense_is_told_apart,
);

pub(crate) async fn a_disk_that_is_ill_is_told_with_what_happens_to_it(
    ecs: &dyn Ecs,
    world: &World,
) {
    let (well, ill) = (made(ecs, "well").await, made(ecs, "ill").await);
    world.configure(
        json!({"disk_health": {ill.as_str(): {"health": "Impaired", "event": "Stalled"}}}),
    );
    let both = [well.clone(), ill.clone()];
    let page = ecs.describe_disk_health(soon(), &both).await.unwrap();
    let row = |disk: &DiskId| page.rows.iter().find(|row| row.disk == *disk).unwrap();
    assert_eq!(page.rows.len(), 2);
    assert_eq!(row(&well).to_string(), format!("disk {well} is Ok"));
    assert_eq!(
        (row(&ill).status.as_str(), row(&ill).events.len()),
        ("Impaired", 1)
    );
    assert_eq!(row(&ill).events[0].kind, "Stalled");
}

pub(crate) async fn the_health_of_what_is_not_there_is_missing(ecs: &dyn Ecs, _: &World) {
    let unknown = ["d-unknown".parse().unwrap()];
    let page = ecs.describe_disk_health(soon(), &unknown).await.unwrap();
    assert!(page.rows.is_empty() && page.unreadable.is_empty());
}

pub(crate) async fn a_lock_shows_in_the_row(ecs: &dyn Ecs, world: &World) {
    let disk = made(ecs, "locked").await;
    world.configure(json!({"disk_health": {disk.as_str(): {"lock": "financial"}}}));
    let row = crate::world::seen(ecs, &disk).await.unwrap();
    assert_eq!(row.locks, ["financial"]);
}

pub(crate) async fn a_row_that_makes_no_sense_is_told_apart(ecs: &dyn Ecs, world: &World) {
    let (good, bad) = (made(ecs, "good").await, made(ecs, "bad").await);
    world.configure(json!({"disk_health": {bad.as_str(): {"unreadable": true}}}));
    let page = ecs
        .describe_disks(soon(), &DescribeDisks::default())
        .await
        .unwrap();
    assert_eq!((page.rows.len(), page.rows[0].id.clone()), (1, good));
    assert_eq!(page.unreadable.len(), 1);
    assert_eq!(page.unreadable[0].id.as_deref(), Some(bad.as_str()));
    assert!(page.unreadable[0].to_string().contains("Status"));
}
