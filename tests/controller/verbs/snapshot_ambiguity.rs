//! Ambiguous creations: no error is final until a read proves whether the snapshot was created.

use crate::verbs::kit::*;

/// Rejections that do not reveal whether an earlier attempt succeeded.
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

/// Applies `loss` to the first call of the action and rejects later calls. Responses of `read` contain no rows.
pub(crate) fn lose(setup: &Setup, action: &str, read: &str, loss: &Value, rejection: (u16, &str)) {
    let (status, code) = rejection;
    setup.replace_faults(&json!([
        {"action": action, "kind": loss},
        {"action": action, "from": 2, "times": 10_000, "kind": {"code": {"status": status, "code": code}}},
        {"action": read, "for": "24h", "kind": "no-rows"},
    ]));
}

/// Makes reads return rows again; calls of the action are still rejected.
pub(crate) fn recover(setup: &Setup, action: &str, rejection: (u16, &str)) {
    let (status, code) = rejection;
    setup.replace_faults(&json!([
        {"action": action, "times": 10_000, "kind": {"code": {"status": status, "code": code}}},
    ]));
}

fn lose_snapshot(setup: &Setup, loss: &Value, rejection: (u16, &str)) {
    lose(setup, "CreateSnapshot", "DescribeSnapshots", loss, rejection);
}

async fn create(setup: &Setup) -> Result<(), Error> {
    let new = new_snapshot("snap", &setup.only_disk());
    let created = setup.try_snapshot(seconds(20), &new).await;
    created.map(|snapshot| assert_eq!(snapshot.id, setup.only_snapshot()))
}

#[tokio::test(start_paused = true)]
async fn errors_after_a_lost_response_are_never_final_and_the_snapshot_is_found() {
    for loss in [json!("reset-after"), json!("internal-error-after"), json!("hang")] {
        for first in REJECTIONS {
            // With and without a response that proves something.
            for setup in [
                Setup::new(&["--cut-delay=1s"]),
                Setup::without_canary(&["--cut-delay=1s"]),
            ] {
                setup.disk("pvc-1").await;
                for rejection in [first, REJECTIONS[0], REJECTIONS[3]] {
                    let is_first = setup.snapshots().is_empty();
                    let loss = if is_first { &loss } else { &json!("reset-before") };
                    lose_snapshot(&setup, loss, rejection);
                    for _ in 0..3 {
                        let ambiguous = create(&setup).await.unwrap_err();
                        assert_not_final(&ambiguous);
                        sleep(30).await;
                    }
                    assert_eq!(setup.snapshots().len(), 1, "{loss} {first:?}");
                }
                recover(&setup, "CreateSnapshot", first);
                let new = new_snapshot("snap", &setup.only_disk());
                // The rate limiter may delay the call after the throttled ones.
                let found = setup.try_snapshot(minutes(5), &new).await;
                let found = found.unwrap_or_else(|error| panic!("{loss} {first:?}: {}", text(&error)));
                assert_eq!(found.id, setup.only_snapshot());
                // Neither is a repeated call rejected.
                let again = setup.try_snapshot(minutes(5), &new).await;
                assert_eq!(again.unwrap().id, found.id, "{loss} {first:?}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_ambiguous() {
    let setup = Setup::new(&["--cut-delay=1s"]);
    setup.disk("pvc-1").await;
    lose_snapshot(&setup, &json!("hang"), REJECTIONS[1]);
    let cancelled = timeout(Duration::from_secs(5), create(&setup)).await;
    assert!(cancelled.is_err());
    assert_eq!(setup.snapshots().len(), 1);
    for _ in 0..3 {
        assert_not_final(&create(&setup).await.unwrap_err());
        sleep(60).await;
    }
    recover(&setup, "CreateSnapshot", REJECTIONS[1]);
    create(&setup).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn ambiguity_ends_when_reads_return_other_snapshots_but_not_this_one() {
    let setup = Setup::new(&["--cut-delay=1s", "--stale=2s"]);
    let disk = setup.disk("pvc-1").await;
    setup.snapshot("other", &disk).await;
    // The request is lost before it takes effect.
    let lost = json!("reset-before");
    lose(&setup, "CreateSnapshot", "DescribeTasks", &lost, REJECTIONS[1]);
    for _ in 0..2 {
        assert_not_final(&create(&setup).await.unwrap_err());
    }
    sleep(120).await;
    let rejected = create(&setup).await.unwrap_err();
    assert_error(&rejected, FailureKind::FailedPrecondition, &[]);
    setup.clear_faults();
    let created = setup.try_snapshot(minutes(1), &new_snapshot("snap", &disk)).await;
    assert!(created.is_ok());
    assert_eq!(setup.snapshots().len(), 2);
}
