//! Disk health, and unreadable rows.

use crate::contract::world::*;

over_every_connection!(
    an_unhealthy_disk_is_listed_with_its_event,
    the_health_of_a_missing_disk_is_omitted,
    a_lock_is_described,
    an_unreadable_row_is_reported_separately,
);

pub(crate) async fn an_unhealthy_disk_is_listed_with_its_event(ecs: &Client, world: &World) {
    let (healthy, impaired) = (create_essd(ecs, "healthy").await, create_essd(ecs, "impaired").await);
    world.configure(json!({"disk_health": {impaired.as_str(): {"health": "Impaired", "event": "Stalled"}}}));
    let both = [healthy.clone(), impaired.clone()];
    let page = ecs.describe_disk_health(deadline(), &both).await.unwrap();
    let row = |disk: &DiskId| page.rows.iter().find(|row| row.disk == *disk).unwrap();
    assert_eq!(page.rows.len(), 2);
    assert_eq!(row(&healthy).to_string(), format!("disk {healthy} is Ok"));
    let impaired = row(&impaired);
    assert_eq!((impaired.status.as_str(), impaired.events.len()), ("Impaired", 1));
    assert_eq!(impaired.events[0].kind, "Stalled");
}

pub(crate) async fn the_health_of_a_missing_disk_is_omitted(ecs: &Client, _: &World) {
    let unknown = ["d-unknown".parse().unwrap()];
    let page = ecs.describe_disk_health(deadline(), &unknown).await.unwrap();
    assert!(page.rows.is_empty() && page.unreadable.is_empty());
}

pub(crate) async fn a_lock_is_described(ecs: &Client, world: &World) {
    let disk = create_essd(ecs, "locked").await;
    world.configure(json!({"disk_health": {disk.as_str(): {"lock": "financial"}}}));
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(row.locks, ["financial"]);
}

pub(crate) async fn an_unreadable_row_is_reported_separately(ecs: &Client, world: &World) {
    let (good, bad) = (create_essd(ecs, "good").await, create_essd(ecs, "bad").await);
    world.configure(json!({"disk_health": {bad.as_str(): {"unreadable": true}}}));
    let page = ecs.describe_disks(deadline(), &DescribeDisks::default()).await.unwrap();
    assert_eq!((page.rows.len(), page.rows[0].id.clone()), (1, good));
    assert_eq!(page.unreadable.len(), 1);
    assert_eq!(page.unreadable[0].id.as_deref(), Some(bad.as_str()));
    assert!(page.unreadable[0].to_string().contains("Status"));
}
