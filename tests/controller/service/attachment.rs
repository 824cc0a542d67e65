//! ControllerPublishVolume and ControllerUnpublishVolume: the nodes to which a volume is attached, and the codes of
//! rejected attachments.

use std::time::Duration;

use serde_json::json;
use tonic::{Code, Request};

use diskplugin::csi::proto::controller_server::Controller;

use crate::service::kit::{NODE, OTHER, Stage, holders, publication};

#[tokio::test(start_paused = true)]
async fn a_queued_call_uses_the_state_after_its_wait() {
    let stage = Stage::new(&["--attach-delay=20s"]);
    let (first, second) = (stage.volume("pvc-1").await, stage.volume("pvc-2").await);
    let other = stage.restarted();
    let (one, two, meanwhile) = tokio::join!(
        stage.publish(&first, NODE),
        async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            stage.publish(&second, NODE).await
        },
        async {
            // While it is queued, another process attaches the disk to another node.
            tokio::time::sleep(Duration::from_secs(5)).await;
            let request = Request::new(publication(&second, OTHER));
            other.controller_publish_volume(request).await
        },
    );
    one.unwrap();
    meanwhile.unwrap();
    let refused = two.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition, "{refused}");
    assert!(refused.message().contains(OTHER), "{refused}");
    assert_eq!(holders(&stage, &second), [OTHER]);
    assert_eq!(stage.calls("DetachDisk"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_never_detached_from_another_node() {
    let stage = Stage::new(&["--detach-delay=2s", "--stale=2s"]);
    let volume = stage.volume("pvc-1").await;
    for node in [NODE, OTHER] {
        stage.publish(&volume, node).await.unwrap();
        stage.unpublish(&volume, "").await.unwrap();
        assert!(holders(&stage, &volume).is_empty());
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    stage.unpublish(&volume, "").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_error_code_of_attach_limit_and_instance_type_is_mapped() {
    let stage = Stage::new(&[]);
    let volume = stage.volume("pvc-1").await;
    for (status, name, expected) in [
        (403, "InstanceDiskLimitExceeded", Code::ResourceExhausted),
        (400, "InstanceDiskLimitExceeded", Code::ResourceExhausted),
        (
            403,
            "InvalidInstanceType.NotSupportDiskCategory",
            Code::FailedPrecondition,
        ),
        (
            400,
            "InvalidInstanceType.NotSupportDiskCategory",
            Code::FailedPrecondition,
        ),
    ] {
        stage.fault("AttachDisk", &json!({"code": {"status": status, "code": name}}));
        let refused = stage.publish(&volume, NODE).await.unwrap_err();
        assert_eq!(refused.code(), expected, "{name}: {refused}");
        for part in [name, NODE, &volume] {
            assert!(refused.message().contains(part), "{part}: {refused}");
        }
    }
    stage.publish(&volume, NODE).await.unwrap();
}
