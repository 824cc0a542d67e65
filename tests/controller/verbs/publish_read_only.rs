//! Read-only ControllerPublishVolume: the tag of the disk that records the node, and conflicts with writers.
//! `src/node/plan/tests/mod.rs` covers read-only volumes on the node.

use crate::verbs::kit::*;

fn read_only(disk: &DiskId) -> PublishRequest {
    PublishRequest {
        read_only: true,
        ..single_node(disk, &node_one())
    }
}

/// Nodes that the tags of the disk record as read-only.
fn read_only_nodes(setup: &Setup, disk: &DiskId) -> Vec<String> {
    let row = setup.row(disk);
    let tags = row["tags"].as_object().unwrap().iter();
    tags.filter(|(key, value)| key.starts_with(tag::READ_ONLY_ON) && *value == "true")
        .map(|(key, _)| key.trim_start_matches(tag::READ_ONLY_ON).to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_read_only_tag_is_set_before_the_attach_and_removed_after_the_detach() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.cloud.clear_calls();
    setup.publish(&read_only(&disk)).await.unwrap();
    let calls = setup.cloud.calls();
    let actions: Vec<_> = calls.iter().map(|call| call.action.as_str()).collect();
    let position = |action| actions.iter().position(|other| *other == action).unwrap();
    assert!(position("TagResources") < position("AttachDisk"), "{actions:?}");
    assert_eq!(read_only_nodes(&setup, &disk), ["i-one"]);
    setup.detach(&disk, &node_one()).await;
    assert!(read_only_nodes(&setup, &disk).is_empty());
    // A writer needs no additional call.
    setup.cloud.clear_calls();
    setup.publish(&single_node(&disk, &node_one())).await.unwrap();
    assert_eq!((setup.calls("AttachDisk"), setup.calls("TagResources")), (1, 0));
    assert_eq!(setup.cloud.calls()[0].action, "AttachDisk");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_read_only_publish_recovers_from_a_response_lost_at_any_call() {
    for action in ["TagResources", "AttachDisk"] {
        for loss in ["reset-before", "reset-after", "internal-error-after"] {
            let setup = Setup::new(&[]);
            let disk = setup.disk("pvc-1").await;
            setup.faults(action, 1_000_000, &json!(loss));
            let reader = read_only(&disk);
            // Until its deadline the client's retries fail too. The driver recognizes an attachment by its row.
            let outcome = setup.publish(&reader).await;
            assert!(outcome.is_err() || action == "AttachDisk", "{action} {loss}");
            setup.clear_faults();
            let again = setup.restarted().publish(&reader).await;
            assert!(again.is_ok(), "{action} {loss}: {again:?}");
            assert_eq!(read_only_nodes(&setup, &disk), ["i-one"], "{action} {loss}");
            // The tag of a failed read-only publish does not affect a later writer.
            setup.detach(&disk, &node_one()).await;
            setup.reject("AttachDisk", 403, "InstanceDiskLimitExceeded");
            assert!(setup.publish(&reader).await.is_err());
            setup.publish(&single_node(&disk, &node_one())).await.unwrap();
            assert!(read_only_nodes(&setup, &disk).is_empty(), "{action} {loss}");
            assert!(setup.publish(&single_node(&disk, &node_one())).await.is_ok());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unpublish_fails_until_the_read_only_tag_is_removed_and_a_writer_removes_a_leftover_tag() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let reader = read_only(&disk);
    setup.publish(&reader).await.unwrap();
    let (error, node) = (json!("internal-error"), node_one());
    let detach = setup.try_detach(minutes(1), &disk, &node);
    setup.lose("UntagResources", &error, detach).await;
    assert!(setup.attachments(&disk).is_empty());
    setup.detach(&disk, &node_one()).await;
    assert!(read_only_nodes(&setup, &disk).is_empty());
    setup.reject("AttachDisk", 403, "InstanceDiskLimitExceeded");
    setup.publish(&reader).await.unwrap_err();
    assert_eq!(read_only_nodes(&setup, &disk), ["i-one"]);
    setup.cloud.clear_calls();
    let writer = PublishRequest {
        multi_attach: true,
        ..single_node(&disk, &node_one())
    };
    setup.publish(&writer).await.unwrap();
    let calls = setup.cloud.calls();
    let position = |action| calls.iter().position(|call| call.action == action).unwrap();
    assert!(position("UntagResources") < position("AttachDisk"));
    assert!(read_only_nodes(&setup, &disk).is_empty());
}
