//! Creations with a lost outcome, retried by the same process or by its successor.

use std::time::Duration;

use serde_json::json;

use diskplugin::base::Deadline;

use super::{error_code, is_final, sleep};
use crate::verbs::kit::{Setup, minutes, new_disk, seconds, text};

#[tokio::test(start_paused = true)]
async fn a_creation_canceled_in_a_late_attempt_is_unresolved_from_that_attempt_on() {
    let setup = Setup::without_canary(&["--stale=8s"]);
    setup.disk("other").await;
    sleep(30).await;
    setup.configure(&json!({"faults": [
        {"action": "CreateDisk", "for": "70s", "kind": "internal-error"},
        {"action": "CreateDisk", "times": 1000, "kind": {"delay-after": "5s"}},
    ]}));
    let new = new_disk("pvc-1");
    {
        let call = setup.disks.provisioner.create(minutes(5), &new);
        let created = async {
            while setup.rows().len() < 2 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            _ = call => panic!("create returned"),
            () = created => {}
        }
    }
    // The caller has given up. The disk exists, and reads lag.
    let rejected = error_code(403, "OperationDenied.NoStock");
    setup.faults("CreateDisk", 1000, &rejected);
    let outcome = setup.disks.provisioner.create(seconds(5), &new).await;
    if let Err(error) = outcome {
        assert!(!is_final(&error), "{}", text(&error));
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_takes_over_returns_no_final_code_while_the_old_leaders_disk_may_exist() {
    let setup = Setup::new(&["--stale=2s"]);
    setup.disk("other").await;
    sleep(5).await;
    setup.disk("warm").await;
    sleep(60).await;
    let new = new_disk("pvc-1");
    let lost = json!({"action": "CreateDisk", "kind": "reset-after"});
    let no_stock = error_code(403, "OperationDenied.NoStock");
    let rejected = json!({"action": "CreateDisk", "from": 2, "times": 100, "kind": no_stock});
    setup.configure(&json!({"faults": [lost, rejected]}));
    let soon = Deadline::after(Duration::from_millis(100));
    setup.disks.provisioner.create(soon, &new).await.unwrap_err();
    let standby = setup.restarted();
    standby.provisioner.list_owned();
    let outcome = standby.provisioner.create(seconds(1), &new).await;
    assert_eq!(setup.rows().len(), 3);
    if let Err(error) = outcome {
        assert!(!is_final(&error), "{}", text(&error));
    }
}

async fn create_after_restart(rejection: &str, others: usize) {
    let setup = Setup::new(&["--stale=2s"]);
    setup.other_disks(others).await;
    sleep(5).await;
    let lost = json!({"action": "CreateDisk", "kind": "reset-after"});
    let rejected = json!({"action": "CreateDisk", "from": 2, "times": 100, "kind": error_code(403, rejection)});
    setup.configure(&json!({"faults": [lost, rejected]}));
    let new = new_disk("pvc-1");
    let old = setup
        .disks
        .provisioner
        .create(Deadline::after(Duration::from_millis(100)), &new)
        .await;
    old.unwrap_err();
    let restarted = setup.restarted();
    restarted.provisioner.list_owned();
    let outcome = restarted.provisioner.create(seconds(1), &new).await;
    assert_eq!(setup.rows().len(), others + 1);
    if let Err(error) = outcome {
        assert!(!is_final(&error), "{rejection}: {}", text(&error));
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_no_stock_is_not_final_for_the_first_disk_of_a_cluster() {
    create_after_restart("OperationDenied.NoStock", 0).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_no_stock_is_not_final() {
    create_after_restart("OperationDenied.NoStock", 1).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_a_denied_creation_is_not_final() {
    create_after_restart("Forbidden.RAM", 1).await;
}

/// Several calls of the old process were rejected and consumed their tokens. The process was killed after a later call
/// created the disk. The new process counts rejected calls from zero and thus derives a different later token.
#[tokio::test(start_paused = true)]
async fn after_rejected_calls_and_a_restart_no_later_token_is_used_while_reads_are_stale() {
    for (rejected_before, seed) in (0..45).map(|n| (1 + n % 3, n / 3)) {
        {
            let flag = format!("--seed={seed}");
            let setup = Setup::new(&[&flag]);
            setup.disk("other").await;
            setup.disk("warm").await;
            sleep(3600).await;
            setup.configure(&json!({
                "rules": {"token_burn_percent": 50}, "out_of_stock": ["*/cloud_essd"], "stale": {"lag": "2900ms"},
            }));
            let new = new_disk("pvc-1");
            for _ in 0..rejected_before {
                setup.disks.provisioner.create(seconds(20), &new).await.unwrap_err();
                sleep(20).await;
            }
            setup.configure(&json!({"out_of_stock": []}));
            // The next attempt of the zone and category is due.
            sleep(60).await;
            // Killed as soon as the disk exists.
            let created = async {
                while setup.rows().len() < 3 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::select! {
                biased;
                () = created => {}
                _ = setup.disks.provisioner.create(seconds(20), &new) => panic!("create returned"),
            }
            let next = setup.restarted();
            for _ in 0..80 {
                if next.provisioner.create(seconds(20), &new).await.is_ok() {
                    break;
                }
                sleep(1).await;
            }
            sleep(30).await;
            assert_eq!(
                setup.rows().len(),
                3,
                "after {rejected_before} rejected calls, seed {seed}"
            );
        }
    }
}

/// An empty response to the first listing of a new process does not prove that the cluster has no disk.
#[tokio::test(start_paused = true)]
async fn an_empty_first_listing_does_not_make_a_rejection_final() {
    let setup = Setup::new(&["--stale=2s"]);
    for n in 0..3 {
        setup.disk(&format!("other-{n}")).await;
    }
    sleep(60).await;
    setup.configure(&json!({"faults": [
        {"action": "CreateDisk", "kind": "reset-after"},
        {"action": "CreateDisk", "from": 2, "times": 100, "kind": error_code(403, "OperationDenied.NoStock")},
    ]}));
    let new = new_disk("pvc-1");
    let old = setup
        .disks
        .provisioner
        .create(Deadline::after(Duration::from_millis(100)), &new)
        .await;
    old.unwrap_err();
    setup.configure(&json!({"faults": [
        {"action": "CreateDisk", "times": 100, "kind": error_code(403, "OperationDenied.NoStock")},
        {"action": "DescribeDisks", "times": 2, "kind": "no-rows"},
    ]}));
    let restarted = setup.restarted();
    restarted.provisioner.list_owned();
    let outcome = restarted.provisioner.create(seconds(1), &new).await;
    assert_eq!(setup.rows().len(), 4);
    if let Err(error) = outcome {
        assert!(!is_final(&error), "{}", text(&error));
    }
}
