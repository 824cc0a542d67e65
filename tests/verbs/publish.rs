//! ControllerPublishVolume: access modes, read-only attachments and permanent rejections.
//!
//! Regressions of other drivers that are covered here, in addition to those in `attach.rs`, `attach_wait.rs`,
//! `detach.rs`, `attach_queue.rs` and `unreachable.rs`:
//! * a full node is `RESOURCE_EXHAUSTED` with the counts, not `INTERNAL`;
//! * a category that the instance type does not support is reported by the error code of the cloud;
//! * raw block volumes honor read-only (with `src/node/plan/tests.rs`), and read-only is published;
//! * every access mode is either supported or rejected with the reason.

use serde_json::{Value, json};

use diskplugin::disk::{DiskServices, Error, FailureKind, NodeAccess, PublishRequest};
use diskplugin::model::{Disk, DiskId, Failure, InstanceId, tag};

use crate::kit::{Setup, minutes, node_one, node_two, text};

fn node(n: usize) -> InstanceId {
    format!("i-{n}").parse().unwrap()
}

fn single_node(disk: &DiskId, node: &InstanceId) -> PublishRequest {
    PublishRequest {
        disk: disk.clone(),
        node: node.clone(),
        read_only: false,
        access: NodeAccess::SingleNode,
        multi_attach: false,
    }
}

fn multi_node(disk: &DiskId, node: &InstanceId) -> PublishRequest {
    PublishRequest {
        access: NodeAccess::MultiNode,
        multi_attach: true,
        ..single_node(disk, node)
    }
}

async fn publish(disks: &DiskServices, request: &PublishRequest) -> Result<Disk, Error> {
    disks.attacher.publish(minutes(1), request).await
}

fn reject_attach(setup: &Setup, code: &str, status: u16) {
    let kind = json!({"code": {"status": status, "code": code}});
    setup.fault("AttachDisk", &kind);
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
async fn a_disk_attaches_to_16_nodes_and_the_error_for_another_states_the_count() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::with_multi_attach_nodes(17, &["--attach-delay=2s", stale]);
        let disk = setup.multi_attach_disk().await;
        for n in 0..16 {
            let row = publish(&setup.disks, &multi_node(&disk, &node(n))).await;
            let row = row.unwrap_or_else(|error| panic!("{n} {stale}: {}", text(&error)));
            assert!(row.is_in_use_on(&node(n)));
            let attachments = setup.attachments(&disk);
            assert_eq!(attachments.len(), n + 1, "{stale}");
            assert!(
                attachments.iter().all(|(_, state)| state == "Attached"),
                "{attachments:?}"
            );
        }
        // The count in the message is from a read, so wait until reads are current.
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        let error = publish(&setup.disks, &multi_node(&disk, &node(16)))
            .await
            .unwrap_err();
        assert_eq!(error.failure_kind(), FailureKind::ResourceExhausted);
        for part in [
            disk.as_str(),
            "i-16",
            "16 nodes hold it",
            "DiskAttachedNumberExceeded",
        ] {
            assert!(text(&error).contains(part), "{}", text(&error));
        }
        setup.detach(&disk, &node(3)).await;
        let attachments = setup.attachments(&disk);
        assert_eq!(attachments.len(), 15, "{stale}");
        assert!(attachments.iter().all(|(node, _)| node != "i-3"));
        assert!(
            publish(&setup.disks, &multi_node(&disk, &node(16)))
                .await
                .is_ok()
        );
        setup
            .disks
            .attacher
            .detach_everywhere(minutes(5), &disk)
            .await
            .unwrap();
        assert!(setup.attachments(&disk).is_empty(), "{stale}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_multi_node_request_for_a_disk_without_multi_attach_is_rejected_without_a_call() {
    let setup = Setup::with_multi_attach_nodes(2, &[]);
    let disk = setup.disk("pvc-1").await;
    publish(&setup.disks, &single_node(&disk, &node(0)))
        .await
        .unwrap();
    setup.cloud.clear_calls();
    let error = publish(&setup.disks, &multi_node(&disk, &node(1)))
        .await
        .unwrap_err();
    assert_eq!(error.failure(), Failure::MultiAttachDisabled, "{error:?}");
    assert_eq!(error.failure_kind(), FailureKind::InvalidArgument);
    assert!(text(&error).contains("multiAttach"), "{}", text(&error));
    assert_eq!(setup.calls("AttachDisk"), 0);
    assert_eq!(setup.attachments(&disk).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_multi_attach_disk_in_single_node_use_is_not_attached_to_a_second_node() {
    for multi_attach in [true, false] {
        let setup = Setup::with_multi_attach_nodes(2, &["--attach-delay=1s"]);
        let disk = setup.multi_attach_disk().await;
        publish(&setup.disks, &single_node(&disk, &node(0)))
            .await
            .unwrap();
        let second = PublishRequest {
            multi_attach,
            ..single_node(&disk, &node(1))
        };
        let error = publish(&setup.disks, &second).await.unwrap_err();
        let Error::InUseElsewhere { holder, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(holder, &node(0));
        let attached = [("i-0".to_owned(), "Attached".to_owned())];
        assert_eq!(
            setup.attachments(&disk),
            attached,
            "multi_attach: {multi_attach}"
        );
        // A disk that is known to be multi-attach is checked before it is attached.
        assert_eq!(setup.calls("AttachDisk"), if multi_attach { 1 } else { 2 });
        assert!(publish(&setup.disks, &second).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn multi_node_single_writer_rejects_a_second_writer_and_accepts_readers() {
    let setup = Setup::with_multi_attach_nodes(4, &[]);
    let disk = setup.multi_attach_disk().await;
    let single_writer = |n, read_only| PublishRequest {
        access: NodeAccess::MultiNodeSingleWriter,
        read_only,
        ..multi_node(&disk, &node(n))
    };
    publish(&setup.disks, &single_writer(0, true))
        .await
        .unwrap();
    publish(&setup.disks, &single_writer(1, false))
        .await
        .unwrap();
    publish(&setup.disks, &single_writer(2, true))
        .await
        .unwrap();
    // The tags of the disk record the readers, so the same applies after a restart.
    let restarted = setup.restarted();
    let error = publish(&restarted, &single_writer(3, false))
        .await
        .unwrap_err();
    assert_eq!(error.failure(), Failure::WriterConflict, "{error:?}");
    let holder = format!("node {} may write", node(1));
    assert!(text(&error).contains(&holder), "{}", text(&error));
    assert!(publish(&restarted, &single_writer(1, false)).await.is_ok());
    assert!(publish(&restarted, &single_writer(3, true)).await.is_ok());
    assert_eq!(setup.attachments(&disk).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn the_read_only_tag_is_set_before_the_attach_and_removed_after_the_detach() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.cloud.clear_calls();
    let reader = PublishRequest {
        read_only: true,
        ..single_node(&disk, &node_one())
    };
    publish(&setup.disks, &reader).await.unwrap();
    let calls = setup.cloud.calls();
    let actions: Vec<_> = calls.iter().map(|call| call.action.as_str()).collect();
    let position = |action| actions.iter().position(|other| *other == action).unwrap();
    assert!(
        position("TagResources") < position("AttachDisk"),
        "{actions:?}"
    );
    assert_eq!(read_only_nodes(&setup, &disk), ["i-one"]);
    setup.detach(&disk, &node_one()).await;
    assert!(read_only_nodes(&setup, &disk).is_empty());
    // A writer needs no additional call.
    setup.cloud.clear_calls();
    publish(&setup.disks, &single_node(&disk, &node_one()))
        .await
        .unwrap();
    assert_eq!(
        (setup.calls("AttachDisk"), setup.calls("TagResources")),
        (1, 0)
    );
    assert_eq!(setup.cloud.calls()[0].action, "AttachDisk");
}

#[tokio::test(start_paused = true)]
async fn another_access_mode_on_the_same_node_is_a_conflict_and_a_repeat_succeeds() {
    for stale in ["--stale=0s", "--stale=2s"] {
        for first in [false, true] {
            let setup = Setup::new(&[stale]);
            let disk = setup.disk("pvc-1").await;
            let request = |read_only| PublishRequest {
                read_only,
                ..single_node(&disk, &node_one())
            };
            publish(&setup.disks, &request(first)).await.unwrap();
            let other = publish(&setup.disks, &request(!first)).await.unwrap_err();
            assert_eq!(
                other.failure_kind(),
                FailureKind::AlreadyExists,
                "{stale} {first}"
            );
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            let restarted = setup.restarted();
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            let again = publish(&restarted, &request(first)).await;
            assert!(again.is_ok(), "{stale} {first}: {again:?}");
            let other = publish(&restarted, &request(!first)).await.unwrap_err();
            let failure = other.failure();
            assert_eq!(failure, Failure::AttachModeConflict, "{stale} {first}");
            assert_eq!(setup.attachments(&disk).len(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_read_only_publish_recovers_from_a_response_lost_at_any_call() {
    for action in ["TagResources", "AttachDisk"] {
        for loss in ["reset-before", "reset-after", "internal-error-after"] {
            let setup = Setup::new(&[]);
            let disk = setup.disk("pvc-1").await;
            setup.fault(action, &json!(loss));
            let reader = PublishRequest {
                read_only: true,
                ..single_node(&disk, &node_one())
            };
            let _ = publish(&setup.disks, &reader).await;
            let again = publish(&setup.restarted(), &reader).await;
            assert!(again.is_ok(), "{action} {loss}: {again:?}");
            assert_eq!(read_only_nodes(&setup, &disk), ["i-one"], "{action} {loss}");
            // The tag of a failed read-only publish does not affect a later writer.
            setup.detach(&disk, &node_one()).await;
            let full = json!({"code": {"status": 403, "code": "InstanceDiskLimitExceeded"}});
            setup.fault("AttachDisk", &full);
            assert!(publish(&setup.disks, &reader).await.is_err());
            publish(&setup.disks, &single_node(&disk, &node_one()))
                .await
                .unwrap();
            assert!(read_only_nodes(&setup, &disk).is_empty(), "{action} {loss}");
            assert!(
                publish(&setup.disks, &single_node(&disk, &node_one()))
                    .await
                    .is_ok()
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn unpublish_fails_until_the_read_only_tag_is_removed_and_a_writer_removes_a_leftover_tag() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let reader = PublishRequest {
        read_only: true,
        ..single_node(&disk, &node_one())
    };
    publish(&setup.disks, &reader).await.unwrap();
    setup.fault("UntagResources", &json!("internal-error"));
    let detached = setup
        .disks
        .attacher
        .detach(minutes(1), &disk, &node_one())
        .await;
    assert!(detached.is_err() && setup.attachments(&disk).is_empty());
    setup.detach(&disk, &node_one()).await;
    assert!(read_only_nodes(&setup, &disk).is_empty());
    reject_attach(&setup, "InstanceDiskLimitExceeded", 403);
    publish(&setup.disks, &reader).await.unwrap_err();
    assert_eq!(read_only_nodes(&setup, &disk), ["i-one"]);
    setup.cloud.clear_calls();
    let writer = PublishRequest {
        multi_attach: true,
        ..single_node(&disk, &node_one())
    };
    publish(&setup.disks, &writer).await.unwrap();
    let calls = setup.cloud.calls();
    let position = |action| calls.iter().position(|call| call.action == action).unwrap();
    assert!(position("UntagResources") < position("AttachDisk"));
    assert!(read_only_nodes(&setup, &disk).is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_error_for_a_full_node_states_its_limit_and_its_attached_disks() {
    let setup = Setup::new(&["--disk-quantity=3"]);
    for name in ["pvc-1", "pvc-2"] {
        let disk = setup.disk(name).await;
        publish(&setup.disks, &single_node(&disk, &node_one()))
            .await
            .unwrap();
    }
    let disk = setup.disk("pvc-3").await;
    setup.cloud.clear_calls();
    publish(&setup.disks, &single_node(&disk, &node_two()))
        .await
        .unwrap();
    assert_eq!(setup.calls("DescribeInstanceTypes"), 0);
    setup.detach(&disk, &node_two()).await;
    let error = publish(&setup.disks, &single_node(&disk, &node_one()))
        .await
        .unwrap_err();
    assert_eq!(error.failure_kind(), FailureKind::ResourceExhausted);
    for part in [
        disk.as_str(),
        "i-one",
        "ecs.g6.large supports",
        "including the system disk",
        "2 data disks are attached",
        "InstanceDiskLimitExceeded",
    ] {
        assert!(text(&error).contains(part), "{}", text(&error));
    }
}

#[tokio::test(start_paused = true)]
async fn an_unsupported_instance_type_fails_the_precondition_and_the_error_names_type_and_category()
{
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    for (code, status) in [
        ("InvalidInstanceType.NotSupportDiskCategory", 403),
        ("InvalidInstanceType.NvmeUnsupported", 403),
        ("InvalidInstanceType.NotSupportMultiAttachDisk", 403),
        ("InvalidOperation.InstanceTypeNotSupport", 400),
    ] {
        reject_attach(&setup, code, status);
        let error = publish(&setup.disks, &single_node(&disk, &node_one()))
            .await
            .unwrap_err();
        assert_eq!(
            error.failure_kind(),
            FailureKind::FailedPrecondition,
            "{code}"
        );
        for part in [
            disk.as_str(),
            "i-one",
            "ecs.g6.large",
            "cloud_essd",
            code,
            "RequestId",
        ] {
            assert!(text(&error).contains(part), "{code}: {}", text(&error));
        }
    }
    // The rejection is returned even if the instance type cannot be read.
    setup.configure(&json!({"denied": ["DescribeInstances"]}));
    reject_attach(&setup, "InvalidInstanceType.NotSupportDiskCategory", 403);
    let error = publish(&setup.disks, &single_node(&disk, &node_one()))
        .await
        .unwrap_err();
    assert!(text(&error).contains("of type unknown"), "{}", text(&error));
}

#[tokio::test(start_paused = true)]
async fn a_disk_bound_to_one_instance_is_rejected_with_the_reason() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    for (code, status, reason) in [
        ("DiskNotPortable", 403, "subscription"),
        (
            "DiskCategory.OperationNotSupported",
            400,
            "belong to one instance",
        ),
        (
            "InvalidOperation.OtherInstanceUnsupported",
            403,
            "stays with the first instance",
        ),
        ("DiskTypeViolation", 403, "system disk"),
    ] {
        reject_attach(&setup, code, status);
        let error = publish(&setup.disks, &single_node(&disk, &node_one()))
            .await
            .unwrap_err();
        assert_eq!(
            error.failure_kind(),
            FailureKind::FailedPrecondition,
            "{code}"
        );
        for part in [disk.as_str(), "i-one", reason, code] {
            assert!(text(&error).contains(part), "{code}: {}", text(&error));
        }
    }
    assert_eq!(setup.row(&disk)["attachments"], Value::Array(vec![]));
}

#[tokio::test(start_paused = true)]
async fn an_unmanaged_disk_can_be_attached_and_detached_but_not_deleted() {
    let setup = Setup::new(&[]);
    let disk = setup.unmanaged_disk(diskplugin::model::Tags::new()).await;
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    publish(&setup.disks, &single_node(&disk, &node_one()))
        .await
        .unwrap();
    setup.detach(&disk, &node_one()).await;
    let error = setup
        .disks
        .provisioner
        .delete(minutes(1), &disk)
        .await
        .unwrap_err();
    assert!(error.failure() == Failure::NotOwned, "{error:?}");
    // The cluster tag transfers the ownership to this cluster.
    let tags = [(tag::CLUSTER.to_owned(), "test".to_owned())].into();
    let request = diskplugin::cloud::TagResources {
        targets: diskplugin::cloud::TagTarget::Disks(vec![disk.clone()]),
        tags,
    };
    let ecs: &dyn diskplugin::cloud::EcsApi = &setup.cloud.ecs();
    ecs.tag_resources(minutes(1), &request).await.unwrap();
    setup.delete(&disk).await;
}
