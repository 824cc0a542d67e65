//! ControllerPublishVolume: access modes, each supported or rejected with the reason, and disks that the driver does
//! not manage.

use crate::verbs::kit::*;

fn multi_node(disk: &DiskId, node: &InstanceId) -> PublishRequest {
    PublishRequest {
        access: NodeAccess::MultiNode,
        multi_attach: true,
        ..single_node(disk, node)
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_attaches_to_16_nodes_and_the_error_for_another_states_the_count() {
    for stale in ["--stale=0s", "--stale=2s"] {
        let setup = Setup::with_multi_attach_nodes(17, &["--attach-delay=2s", stale]);
        let disk = setup.multi_attach_disk().await;
        for n in 0..16 {
            let row = setup.publish(&multi_node(&disk, &node(n))).await;
            let row = row.unwrap_or_else(|error| panic!("{n} {stale}: {}", text(&error)));
            assert!(row.is_in_use_on(&node(n)));
            let attachments = setup.attachments(&disk);
            assert_eq!(attachments.len(), n + 1);
            assert!(
                attachments.iter().all(|(_, state)| state == "Attached"),
                "{attachments:?}"
            );
        }
        // The count in the message is from a read, so wait until reads are current.
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
        let error = setup.publish(&multi_node(&disk, &node(16))).await.unwrap_err();
        let parts = [disk.as_str(), "i-16", "16 nodes hold it", "DiskAttachedNumberExceeded"];
        assert_error(&error, FailureKind::ResourceExhausted, &parts);
        setup.detach(&disk, &node(3)).await;
        let attachments = setup.attachments(&disk);
        assert_eq!(attachments.len(), 15);
        assert!(attachments.iter().all(|(node, _)| node != "i-3"));
        assert!(setup.publish(&multi_node(&disk, &node(16))).await.is_ok());
        setup.disks.detacher.detach_everywhere(minutes(5), &disk).await.unwrap();
        assert!(setup.attachments(&disk).is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_multi_node_request_for_a_disk_without_multi_attach_is_rejected_without_a_call() {
    let setup = Setup::with_multi_attach_nodes(2, &[]);
    let disk = setup.disk("pvc-1").await;
    setup.publish(&single_node(&disk, &node(0))).await.unwrap();
    setup.cloud.clear_calls();
    let error = setup.publish(&multi_node(&disk, &node(1))).await.unwrap_err();
    assert_failure(&error, Failure::MultiAttachDisabled);
    assert_error(&error, FailureKind::InvalidArgument, &["multiAttach"]);
    assert_eq!(setup.calls("AttachDisk"), 0);
    assert_eq!(setup.attachments(&disk).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_multi_attach_disk_in_single_node_use_is_not_attached_to_a_second_node() {
    for multi_attach in [true, false] {
        let setup = Setup::with_multi_attach_nodes(2, &["--attach-delay=1s"]);
        let disk = setup.multi_attach_disk().await;
        setup.publish(&single_node(&disk, &node(0))).await.unwrap();
        let second = PublishRequest {
            multi_attach,
            ..single_node(&disk, &node(1))
        };
        let error = setup.publish(&second).await.unwrap_err();
        let Error::InUseElsewhere { holder, .. } = &error else {
            panic!("{error:?}")
        };
        assert_eq!(holder, &node(0));
        let attached = [("i-0".to_owned(), "Attached".to_owned())];
        assert_eq!(setup.attachments(&disk), attached, "multi_attach: {multi_attach}");
        // If the request marks the disk as multi-attach, the driver checks it before it attaches it.
        assert_eq!(setup.calls("AttachDisk"), if multi_attach { 1 } else { 2 });
        assert!(setup.publish(&second).await.is_err());
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
    setup.publish(&single_writer(0, true)).await.unwrap();
    setup.publish(&single_writer(1, false)).await.unwrap();
    setup.publish(&single_writer(2, true)).await.unwrap();
    // The tags of the disk record the readers, so the same applies after a restart.
    let restarted = setup.restarted();
    let error = restarted.publish(&single_writer(3, false)).await.unwrap_err();
    assert_failure(&error, Failure::WriterConflict);
    let holder = format!("node {} may write", node(1));
    assert_names(&error, &[&holder]);
    assert!(restarted.publish(&single_writer(1, false)).await.is_ok());
    assert!(restarted.publish(&single_writer(3, true)).await.is_ok());
    assert_eq!(setup.attachments(&disk).len(), 4);
}

#[tokio::test(start_paused = true)]
async fn readers_of_a_filesystem_share_a_disk_that_no_node_writes() {
    let setup = Setup::with_multi_attach_nodes(4, &[]);
    let disk = setup.multi_attach_disk().await;
    let reader = |n| PublishRequest {
        access: NodeAccess::MultiNodeReaders,
        read_only: true,
        ..multi_node(&disk, &node(n))
    };
    for n in [0, 1] {
        setup.publish(&reader(n)).await.unwrap();
    }
    setup.publish(&multi_node(&disk, &node(2))).await.unwrap();
    let error = setup.restarted().publish(&reader(3)).await.unwrap_err();
    assert_failure(&error, Failure::WriterConflict);
    assert_names(&error, &[&format!("node {} may write", node(2))]);
}

#[tokio::test(start_paused = true)]
async fn an_unmanaged_disk_can_be_attached_and_detached_but_not_deleted() {
    let setup = Setup::new(&[]);
    let disk = setup.unmanaged_disk(Tags::new()).await;
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    setup.publish(&single_node(&disk, &node_one())).await.unwrap();
    setup.detach(&disk, &node_one()).await;
    let error = setup.try_delete(minutes(1), &disk).await.unwrap_err();
    assert_failure(&error, Failure::NotOwned);
    // The cluster tag transfers the ownership to this cluster.
    let tags = [(tag::CLUSTER.to_owned(), "test".to_owned())].into();
    let request = ecs::TagResources {
        targets: ecs::TagTarget::Disks(vec![disk.clone()]),
        tags,
    };
    let ecs = client(&setup.cloud);
    ecs.tag_resources(minutes(1), &request).await.unwrap();
    setup.delete(&disk).await;
}
