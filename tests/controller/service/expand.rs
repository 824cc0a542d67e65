//! gRPC codes of rejected expansions, as external-resizer interprets them.

use crate::service::kit::*;

#[tokio::test(start_paused = true)]
async fn only_an_expansion_rejected_because_online_is_a_failed_precondition() {
    for (code, grpc, name) in [
        (
            "InvalidDiskSize.NotSupportResizeOnline",
            Code::FailedPrecondition,
            "OFFLINE_EXPANSION_ONLY",
        ),
        ("DiskInArrears", Code::Internal, "ACCOUNT_IN_ARREARS"),
        ("InstanceLockedForSecurity", Code::Internal, "NODE_LOCKED"),
        ("UnheardOf", Code::Internal, "INVALID_STATE"),
        ("InvalidInstanceStatus.NotRunning", Code::Aborted, "NODE_STOPPED"),
        ("InvalidDiskSize.TooLarge", Code::OutOfRange, "OUT_OF_RANGE"),
    ] {
        let stage = Stage::new(&[]);
        let volume = stage.volume("pvc-1").await;
        stage.publish(&volume, NODE).await.unwrap();
        stage.fault("ResizeDisk", &error_code(403, code));
        let status = stage.expand(&volume, 30).await.unwrap_err();
        assert_eq!(status.code(), grpc, "{status}");
        let text = status.message();
        assert!(text.starts_with(&format!("{name}: ")), "{text}");
        for part in [volume.as_str(), code, "RequestId"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
