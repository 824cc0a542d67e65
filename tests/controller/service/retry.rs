//! Temporary failures of the cloud: retried, or returned with a code that the caller retries.

use std::time::Duration;

use serde_json::{Value, json};
use tonic::Code;

use diskplugin::csi::proto::controller_server::Controller;
use diskplugin::csi::proto::{
    ControllerExpandVolumeRequest, CreateSnapshotRequest, DeleteVolumeRequest, ValidateVolumeCapabilitiesRequest,
};

use crate::service::kit::{NODE, Stage, mount, new_volume, publication, range, within};

#[tokio::test(start_paused = true)]
async fn temporary_failures_are_retryable_and_the_retry_succeeds() {
    let kinds = [
        json!({"code": {"status": 500, "code": "InternalError"}}),
        json!({"code": {"status": 503, "code": "ServiceUnavailable"}}),
        json!({"code": {"status": 400, "code": "Throttling"}}),
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
        let fails: Vec<Value> = actions
            .iter()
            .map(|action| json!({"action": action, "from": 1, "times": 100_000, "kind": kind}))
            .collect();
        let soon = Duration::from_secs(4);
        let assert_error = |step: &str, failure: Option<tonic::Status>| {
            let status = failure.unwrap_or_else(|| panic!("{step} succeeded under {kind}"));
            let passing = [
                Code::Unavailable,
                Code::Aborted,
                Code::DeadlineExceeded,
                Code::Internal,
                Code::Unknown,
            ];
            assert!(passing.contains(&status.code()), "{step} under {kind}: {status}");
        };
        let broken = json!({"faults": fails});
        let remove_faults = || {
            stage.configure(&json!({"faults": []}));
            tokio::time::sleep(Duration::from_secs(120))
        };
        stage.configure(&broken);
        let failed = stage.service.create_volume(within(soon, new_volume("pvc-1"))).await;
        assert_error("create", failed.err());
        remove_faults().await;
        let volume = stage.volume("pvc-1").await;

        stage.configure(&broken);
        let request = within(soon, publication(&volume, NODE));
        assert_error("publish", stage.service.controller_publish_volume(request).await.err());
        remove_faults().await;
        stage.publish(&volume, NODE).await.unwrap();

        stage.configure(&broken);
        let snapshot = CreateSnapshotRequest {
            name: "snap".to_owned(),
            source_volume_id: volume.clone(),
            ..Default::default()
        };
        assert_error(
            "snapshot",
            stage.service.create_snapshot(within(soon, snapshot)).await.err(),
        );
        let validate = ValidateVolumeCapabilitiesRequest {
            volume_id: volume.clone(),
            volume_capabilities: vec![mount()],
            ..Default::default()
        };
        let validated = stage.service.validate_volume_capabilities(within(soon, validate)).await;
        assert_error("validate", validated.err());
        let expand = ControllerExpandVolumeRequest {
            volume_id: volume.clone(),
            capacity_range: Some(range(30, 0)),
            ..Default::default()
        };
        assert_error(
            "expand",
            stage.service.controller_expand_volume(within(soon, expand)).await.err(),
        );
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
            kinds.push(json!({"code": {"status": status, "code": name}}));
        }
    }
    for kind in kinds {
        for action in ["CreateDisk", "DescribeDisks", "DeleteDisk"] {
            let stage = Stage::new(&[]);
            let fault = json!({"action": action, "kind": kind});
            stage.configure(&json!({"faults": [fault]}));
            let patient = Duration::from_secs(300);
            let request = within(patient, new_volume("pvc-1"));
            let made = stage.service.create_volume(request).await;
            let made = made.unwrap_or_else(|status| panic!("{action} {kind}: {status}"));
            let delete = DeleteVolumeRequest {
                volume_id: made.into_inner().volume.unwrap().volume_id,
                ..Default::default()
            };
            let gone = stage.service.delete_volume(within(patient, delete)).await;
            gone.unwrap_or_else(|status| panic!("{action} {kind}: {status}"));
            assert!(stage.disks().is_empty());
            let failed = stage.cloud.calls().into_iter();
            let failed = failed.filter(|call| call.action == action && call.status != Some(200));
            assert!(failed.count() >= 1, "{action} {kind}");
        }
    }
}
