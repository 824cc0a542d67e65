//! Creations whose outcome is lost, by one process or by the one that takes over.

use std::time::Duration;

use serde_json::json;

use diskplugin::base::Deadline;

use super::{code, is_final, pass};
use crate::kit::{Setup, minutes, seconds, text, new_disk};

#[tokio::test(start_paused = true)]
async fn a_creation_cut_off_in_a_late_attempt_is_unresolved_from_that_attempt_on() {
    let setup = Setup::with_retries(&["--stale=8s"]);
    setup.disk("other").await;
    pass(30).await;
    setup.configure(&json!({"faults": [
        {"action": "CreateDisk", "for": "70s", "kind": "internal-error"},
        {"action": "CreateDisk", "times": 1000, "kind": {"delay-after": "5s"}},
    ]}));
    let new = new_disk("pvc-1");
    {
        let call = setup.disks.provisioner.create(minutes(5), &new);
        let made = async {
            while setup.rows().len() < 2 {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        tokio::select! {
            _ = call => panic!("ended"),
            () = made => {}
        }
    }
    // The caller has given up. The disk exists, and reads lag.
    let refused = code(403, "OperationDenied.NoStock");
    setup.faults("CreateDisk", 1000, &refused);
    let outcome = setup.disks.provisioner.create(seconds(5), &new).await;
    if let Err(error) = outcome {
        assert!(!is_final(&error), "{}", text(&error));
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_takes_over_withholds_refusals_while_the_old_leaders_disk_may_exist() {
    let setup = Setup::new(&["--stale=2s"]);
    setup.disk("other").await;
    pass(5).await;
    let standby = setup.restarted();
    standby.provisioner.list_owned();
    pass(3600).await;
    standby
        .provisioner
        .create(minutes(1), &new_disk("warm"))
        .await
        .unwrap();
    pass(60).await;
    let new = new_disk("pvc-1");
    let lost = json!({"action": "CreateDisk", "kind": "reset-after"});
    let no_stock = code(403, "OperationDenied.NoStock");
    let refused = json!({"action": "CreateDisk", "from": 2, "times": 100, "kind": no_stock});
    setup.configure(&json!({"faults": [lost, refused]}));
    let soon = Deadline::after(Duration::from_millis(100));
    setup
        .disks
        .provisioner
        .create(soon, &new)
        .await
        .unwrap_err();
    let outcome = standby.provisioner.create(seconds(1), &new).await;
    assert_eq!(setup.rows().len(), 3);
    if let Err(error) = outcome {
        assert!(!is_final(&error), "{}", text(&error));
    }
}

async fn restart_then(refusal: &str, others: usize) {
    let setup = Setup::new(&["--stale=2s"]);
    setup.other_disks(others).await;
    pass(5).await;
    let lost = json!({"action": "CreateDisk", "kind": "reset-after"});
    let refused =
        json!({"action": "CreateDisk", "from": 2, "times": 100, "kind": code(403, refusal)});
    setup.configure(&json!({"faults": [lost, refused]}));
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
        assert!(!is_final(&error), "{refusal}: {}", text(&error));
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_no_stock_is_not_final_for_the_first_disk_of_a_cluster() {
    restart_then("OperationDenied.NoStock", 0).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_no_stock_is_not_final() {
    restart_then("OperationDenied.NoStock", 1).await;
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_a_denied_creation_is_not_final() {
    restart_then("Forbidden.RAM", 1).await;
}

/// The old process had several calls refused, which used their tokens up, and was killed when a later one had created
/// the disk. The new one counts the refused calls from zero, so that its further token is another one.
#[tokio::test(start_paused = true)]
async fn a_restart_after_several_refused_calls_uses_no_further_token_before_reads_have_caught_up() {
    for (refused_before, seed) in (0..45).map(|n| (1 + n % 3, n / 3)) {
        for standby in [false, true] {
            let flag = format!("--seed={seed}");
            let setup = Setup::new(&[&flag]);
            setup.disk("other").await;
            pass(60).await;
            let waiting = setup.restarted();
            waiting
                .provisioner
                .create(seconds(20), &new_disk("warm"))
                .await
                .unwrap();
            pass(3600).await;
            setup.configure(&json!({
                "rules": {"token_burn_percent": 50}, "out_of_stock": ["*/cloud_essd"], "stale": {"lag": "2900ms"},
            }));
            let new = new_disk("pvc-1");
            for _ in 0..refused_before {
                setup
                    .disks
                    .provisioner
                    .create(seconds(20), &new)
                    .await
                    .unwrap_err();
                pass(20).await;
            }
            setup.configure(&json!({"out_of_stock": []}));
            // Killed as soon as the disk is there.
            let made = async {
                while setup.rows().len() < 3 {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            };
            tokio::select! {
                biased;
                () = made => {}
                _ = setup.disks.provisioner.create(seconds(20), &new) => panic!("ended"),
            }
            let next = if standby { waiting } else { setup.restarted() };
            for _ in 0..8 {
                if next.provisioner.create(seconds(20), &new).await.is_ok() {
                    break;
                }
                pass(1).await;
            }
            pass(30).await;
            assert_eq!(
                setup.rows().len(),
                3,
                "after {refused_before} refused calls, standby: {standby}, seed {seed}"
            );
        }
    }
}

/// One empty response to the listing of a fresh process: it proves nothing, least of all that the cluster has no disk.
#[tokio::test(start_paused = true)]
async fn an_empty_first_listing_makes_no_refusal_final() {
    let setup = Setup::new(&["--stale=2s"]);
    for n in 0..3 {
        setup.disk(&format!("other-{n}")).await;
    }
    pass(60).await;
    setup.configure(&json!({"faults": [
        {"action": "CreateDisk", "kind": "reset-after"},
        {"action": "CreateDisk", "from": 2, "times": 100, "kind": code(403, "OperationDenied.NoStock")},
    ]}));
    let new = new_disk("pvc-1");
    let old = setup
        .disks
        .provisioner
        .create(Deadline::after(Duration::from_millis(100)), &new)
        .await;
    old.unwrap_err();
    setup.configure(&json!({"faults": [
        {"action": "CreateDisk", "times": 100, "kind": code(403, "OperationDenied.NoStock")},
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
