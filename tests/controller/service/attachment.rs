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
