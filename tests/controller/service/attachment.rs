//! ControllerPublishVolume and ControllerUnpublishVolume: the nodes to which a volume is attached, and the codes of
//! rejected attachments.

use crate::service::kit::*;

#[tokio::test(start_paused = true)]
async fn a_queued_call_uses_the_state_after_its_wait() {
    let stage = Stage::new(&["--attach-delay=20s"]);
    let (first, second) = (stage.volume("pvc-1").await, stage.volume("pvc-2").await);
    let other = stage.restarted();
    let (one, two, meanwhile) = tokio::join!(
        stage.publish(&first, NODE),
        async {
            sleep(1).await;
            stage.publish(&second, NODE).await
        },
        async {
            // While it is queued, another process attaches the disk to another node.
            sleep(5).await;
            other.publish(&second, OTHER).await
        },
    );
    one.unwrap();
    meanwhile.unwrap();
    assert_error(two, Code::FailedPrecondition, &[OTHER]);
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
        sleep(3).await;
    }
    stage.unpublish(&volume, "").await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_error_code_of_attach_limit_and_instance_type_is_mapped() {
    let stage = Stage::new(&[]);
    let volume = stage.volume("pvc-1").await;
    let (limit, category) = (
        "InstanceDiskLimitExceeded",
        "InvalidInstanceType.NotSupportDiskCategory",
    );
    for (status, name, expected) in [
        (403, limit, Code::ResourceExhausted),
        (400, limit, Code::ResourceExhausted),
        (403, category, Code::FailedPrecondition),
        (400, category, Code::FailedPrecondition),
    ] {
        stage.fault("AttachDisk", &error_code(status, name));
        assert_error(stage.publish(&volume, NODE).await, expected, &[name, NODE, &volume]);
    }
    stage.publish(&volume, NODE).await.unwrap();
}
