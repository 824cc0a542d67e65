//! Disk health, and unreadable rows.

use crate::contract::world::*;

contract!(an_unhealthy_disk_has_an_event_a_missing_one_no_row, |ecs, world| {
    let (healthy, impaired) = (create_essd(ecs, "healthy").await, create_essd(ecs, "impaired").await);
    world.configure(json!({"disk_health": {impaired.as_str(): {"health": "Impaired", "event": "Stalled"}}}));
    let all = [healthy.clone(), impaired.clone(), "d-unknown".parse().unwrap()];
    let page = ecs.describe_disk_health(deadline(), &all).await.unwrap();
    let row = |disk: &DiskId| page.rows.iter().find(|row| row.disk == *disk).unwrap();
    assert_eq!((page.rows.len(), page.unreadable.len()), (2, 0));
    assert_eq!(row(&healthy).to_string(), format!("disk {healthy} is Ok"));
    let impaired = row(&impaired);
    assert_eq!((impaired.status.as_str(), impaired.events.len()), ("Impaired", 1));
    assert_eq!(impaired.events[0].kind, "Stalled");
});

contract!(a_lock_is_described, |ecs, world| {
    let disk = create_essd(ecs, "locked").await;
    world.configure(json!({"disk_health": {disk.as_str(): {"lock": "financial"}}}));
    let row = described(ecs, &disk).await.unwrap();
    assert_eq!(row.locks, ["financial"]);
});

contract!(an_unreadable_row_is_reported_separately, |ecs, world| {
    let (good, bad) = (create_essd(ecs, "good").await, create_essd(ecs, "bad").await);
    world.configure(json!({"disk_health": {bad.as_str(): {"unreadable": true}}}));
    let page = ecs.describe_disks(deadline(), &DescribeDisks::default()).await.unwrap();
    assert_eq!((page.rows.len(), page.rows[0].id.clone()), (1, good));
    assert_eq!(page.unreadable.len(), 1);
    assert_eq!(page.unreadable[0].id.as_deref(), Some(bad.as_str()));
    assert!(page.unreadable[0].to_string().contains("Status"));
});
