//! Temporary failures of the cloud: retried, or returned with a code that the caller retries.

use crate::service::kit::*;

#[track_caller]
fn assert_retryable<T: std::fmt::Debug>(outcome: RpcResult<T>) {
    let status = outcome.unwrap_err();
    let (unavailable, internal) = ([Code::Unavailable, Code::Aborted], [Code::Internal, Code::Unknown]);
    let is_retryable = unavailable.contains(&status.code()) || internal.contains(&status.code());
    assert!(is_retryable || status.code() == Code::DeadlineExceeded, "{status}");
}

#[tokio::test(start_paused = true)]
async fn temporary_failures_are_retryable_and_the_retry_succeeds() {
    let kinds = [
        error_code(500, "InternalError"),
        error_code(503, "ServiceUnavailable"),
        error_code(400, "Throttling"),
        json!("reset-before"),
        json!("html"),
    ];
    let actions = [
        "DescribeDisks",
        "DescribeSnapshots",
        "CreateDisk",
        "CreateSnapshot",
        "AttachDisk",
        "DetachDisk",
        "ResizeDisk",
        "DeleteSnapshot",
        "DeleteDisk",
    ];
    for kind in kinds {
        let stage = Stage::new(&[]);
        let fails = actions.map(|action| json!({"action": action, "from": 1, "times": 100_000, "kind": kind}));
        let soon = stage.within(Duration::from_secs(4));
        let broken = json!({"faults": fails});
        let remove_faults = || {
            stage.configure(&json!({"faults": []}));
            sleep(120)
        };
        stage.configure(&broken);
        assert_retryable(soon.create(new_volume("pvc-1")).await);
        remove_faults().await;
        let volume = stage.volume("pvc-1").await;
        stage.configure(&broken);
        assert_retryable(soon.publish(&volume, NODE).await);
        remove_faults().await;
        stage.publish(&volume, NODE).await.unwrap();
        stage.configure(&broken);
        assert_retryable(soon.snapshot("snap", &volume).await);
        assert_retryable(soon.validate(&volume, vec![mount()]).await);
        assert_retryable(soon.expand(&volume, 30).await);
        remove_faults().await;
        stage.snapshot("snap", &volume).await.unwrap();
        stage.expand(&volume, 30).await.unwrap();
        stage.unpublish(&volume, NODE).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn every_throttling_code_and_lost_responses_are_retried() {
    let mut kinds = vec![
        json!("reset-before"),
        json!("service-unavailable"),
        json!("internal-error"),
    ];
    for name in [
        "Throttling",
        "Throttling.User",
        "Throttling.Api",
        "Throttling.ConcurrentLimitExceeded",
        "Rejected.Throttling",
        "Throttling.OfAKindThatIsNew",
    ] {
        for status in [400, 403, 429, 503] {
            kinds.push(error_code(status, name));
        }
    }
    for kind in kinds {
        for action in ["CreateDisk", "DescribeDisks", "DeleteDisk"] {
            let stage = Stage::new(&[]);
            stage.fault(action, &kind);
            let patient = stage.within(Duration::from_secs(300));
            let volume = patient.create(new_volume("pvc-1")).await;
            let volume = volume.unwrap_or_else(|status| panic!("{action} {kind}: {status}"));
            let deleted = patient.delete(&volume.volume_id).await;
            deleted.unwrap_or_else(|status| panic!("{action} {kind}: {status}"));
            assert!(stage.disks().is_empty());
            let failed = stage.cloud.calls().into_iter();
            let failed = failed.filter(|call| call.action == action && call.status != Some(200));
            assert!(failed.count() >= 1, "{action} {kind}");
        }
    }
}
