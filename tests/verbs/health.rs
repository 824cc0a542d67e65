//! How disks are, and rows that make no sense.

use std::time::Duration;

use serde_json::json;

use diskplugin::disk::{FailureKind, Severity};

use diskplugin::model::Disk;

use crate::kit::{Setup, minutes, new_disk, text};

#[tokio::test(start_paused = true)]
async fn a_disk_tells_what_its_row_and_the_cloud_say_is_wrong() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let (row, ailments) = setup
        .disks
        .inventory
        .health(minutes(1), &disk)
        .await
        .unwrap();
    assert_eq!((row.id, ailments), (disk.clone(), vec![]));
    setup.configure(&json!({"disk_health": {disk.as_str(): {
        "health": "Impaired", "event": "Stalled", "lock": "financial"}}}));
    let (_, ailments) = setup
        .disks
        .inventory
        .health(minutes(1), &disk)
        .await
        .unwrap();
    let told: Vec<_> = ailments
        .iter()
        .map(|a| (a.severity, a.reason.as_str()))
        .collect();
    assert_eq!(
        told,
        [
            (Severity::Degraded, "LockedFinancial"),
            (Severity::Inaccessible, "Stalled")
        ]
    );
    assert!(ailments.iter().all(|a| a.message.contains(disk.as_str())));
    let none = "d-none".parse().unwrap();
    let missing = setup
        .disks
        .inventory
        .health(minutes(1), &none)
        .await
        .unwrap_err();
    assert_eq!(missing.failure_kind(), FailureKind::NotFound);
}

#[tokio::test(start_paused = true)]
async fn looks_at_the_health_of_many_disks_are_one_call() {
    let setup = Setup::new(&[]);
    let mut ids = Vec::new();
    for n in 0..40 {
        ids.push(setup.disk(&format!("pvc-{n}")).await);
    }
    setup.cloud.clear_calls();
    let mut looks = tokio::task::JoinSet::new();
    for id in ids {
        let disks = std::sync::Arc::clone(&setup.disks);
        looks.spawn(async move { disks.inventory.health(minutes(1), &id).await.is_ok() });
    }
    assert!(looks.join_all().await.into_iter().all(|ok| ok));
    let calls = ["DescribeDisks", "DescribeDisksFullStatus"].map(|action| setup.calls(action));
    assert_eq!(calls, [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn only_what_is_ill_is_listed_a_hundred_disks_a_call() {
    let setup = Setup::new(&[]);
    let mut ids = Vec::new();
    for n in 0..120 {
        ids.push(setup.disk(&format!("pvc-{n}")).await);
    }
    let theirs = setup
        .other_cluster()
        .provisioner
        .create(minutes(1), &new_disk("pvc-1"))
        .await;
    let ill = [&ids[3], &ids[70], &ids[110], &theirs.unwrap().id];
    let ailing: serde_json::Map<_, _> = ill
        .iter()
        .map(|id| (id.to_string(), json!({"health": "Warning"})))
        .collect();
    setup.configure(&json!({ "disk_health": ailing }));
    let listed = setup
        .disks
        .inventory
        .list_unhealthy(minutes(1))
        .await
        .unwrap();
    let mut found: Vec<_> = listed.iter().map(|ill| ill.disk.clone()).collect();
    found.sort();
    let mut wanted: Vec<_> = ill[..3].iter().map(|id| (*id).clone()).collect();
    wanted.sort();
    assert_eq!(found, wanted);
    assert_eq!(setup.calls("DescribeDisksFullStatus"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_makes_no_sense_hides_no_other_and_is_never_taken_for_gone() {
    let setup = Setup::new(&[]);
    let (good, bad) = (setup.disk("pvc-1").await, setup.disk("pvc-2").await);
    setup.configure(&json!({"disk_health": {bad.as_str(): {"unreadable": true}}}));
    // Lists know for a while how it was when it was made.
    tokio::time::sleep(Duration::from_secs(4)).await;
    let listed = setup
        .disks
        .inventory
        .list(minutes(1), Disk::clone)
        .await
        .unwrap();
    let ids: Vec<_> = listed.into_iter().map(|row| row.id).collect();
    assert_eq!(ids, std::slice::from_ref(&good));
    assert!(setup.disks.inventory.disk(minutes(1), &good).await.is_ok());
    for error in [
        setup
            .disks
            .inventory
            .disk(minutes(1), &bad)
            .await
            .unwrap_err(),
        setup
            .disks
            .provisioner
            .delete(minutes(1), &bad)
            .await
            .unwrap_err(),
        setup
            .restarted()
            .provisioner
            .create(minutes(1), &new_disk("pvc-2"))
            .await
            .unwrap_err(),
    ] {
        assert_eq!(
            error.failure_kind(),
            FailureKind::Unavailable,
            "{}",
            text(&error)
        );
        for part in [bad.as_str(), "malformed row", "no Status"] {
            assert!(text(&error).contains(part), "{}", text(&error));
        }
    }
    assert_eq!(setup.rows().len(), 2);
    setup.configure(&json!({"disk_health": {bad.as_str(): null}}));
    setup
        .disks
        .provisioner
        .delete(minutes(1), &bad)
        .await
        .unwrap();
}
