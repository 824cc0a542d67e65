//! Creations that may have taken effect: until that is resolved, no answer is final.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use diskplugin::disk::{DiskServices, FailureKind};

use crate::kit::{Setup, minutes, new_snapshot, seconds, text};
use crate::snapshot::{only_snapshot, snapshots};
use crate::snapshot_absence::assert_not_final;

/// Refusals that say nothing about an earlier attempt.
pub(crate) const REJECTIONS: [(u16, &str); 8] = [
    (403, "Forbidden.RAM"),
    (403, "InvalidAccountStatus.NotEnoughBalance"),
    (403, "QuotaExceed.Snapshot"),
    (403, "IncorrectDiskStatus.NeverAttached"),
    (400, "InvalidSnapshotName.Malformed"),
    (404, "InvalidDiskId.NotFound"),
    (403, "IncorrectDiskStatus.CreatingSnapshot"),
    (400, "Throttling"),
];

/// The first call of the action is lost after it took effect, and later ones are rejected. Reads show nothing.
pub(crate) fn lose(setup: &Setup, action: &str, read: &str, loss: &Value, rejection: (u16, &str)) {
    let (status, code) = rejection;
    setup.configure(&json!({"faults": []}));
    setup.configure(&json!({"faults": [
        {"action": action, "kind": loss},
        {"action": action, "from": 2, "times": 10_000, "kind": {"code": {"status": status, "code": code}}},
        {"action": read, "for": "24h", "kind": "no-rows"},
    ]}));
}

/// Only the rejections stay: reads show what is.
pub(crate) fn recover(setup: &Setup, action: &str, rejection: (u16, &str)) {
    let (status, code) = rejection;
    setup.configure(&json!({"faults": []}));
    setup.configure(&json!({"faults": [
        {"action": action, "times": 10_000, "kind": {"code": {"status": status, "code": code}}},
    ]}));
}

async fn create(disks: &Arc<DiskServices>, setup: &Setup) -> Result<(), diskplugin::disk::Error> {
    let source = setup.only_disk();
    let made = disks
        .snapshotter
        .create(seconds(20), &new_snapshot("snap", &source))
        .await;
    made.map(|made| assert_eq!(made.id, only_snapshot(setup)))
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_and_later_refusals_are_never_final_and_the_snapshot_is_found() {
    for loss in [
        json!("reset-after"),
        json!("internal-error-after"),
        json!("hang"),
    ] {
        for first in REJECTIONS {
            // Each call is repeated by the client, or the caller repeats it.
            for setup in [
                Setup::new(&["--cut-delay=1s"]),
                Setup::with_retries(&["--cut-delay=1s"]),
            ] {
                setup.disk("pvc-1").await;
                for rejection in [first, REJECTIONS[0], REJECTIONS[3]] {
                    let lost = snapshots(&setup).is_empty();
                    if lost {
                        lose(
                            &setup,
                            "CreateSnapshot",
                            "DescribeSnapshots",
                            &loss,
                            rejection,
                        );
                    } else {
                        let none = json!("reset-before");
                        lose(
                            &setup,
                            "CreateSnapshot",
                            "DescribeSnapshots",
                            &none,
                            rejection,
                        );
                    }
                    for _ in 0..3 {
                        let unclear = create(&setup.disks, &setup).await.unwrap_err();
                        assert_not_final(&unclear);
                        tokio::time::sleep(Duration::from_secs(30)).await;
                    }
                    assert_eq!(snapshots(&setup).len(), 1, "{loss} {first:?}");
                }
                recover(&setup, "CreateSnapshot", first);
                let new = new_snapshot("snap", &setup.only_disk());
                // The rate limiter may be cautious after so many throttled calls.
                let found = setup.disks.snapshotter.create(minutes(5), &new).await;
                let found =
                    found.unwrap_or_else(|error| panic!("{loss} {first:?}: {}", text(&error)));
                assert_eq!(found.id, only_snapshot(&setup));
                // A repeated call is not rejected either.
                let again = setup.disks.snapshotter.create(minutes(5), &new).await;
                assert_eq!(again.unwrap().id, found.id, "{loss} {first:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_ambiguous_too() {
    let setup = Setup::new(&["--cut-delay=1s"]);
    setup.disk("pvc-1").await;
    lose(
        &setup,
        "CreateSnapshot",
        "DescribeSnapshots",
        &json!("hang"),
        REJECTIONS[1],
    );
    let cancelled = timeout(Duration::from_secs(5), create(&setup.disks, &setup)).await;
    assert!(cancelled.is_err());
    assert_eq!(snapshots(&setup).len(), 1);
    for _ in 0..3 {
        assert_not_final(&create(&setup.disks, &setup).await.unwrap_err());
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    recover(&setup, "CreateSnapshot", REJECTIONS[1]);
    create(&setup.disks, &setup).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn ambiguity_ends_when_reads_that_show_others_do_not_show_the_snapshot() {
    let setup = Setup::new(&["--cut-delay=1s", "--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    setup.snapshot("other", &disk).await;
    // Lost before it took effect.
    lose(
        &setup,
        "CreateSnapshot",
        "DescribeTasks",
        &json!("reset-before"),
        REJECTIONS[1],
    );
    assert_not_final(&create(&setup.disks, &setup).await.unwrap_err());
    assert_not_final(&create(&setup.disks, &setup).await.unwrap_err());
    tokio::time::sleep(Duration::from_secs(120)).await;
    let rejected = create(&setup.disks, &setup).await.unwrap_err();
    assert_eq!(
        rejected.failure_kind(),
        FailureKind::FailedPrecondition,
        "{}",
        text(&rejected)
    );
    setup.configure(&json!({"faults": []}));
    let made = setup
        .disks
        .snapshotter
        .create(minutes(1), &new_snapshot("snap", &disk))
        .await;
    assert!(made.is_ok());
    assert_eq!(snapshots(&setup).len(), 2);
}
