//! Creations with a lost outcome, retried by the same process or by its successor.

use crate::verbs::kit::*;

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
    create_until_row(&setup, setup.try_create(minutes(5), &new)).await;
    // The caller has given up. The disk exists, and reads lag.
    setup.faults("CreateDisk", 1000, &error_code(403, "OperationDenied.NoStock"));
    if let Err(error) = setup.try_create(seconds(5), &new).await {
        assert_not_final(&error);
    }
}

/// The old process created a disk, but its response was lost. An empty response to the first listing of the new process
/// does not prove that the cluster has no disk.
#[tokio::test(start_paused = true)]
async fn after_a_restart_a_rejection_is_not_final_while_a_lost_disk_may_exist() {
    let no_stock = "OperationDenied.NoStock";
    for (rejection, others, pause, empty_listings) in [
        (no_stock, 0, 5, 0),
        (no_stock, 1, 5, 0),
        ("Forbidden.RAM", 1, 5, 0),
        (no_stock, 2, 60, 0),
        (no_stock, 3, 60, 2),
    ] {
        let setup = Setup::new(&["--stale=2s"]);
        setup.other_disks(others).await;
        sleep(pause).await;
        let rejected = error_code(403, rejection);
        setup.configure(&json!({"faults": [
            {"action": "CreateDisk", "kind": "reset-after"},
            {"action": "CreateDisk", "from": 2, "times": 100, "kind": rejected},
        ]}));
        let new = new_disk("pvc-1");
        let soon = Deadline::after(Duration::from_millis(100));
        setup.try_create(soon, &new).await.unwrap_err();
        if empty_listings > 0 {
            setup.configure(&json!({"faults": [
                {"action": "CreateDisk", "times": 100, "kind": rejected},
                {"action": "DescribeDisks", "times": empty_listings, "kind": "no-rows"},
            ]}));
        }
        let restarted = setup.restarted();
        restarted.disks.provisioner.list_owned();
        let outcome = restarted.try_create(seconds(1), &new).await;
        assert_eq!(setup.rows().len(), others + 1);
        if let Err(error) = outcome {
            assert_not_final(&error);
        }
    }
}

/// Several calls of the old process were rejected and consumed their tokens. The process was killed after a later call
/// created the disk. The new process counts rejected calls from zero and thus derives a different later token.
#[tokio::test(start_paused = true)]
async fn after_rejected_calls_and_a_restart_no_later_token_is_used_while_reads_are_stale() {
    for (rejected_before, seed) in (0..45).map(|n| (1 + n % 3, n / 3)) {
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
            setup.try_create(seconds(20), &new).await.unwrap_err();
            sleep(20).await;
        }
        setup.configure(&json!({"out_of_stock": []}));
        // The next attempt of the zone and category is due.
        sleep(60).await;
        // Killed as soon as the disk exists.
        create_until_row(&setup, setup.try_create(seconds(20), &new)).await;
        let next = setup.restarted();
        for _ in 0..80 {
            if next.try_create(seconds(20), &new).await.is_ok() {
                break;
            }
            sleep(1).await;
        }
        sleep(30).await;
        assert_eq!(setup.rows().len(), 3, "after {rejected_before} rejected calls");
    }
}
