//! Tests of unstage and unpublish, and of the rollback of a failed publish.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_failed_read_only_publish_leaves_no_writable_mount() {
    let (fake, node) = world(staged());
    fake.state().failing_call = Some("restrict");
    node.publisher.publish(publish_request(true), soon()).await.unwrap_err();
    assert_eq!(
        take_calls(&fake),
        "mkdir /target, bind /target, restrict /target, unmount /target, remove /target"
    );
    let points: Vec<_> = (fake.state().mounts.iter()).map(|mount| mount.point.clone()).collect();
    assert_eq!(points, [PathBuf::from("/staging")]);
}

#[tokio::test(start_paused = true)]
async fn stacked_mounts_are_removed_before_the_directory() {
    let (fake, node) = world(staged());
    publish(&node).await.unwrap();
    let copy = fake.state().mounts.last().cloned();
    fake.state().mounts.extend(copy);
    take_calls(&fake);
    unpublish(&node).await.unwrap();
    assert_eq!(take_calls(&fake), "unmount /target, unmount /target, remove /target");
}

#[tokio::test(start_paused = true)]
async fn unstage_waits_for_a_busy_volume_and_then_names_the_holder() {
    for (busy, free_after) in [(true, None), (true, Some(9)), (false, None), (false, Some(9))] {
        let (fake, node) = world(staged());
        fake.state().free_after = free_after;
        let held = if busy {
            fake.state().busy.insert("/staging".into());
            "the mount at /staging"
        } else {
            fake.state().in_use = true;
            "/dev/vdb (254:16)"
        };
        let deadline = soon();
        let unstaged = node.unmounter.unstage(path_request("/staging"), deadline).await;
        assert!(!deadline.has_passed());
        if free_after.is_some() {
            unstaged.unwrap();
            assert_eq!(take_calls(&fake), "unmount /staging, remove /staging, flush /dev/vdb");
        } else {
            let expected = format!("volume d-bp1: unstaging is refused: {held} is in use by device dm-7");
            assert_eq!(error_chain(&unstaged.unwrap_err()), expected);
        }
    }
}

/// Without the recorded serial, a disk in use could count as absent.
#[tokio::test(start_paused = true)]
async fn a_volume_whose_record_cannot_be_read_is_not_unstaged() {
    let (fake, node) = world(staged());
    std::fs::create_dir_all(state_dir(&fake).join("volume/d-bp1.json")).unwrap();
    let unstaged = unstage(&node).await;
    assert!(matches!(unstaged, Err(Error::Host { .. })), "{unstaged:?}");
    assert_eq!(take_calls(&fake), "");
}

#[tokio::test(start_paused = true)]
async fn unstage_fails_while_an_unmounted_device_is_in_use() {
    for lost_serial in [false, true] {
        let (fake, node) = world(with_disk(Content::Blank));
        if lost_serial {
            stage(&node).await.unwrap();
            fake.state().mounts.clear();
            fake.state().devices[0].serial = None;
        }
        fake.state().in_use = true;
        let error = unstage(&node).await.unwrap_err();
        assert_eq!(error.failure(), Failure::DeviceInUse, "{error:?}");
        fake.state().in_use = false;
        unstage(&node).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_busy_mount_of_a_removed_device_is_detached() {
    let (fake, node) = world(FakeState {
        devices: Vec::new(),
        ..staged()
    });
    fake.state().busy.insert("/staging".into());
    unstage(&node).await.unwrap();
    assert_eq!(take_calls(&fake), "detach /staging, remove /staging");
}

#[tokio::test(start_paused = true)]
async fn a_device_without_a_node_is_not_treated_as_removed() {
    let (fake, node) = world(FakeState {
        lacks_nodes: true,
        ..staged()
    });
    let error = error_chain(&unstage(&node).await.unwrap_err());
    assert!(error.contains("still exists in sysfs"), "{error}");
    fake.state().devices.clear();
    unstage(&node).await.unwrap();
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
    let error = unstage(&node).await.unwrap_err();
    assert_eq!(error.failure(), Failure::DeviceUnidentified);
    assert!(error.to_string().contains("/dev/vdb (254:16)"), "{error}");
    // Mounted, too: the mount table shows a device that may be any disk.
    let mounts = ["/staging", "/target"].map(|point| mount_of(&disk("vdb", 16, ""), point, "rw"));
    fake.state().mounts = mounts.to_vec();
    for result in [unstage(&node).await, unpublish(&node).await] {
        assert_eq!(result.unwrap_err().failure(), Failure::DeviceUnidentified);
    }
    assert_eq!(take_calls(&fake), "");
    // Once the device reports another serial, the disk is absent.
    fake.state().mounts.clear();
    fake.state().devices[1] = disk("vdb", 16, "bp2");
    unstage(&node).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_device_with_an_unknown_serial_is_identified_by_the_staging_record() {
    let (fake, node) = world(with_disk(Content::Blank));
    stage(&node).await.unwrap();
    publish(&node).await.unwrap();
    fake.state().devices[0] = pending("vdb", 16);
    take_calls(&fake);
    // The record of another volume does not block this one.
    let mut other = path_request("/other");
    other.volume = Volume::new("d-bp2".parse().unwrap(), None);
    node.unmounter.unstage(other, soon()).await.unwrap();
    assert_eq!(take_calls(&fake), "");
    unpublish(&node).await.unwrap();
    unstage(&node).await.unwrap();
    assert_eq!(
        take_calls(&fake),
        "unmount /target, remove /target, unmount /staging, remove /staging, flush /dev/vdb"
    );
}

#[tokio::test(start_paused = true)]
async fn the_staging_directory_is_removed_before_the_device_is_released() {
    // A mount namespace with a copy of the mount keeps the device in use until the directory is removed.
    let (fake, node) = world(FakeState {
        in_use_until_removed: Some("/staging".into()),
        ..staged()
    });
    unstage(&node).await.unwrap();
    assert_eq!(take_calls(&fake), "unmount /staging, remove /staging, flush /dev/vdb");
}

#[tokio::test(start_paused = true)]
async fn a_published_volume_is_not_unstaged() {
    let (fake, node) = world(staged());
    publish(&node).await.unwrap();
    take_calls(&fake);
    let error = error_chain(&unstage(&node).await.unwrap_err());
    assert!(error.contains("/dev/vdb (254:16) is mounted at /target"), "{error}");
    // Also if nothing is mounted at the staging path.
    fake.state().mounts.remove(0);
    unstage(&node).await.unwrap_err();
    assert_eq!(take_calls(&fake), "");
}

#[tokio::test(start_paused = true)]
async fn the_last_read_only_target_of_a_block_volume_sets_the_device_writable() {
    let (fake, node) = world(with_disk(Content::Blank));
    for target in ["/target", "/other"] {
        let request = PublishRequest {
            access: Access::Block,
            target: target.parse().unwrap(),
            ..publish_request(true)
        };
        node.publisher.publish(request, soon()).await.unwrap();
        fake.state().devices[0].read_only = true;
    }
    for (target, calls) in [
        ("/other", "unmount /other, flush /dev/vdb, remove /other"),
        (
            "/target",
            "unmount /target, flush /dev/vdb, blockdev --setrw /dev/vdb, remove /target",
        ),
    ] {
        take_calls(&fake);
        node.unmounter.unpublish(path_request(target), soon()).await.unwrap();
        assert_eq!(take_calls(&fake), calls);
    }
}
