//! Health of disks, and malformed rows.

use crate::verbs::kit::*;

#[tokio::test(start_paused = true)]
async fn concurrent_health_queries_share_one_call() {
    let setup = Setup::new(&[]);
    let ids = setup.create_disks(40).await;
    let query = |setup: Setup, id| async move { setup.disks.inventory.health(minutes(1), &id).await };
    assert!(setup.each(ids, query).await.iter().all(Result::is_ok));
    let calls = ["DescribeDisks", "DescribeDisksFullStatus"].map(|action| setup.calls(action));
    assert_eq!(calls, [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn list_unhealthy_returns_only_unhealthy_disks_with_100_disks_per_call() {
    let setup = Setup::new(&[]);
    let ids = setup.create_disks(120).await;
    let foreign = setup.other_cluster().try_create(minutes(1), &new_disk("pvc-1")).await;
    let unhealthy = [&ids[3], &ids[70], &ids[110], &foreign.unwrap().id];
    let disk_health: serde_json::Map<_, _> = unhealthy
        .iter()
        .map(|id| (id.to_string(), json!({"health": "Warning"})))
        .collect();
    setup.configure(&json!({ "disk_health": disk_health }));
    let listed = setup.disks.inventory.list_unhealthy(minutes(1)).await.unwrap();
    let mut found: Vec<_> = listed.iter().map(|volume| volume.disk.clone()).collect();
    found.sort();
    let mut expected: Vec<_> = unhealthy[..3].iter().map(|id| (*id).clone()).collect();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(setup.calls("DescribeDisksFullStatus"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_malformed_row_does_not_hide_other_disks_and_is_not_reported_as_not_found() {
    let setup = Setup::new(&[]);
    let (good, bad) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
    setup.configure(&json!({"disk_health": {bad.as_str(): {"unreadable": true}}}));
    // Lists include the recorded state of a new disk for a few seconds.
    sleep(4).await;
    let listed = setup.list().await.unwrap();
    let ids: Vec<_> = listed.into_iter().map(|row| row.id).collect();
    assert_eq!(ids, std::slice::from_ref(&good));
    assert!(setup.disks.inventory.disk(minutes(1), &good).await.is_ok());
    let read = setup.disks.inventory.disk(minutes(1), &bad).await.unwrap_err();
    let deleted = setup.try_delete(minutes(1), &bad).await.unwrap_err();
    let created = setup.restarted().try_create(minutes(1), &new_disk("pvc-2")).await;
    for error in [read, deleted, created.unwrap_err()] {
        let parts = [bad.as_str(), "malformed row", "missing field `Status`"];
        assert_error(&error, FailureKind::Unavailable, &parts);
    }
    assert_eq!(setup.rows().len(), 2);
    setup.configure(&json!({"disk_health": {bad.as_str(): null}}));
    setup.delete(&bad).await;
}
