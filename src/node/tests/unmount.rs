//! Tests of unstage and unpublish, and of the rollback of a failed publish.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_failed_read_only_publish_leaves_no_writable_mount() {
    let (fake, node) = world(staged());
    fake.state().failing_call = Some("remount-ro");
    node.publisher.publish(publish_request(true), soon()).await.unwrap_err();
    assert_eq!(
        fake.state().calls,
        [
            "mkdir /target",
            "bind /target",
            "remount-ro /target",
            "unmount /target",
            "remove /target"
        ]
    );
    let points: Vec<_> = (fake.state().mounts.iter()).map(|mount| mount.point.clone()).collect();
    assert_eq!(points, [PathBuf::from("/staging")]);
}

#[tokio::test(start_paused = true)]
async fn stacked_mounts_are_removed_before_the_directory() {
    let (fake, node) = world(staged());
    node.publisher.publish(publish_request(false), soon()).await.unwrap();
    let copy = fake.state().mounts.last().cloned();
    fake.state().mounts.extend(copy);
    fake.state().calls.clear();
    node.unpublisher.unpublish(unpublish_request(), soon()).await.unwrap();
    assert_eq!(
        fake.state().calls,
        ["unmount /target", "unmount /target", "remove /target"]
    );
}

#[tokio::test(start_paused = true)]
async fn unstage_waits_for_a_busy_volume_and_then_names_the_holder() {
    for (busy, free_after) in [(true, None), (true, Some(9)), (false, None), (false, Some(9))] {
        let (fake, node) = world(staged());
        fake.state().free_after = free_after;
        if busy {
            fake.state().busy.insert("/staging".into());
        } else {
            fake.state().in_use = true;
        }
        let deadline = soon();
        let unstaged = node.unstager.unstage(unstage_request(), deadline).await;
        assert!(!deadline.has_passed());
        match (free_after, unstaged) {
            (Some(_), result) => {
                result.unwrap();
                let calls = fake.state().calls.clone();
                assert_eq!(calls, ["unmount /staging", "remove /staging", "flush /dev/vdb"]);
            }
            (None, result) => {
                let error = error_chain(&result.unwrap_err());
                let held = if busy {
                    "the mount at /staging"
                } else {
                    "/dev/vdb (254:16)"
                };
                assert_eq!(
                    error,
                    format!("volume d-bp1: unstaging is refused: {held} is in use by device dm-7")
                );
            }
        }
    }
}

/// Without the recorded serial, a disk in use could count as absent.
#[tokio::test(start_paused = true)]
async fn a_volume_whose_record_cannot_be_read_is_not_unstaged() {
    let (fake, node) = world(staged());
    let records = fake.state().state_dir.as_ref().unwrap().path().join("volume");
    std::fs::create_dir_all(records.join("d-bp1.json")).unwrap();
    let unstaged = node.unstager.unstage(unstage_request(), soon()).await;
    assert!(matches!(unstaged, Err(Error::Host { .. })), "{unstaged:?}");
    assert!(fake.state().calls.is_empty(), "{:?}", fake.state().calls);
}

#[tokio::test(start_paused = true)]
async fn unstage_fails_while_an_unmounted_device_is_in_use() {
    let (fake, node) = world(with_disk(Content::Blank));
    fake.state().in_use = true;
    let error = node.unstager.unstage(unstage_request(), soon()).await.unwrap_err();
    assert_eq!(error.failure(), Failure::DeviceInUse, "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn unstage_finds_a_device_that_lost_its_serial() {
    let (fake, node) = world(with_disk(Content::Blank));
    node.stager.stage(stage_request(), soon()).await.unwrap();
    {
        let mut state = fake.state();
        state.mounts.clear();
        state.devices[0].serial = None;
        state.in_use = true;
    }
    let error = node.unstager.unstage(unstage_request(), soon()).await.unwrap_err();
    assert_eq!(error.failure(), Failure::DeviceInUse, "{error:?}");
    fake.state().in_use = false;
    node.unstager.unstage(unstage_request(), soon()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_busy_mount_of_a_removed_device_is_detached() {
    let (fake, node) = world(FakeState {
        devices: Vec::new(),
        ..staged()
    });
    fake.state().busy.insert("/staging".into());
    node.unstager.unstage(unstage_request(), soon()).await.unwrap();
    assert_eq!(fake.state().calls, ["detach /staging", "remove /staging"]);
}

#[tokio::test(start_paused = true)]
async fn a_device_without_a_node_is_not_treated_as_removed() {
    let (fake, node) = world(FakeState {
        lacks_nodes: true,
        ..staged()
    });
    let unstaged = node.unstager.unstage(unstage_request(), soon()).await;
    let error = error_chain(&unstaged.unwrap_err());
    assert!(error.contains("still exists in sysfs"), "{error}");
    fake.state().devices.clear();
    node.unstager.unstage(unstage_request(), soon()).await.unwrap();
}

/// A device whose disk does not report its serial.
fn pending(name: &str, minor: u64) -> crate::linux::Device {
    crate::linux::Device {
        serial_pending: true,
        ..disk(name, minor, "")
    }
}

#[tokio::test(start_paused = true)]
async fn a_device_with_an_unknown_serial_is_not_an_absent_disk() {
    let (fake, node) = world(FakeState {
        devices: vec![disk("vda", 0, "system"), pending("vdb", 16)],
        ..FakeState::default()
    });
    let error = node.unstager.unstage(unstage_request(), soon()).await;
    let error = error.unwrap_err();
    assert_eq!(error.failure(), crate::model::Failure::DeviceUnidentified);
    assert!(error.to_string().contains("/dev/vdb (254:16)"), "{error}");
    // Mounted, too: the mount table shows a device that may be any disk.
    let mut mounted = mount_of(&disk("vdb", 16, ""), "/staging", "rw");
    fake.state().mounts = vec![mounted.clone()];
    mounted.point = "/target".into();
    fake.state().mounts.push(mounted);
    for error in [
        node.unstager.unstage(unstage_request(), soon()).await,
        node.unpublisher.unpublish(unpublish_request(), soon()).await,
    ] {
        let error = error.unwrap_err();
        assert_eq!(error.failure(), crate::model::Failure::DeviceUnidentified);
    }
    assert!(fake.state().calls.is_empty(), "{:?}", fake.state().calls);
    // Once the device reports another serial, the disk is absent.
    fake.state().mounts.clear();
    fake.state().devices[1] = disk("vdb", 16, "bp2");
    node.unstager.unstage(unstage_request(), soon()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_device_with_an_unknown_serial_is_identified_by_the_staging_record() {
    let (fake, node) = world(with_disk(Content::Blank));
    node.stager.stage(stage_request(), soon()).await.unwrap();
    node.publisher.publish(publish_request(false), soon()).await.unwrap();
    fake.state().devices[0] = pending("vdb", 16);
    fake.state().calls.clear();
    node.unpublisher.unpublish(unpublish_request(), soon()).await.unwrap();
    node.unstager.unstage(unstage_request(), soon()).await.unwrap();
    assert_eq!(
        fake.state().calls,
        [
            "unmount /target",
            "remove /target",
            "unmount /staging",
            "remove /staging",
            "flush /dev/vdb"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_disk_of_another_staging_record_does_not_block_unstage() {
    let (fake, node) = world(with_disk(Content::Blank));
    node.stager.stage(stage_request(), soon()).await.unwrap();
    fake.state().devices[0] = pending("vdb", 16);
    let other = UnstageRequest {
        volume: Volume::new("d-bp2".parse().unwrap(), None),
        staging: "/other".parse().unwrap(),
    };
    node.unstager.unstage(other, soon()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_staging_directory_is_removed_before_the_device_is_released() {
    // A mount namespace with a copy of the mount keeps the device in use until the directory is removed.
    let (fake, node) = world(FakeState {
        in_use_until_removed: Some("/staging".into()),
        ..staged()
    });
    fake.state().entries.insert("/staging".into(), Entry::Directory);
    node.unstager.unstage(unstage_request(), soon()).await.unwrap();
    assert_eq!(
        fake.state().calls,
        ["unmount /staging", "remove /staging", "flush /dev/vdb"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_published_volume_is_not_unstaged() {
    let (fake, node) = world(staged());
    node.publisher.publish(publish_request(false), soon()).await.unwrap();
    fake.state().calls.clear();
    let error = node.unstager.unstage(unstage_request(), soon()).await;
    let error = error_chain(&error.unwrap_err());
    assert!(error.contains("/dev/vdb (254:16) is mounted at /target"), "{error}");
    // Also if nothing is mounted at the staging path.
    fake.state().mounts.remove(0);
    node.unstager.unstage(unstage_request(), soon()).await.unwrap_err();
    assert!(fake.state().calls.is_empty(), "{:?}", fake.state().calls);
}

#[tokio::test(start_paused = true)]
async fn the_last_read_only_target_of_a_block_volume_sets_the_device_writable() {
    let (fake, node) = world(with_disk(Content::Blank));
    let request = |target: &str, read_only| PublishRequest {
        access: Access::Block,
        target: target.parse().unwrap(),
        ..publish_request(read_only)
    };
    for target in ["/target", "/other"] {
        let published = node.publisher.publish(request(target, true), soon()).await;
        published.unwrap();
        fake.state().devices[0].read_only = true;
    }
    fake.state().calls.clear();
    for target in ["/other", "/target"] {
        let request = UnpublishRequest {
            target: target.parse().unwrap(),
            ..unpublish_request()
        };
        node.unpublisher.unpublish(request, soon()).await.unwrap();
    }
    assert_eq!(
        fake.state().calls,
        [
            "unmount /other",
            "flush /dev/vdb",
            "remove /other",
            "unmount /target",
            "flush /dev/vdb",
            "blockdev --setrw /dev/vdb",
            "remove /target"
        ]
    );
}
