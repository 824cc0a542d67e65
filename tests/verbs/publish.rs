//! Publishing for a use: shared or alone, written or only read, and what is rejected for good.
//!
//! Defects of a driver in use elsewhere that these tests show to be absent, beside those in `attach.rs`,
//! `attach_wait.rs`, `detach.rs`, `turn.rs` and `unreachable.rs`:
//! * a full node is `RESOURCE_EXHAUSTED` with the counts, not `INTERNAL`;
//! * a category that the node's type does not take is told as such, by the code the cloud really sends;
//! * raw block honours read-only (with `src/node/plan/tests.rs`), and read-only is published;
//! * every access mode is either served or rejected with its reason.

use serde_json::{Value, json};

use diskplugin::disk::{DiskServices, Error, FailureKind, NodeAccess, PublishRequest};
use diskplugin::model::{Disk, DiskId, Failure, InstanceId, tag};

use crate::kit::{Setup, minutes, node_one, node_two, text};

fn node(n: usize) -> InstanceId {
    format!("i-{n}").parse().unwrap()
}

fn wanted(disk: &DiskId, node: &InstanceId) -> PublishRequest {
    PublishRequest {
        disk: disk.clone(),
        node: node.clone(),
        read_only: false,
        access: NodeAccess::SingleNode,
        multi_attach: false,
    }
}

fn shared(disk: &DiskId, node: &InstanceId) -> PublishRequest {
    PublishRequest {
        access: NodeAccess::MultiNode,
        multi_attach: true,
        ..wanted(disk, node)
    }
}

async fn publish(disks: &DiskServices, wanted: &PublishRequest) -> Result<Disk, Error> {
    disks.attacher.publish(minutes(1), wanted).await
}

fn rejected(setup: &Setup, code: &str, status: u16) {
    let kind = json!({"code": {"status": status, "code": code}});
    setup.fault("AttachDisk", &kind);
}

fn marks(setup: &Setup, disk: &DiskId) -> Vec<String> {
    let row = setup.row(disk);
    let tags = row["tags"].as_object().unwrap().iter();
    tags.filter(|(key, value)| key.starts_with(tag::READ_ONLY_ON) && *value == "true")
        .map(|(key, _)| key.trim_start_matches(tag::READ_ONLY_ON).to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn sixteen_nodes_share_a_disk_and_the_seventeenth_is_told_the_counts() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::with_multi_attach_nodes(17, &["--attach-delay=2s", stale]);
        let disk = setup.multi_attach_disk().await;
        for n in 0..16 {
            let row = publish(&setup.disks, &shared(&disk, &node(n))).await;
            let row = row.unwrap_or_else(|error| panic!("{n} {stale}: {}", text(&error)));
            assert!(row.is_in_use_on(&node(n)));
            let holders = setup.attachments(&disk);
            assert_eq!(holders.len(), n + 1, "{stale}");
            assert!(
                holders.iter().all(|(_, link)| link == "Attached"),
                "{holders:?}"
            );
        }
        // As old as the reads may be, the count in the text is of the disk as it was described.
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        let error = publish(&setup.disks, &shared(&disk, &node(16)))
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
        let holders = setup.attachments(&disk);
        assert_eq!(holders.len(), 15, "{stale}");
        assert!(holders.iter().all(|(holder, _)| holder != "i-3"));
        assert!(
            publish(&setup.disks, &shared(&disk, &node(16)))
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
async fn a_disk_of_one_node_is_never_tried_on_a_second_one_for_a_shared_use() {
    let setup = Setup::with_multi_attach_nodes(2, &[]);
    let disk = setup.disk("pvc-1").await;
    publish(&setup.disks, &wanted(&disk, &node(0)))
        .await
        .unwrap();
    setup.cloud.clear_calls();
    let error = publish(&setup.disks, &shared(&disk, &node(1)))
        .await
        .unwrap_err();
    assert_eq!(error.failure(), Failure::MultiAttachDisabled, "{error:?}");
    assert_eq!(error.failure_kind(), FailureKind::InvalidArgument);
    assert!(text(&error).contains("multiAttach"), "{}", text(&error));
    assert_eq!(setup.calls("AttachDisk"), 0);
    assert_eq!(setup.attachments(&disk).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_shared_disk_that_one_node_uses_alone_is_not_given_to_a_second_one() {
    for multi_attach in [true, false] {
        let setup = Setup::with_multi_attach_nodes(2, &["--attach-delay=1s"]);
        let disk = setup.multi_attach_disk().await;
        publish(&setup.disks, &wanted(&disk, &node(0)))
            .await
            .unwrap();
        let second = PublishRequest {
            multi_attach,
            ..wanted(&disk, &node(1))
        };
        let error = publish(&setup.disks, &second).await.unwrap_err();
        let Error::InUseElsewhere { holder, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(holder, &node(0));
        let held = [("i-0".to_owned(), "Attached".to_owned())];
        assert_eq!(
            setup.attachments(&disk),
            held,
            "multi_attach: {multi_attach}"
        );
        // A disk that is known to be multi-attach is checked before it is attached.
        assert_eq!(setup.calls("AttachDisk"), if multi_attach { 1 } else { 2 });
        assert!(publish(&setup.disks, &second).await.is_err());
    }
}

#[tokio::test(start_paused = true)]
async fn of_nodes_with_one_writer_a_second_writer_is_refused_and_readers_are_not() {
    let setup = Setup::with_multi_attach_nodes(4, &[]);
    let disk = setup.multi_attach_disk().await;
    let one_writer = |n, read_only| PublishRequest {
        access: NodeAccess::MultiNodeSingleWriter,
        read_only,
        ..shared(&disk, &node(n))
    };
    publish(&setup.disks, &one_writer(0, true)).await.unwrap();
    publish(&setup.disks, &one_writer(1, false)).await.unwrap();
    publish(&setup.disks, &one_writer(2, true)).await.unwrap();
    // Also after a restart: which nodes only read is written on the disk.
    let restarted = setup.restarted();
    let error = publish(&restarted, &one_writer(3, false))
        .await
        .unwrap_err();
    assert_eq!(error.failure(), Failure::WriterConflict, "{error:?}");
    let holder = format!("node {} may write", node(1));
    assert!(text(&error).contains(&holder), "{}", text(&error));
    assert!(publish(&restarted, &one_writer(1, false)).await.is_ok());
    assert!(publish(&restarted, &one_writer(3, true)).await.is_ok());
    assert_eq!(setup.attachments(&disk).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn who_only_reads_is_written_on_the_disk_before_it_is_attached_and_taken_off_after() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    setup.cloud.clear_calls();
    let reader = PublishRequest {
        read_only: true,
        ..wanted(&disk, &node_one())
    };
    publish(&setup.disks, &reader).await.unwrap();
    let calls = setup.cloud.calls();
    let writes: Vec<_> = calls.iter().map(|call| call.action.as_str()).collect();
    let at = |action| writes.iter().position(|one| *one == action).unwrap();
    assert!(at("TagResources") < at("AttachDisk"), "{writes:?}");
    assert_eq!(marks(&setup, &disk), ["i-one"]);
    setup.detach(&disk, &node_one()).await;
    assert!(marks(&setup, &disk).is_empty());
    // Who writes costs no call more than before.
    setup.cloud.clear_calls();
    publish(&setup.disks, &wanted(&disk, &node_one()))
        .await
        .unwrap();
    assert_eq!(
        (setup.calls("AttachDisk"), setup.calls("TagResources")),
        (1, 0)
    );
    assert_eq!(setup.cloud.calls()[0].action, "AttachDisk");
}

#[tokio::test(start_paused = true)]
async fn another_use_on_the_same_node_is_told_from_a_repetition_also_after_a_restart() {
    for stale in ["--stale=0s", "--stale=2s"] {
        for first in [false, true] {
            let setup = Setup::new(&[stale]);
            let disk = setup.disk("pvc-1").await;
            let want = |read_only| PublishRequest {
                read_only,
                ..wanted(&disk, &node_one())
            };
            publish(&setup.disks, &want(first)).await.unwrap();
            let other = publish(&setup.disks, &want(!first)).await.unwrap_err();
            assert_eq!(
                other.failure_kind(),
                FailureKind::AlreadyExists,
                "{stale} {first}"
            );
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            let restarted = setup.restarted();
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            let again = publish(&restarted, &want(first)).await;
            assert!(again.is_ok(), "{stale} {first}: {again:?}");
            let other = publish(&restarted, &want(!first)).await.unwrap_err();
            let failure = other.failure();
            assert_eq!(failure, Failure::AttachModeConflict, "{stale} {first}");
            assert_eq!(setup.attachments(&disk).len(), 1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_to_any_call_of_a_read_only_publication_is_made_good_by_the_repeat() {
    for action in ["TagResources", "AttachDisk"] {
        for loss in ["reset-before", "reset-after", "internal-error-after"] {
            let setup = Setup::new(&[]);
            let disk = setup.disk("pvc-1").await;
            setup.fault(action, &json!(loss));
            let reader = PublishRequest {
                read_only: true,
                ..wanted(&disk, &node_one())
            };
            let _ = publish(&setup.disks, &reader).await;
            let again = publish(&setup.restarted(), &reader).await;
            assert!(again.is_ok(), "{action} {loss}: {again:?}");
            assert_eq!(marks(&setup, &disk), ["i-one"], "{action} {loss}");
            // And one that never came about does not make a writer a reader.
            setup.detach(&disk, &node_one()).await;
            let full = json!({"code": {"status": 403, "code": "InstanceDiskLimitExceeded"}});
            setup.fault("AttachDisk", &full);
            assert!(publish(&setup.disks, &reader).await.is_err());
            publish(&setup.disks, &wanted(&disk, &node_one()))
                .await
                .unwrap();
            assert!(marks(&setup, &disk).is_empty(), "{action} {loss}");
            assert!(
                publish(&setup.disks, &wanted(&disk, &node_one()))
                    .await
                    .is_ok()
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_stays_fails_the_unpublication_and_one_left_over_goes_before_a_writer_comes() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    let reader = PublishRequest {
        read_only: true,
        ..wanted(&disk, &node_one())
    };
    publish(&setup.disks, &reader).await.unwrap();
    setup.fault("UntagResources", &json!("internal-error"));
    let off = setup
        .disks
        .attacher
        .detach(minutes(1), &disk, &node_one())
        .await;
    assert!(off.is_err() && setup.attachments(&disk).is_empty());
    setup.detach(&disk, &node_one()).await;
    assert!(marks(&setup, &disk).is_empty());
    rejected(&setup, "InstanceDiskLimitExceeded", 403);
    publish(&setup.disks, &reader).await.unwrap_err();
    assert_eq!(marks(&setup, &disk), ["i-one"]);
    setup.cloud.clear_calls();
    let writer = PublishRequest {
        multi_attach: true,
        ..wanted(&disk, &node_one())
    };
    publish(&setup.disks, &writer).await.unwrap();
    let calls = setup.cloud.calls();
    let at = |action| calls.iter().position(|call| call.action == action).unwrap();
    assert!(at("UntagResources") < at("AttachDisk"));
    assert!(marks(&setup, &disk).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_full_node_is_told_with_what_it_takes_and_has() {
    let setup = Setup::new(&["--disk-quantity=3"]);
    for name in ["pvc-1", "pvc-2"] {
        let disk = setup.disk(name).await;
        publish(&setup.disks, &wanted(&disk, &node_one()))
            .await
            .unwrap();
    }
    let disk = setup.disk("pvc-3").await;
    setup.cloud.clear_calls();
    publish(&setup.disks, &wanted(&disk, &node_two()))
        .await
        .unwrap();
    assert_eq!(setup.calls("DescribeInstanceTypes"), 0);
    setup.detach(&disk, &node_two()).await;
    let error = publish(&setup.disks, &wanted(&disk, &node_one()))
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
async fn a_type_that_does_not_take_the_disk_is_a_precondition_that_names_both() {
    let setup = Setup::new(&[]);
    let disk = setup.disk("pvc-1").await;
    for (code, status) in [
        ("InvalidInstanceType.NotSupportDiskCategory", 403),
        ("InvalidInstanceType.NvmeUnsupported", 403),
        ("InvalidInstanceType.NotSupportMultiAttachDisk", 403),
        ("InvalidOperation.InstanceTypeNotSupport", 400),
    ] {
        rejected(&setup, code, status);
        let error = publish(&setup.disks, &wanted(&disk, &node_one()))
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
    // An explanation that cannot be had keeps nobody from the rejection.
    setup.configure(&json!({"denied": ["DescribeInstances"]}));
    rejected(&setup, "InvalidInstanceType.NotSupportDiskCategory", 403);
    let error = publish(&setup.disks, &wanted(&disk, &node_one()))
        .await
        .unwrap_err();
    assert!(text(&error).contains("of type unknown"), "{}", text(&error));
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_one_instance_is_refused_with_the_reason() {
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
        rejected(&setup, code, status);
        let error = publish(&setup.disks, &wanted(&disk, &node_one()))
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
async fn a_disk_that_somebody_else_made_is_attached_and_detached_but_not_deleted() {
    let setup = Setup::new(&[]);
    let disk = setup.unmanaged_disk(diskplugin::model::Tags::new()).await;
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    publish(&setup.disks, &wanted(&disk, &node_one()))
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
    // Its owner lets the cluster have it.
    let tags = [(tag::CLUSTER.to_owned(), "test".to_owned())].into();
    let request = diskplugin::cloud::TagResources {
        targets: diskplugin::cloud::TagTarget::Disks(vec![disk.clone()]),
        tags,
    };
    let ecs: &dyn diskplugin::cloud::EcsApi = &setup.cloud.ecs();
    ecs.tag_resources(minutes(1), &request).await.unwrap();
    setup.delete(&disk).await;
}
