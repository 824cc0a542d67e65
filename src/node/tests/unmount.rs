//! Tests of unstage and unpublish, and of the rollback of a failed publish.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_failed_read_only_publish_leaves_no_writable_mount() {
    let (fake, node) = world(staged());
    fake.state().failing_call = Some("remount-ro");
    node.publish(publish_request(true), soon())
        .await
        .unwrap_err();
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
    let points: Vec<_> = (fake.state().mounts.iter())
        .map(|mount| mount.point.clone())
        .collect();
    assert_eq!(points, [PathBuf::from("/staging")]);
}

#[tokio::test(start_paused = true)]
async fn stacked_mounts_are_removed_before_the_directory() {
    let (fake, node) = world(staged());
    node.publish(publish_request(false), soon()).await.unwrap();
    let copy = fake.state().mounts.last().cloned();
    fake.state().mounts.extend(copy);
    fake.state().calls.clear();
    node.unpublish(unpublish_request(), soon()).await.unwrap();
    assert_eq!(
        fake.state().calls,
        ["unmount /target", "unmount /target", "remove /target"]
    );
}

#[tokio::test(start_paused = true)]
async fn unstage_waits_for_a_busy_volume_and_then_names_the_holder() {
    for (busy, free_after) in [
        (true, None),
        (true, Some(9)),
        (false, None),
        (false, Some(9)),
    ] {
        let (fake, node) = world(staged());
        fake.state().free_after = free_after;
        if busy {
            fake.state().busy.insert("/staging".into());
        } else {
            fake.state().in_use = true;
        }
        let deadline = soon();
        let unstaged = node.unstage(unstage_request(), deadline).await;
        assert!(!deadline.has_passed());
        match (free_after, unstaged) {
            (Some(_), result) => {
                result.unwrap();
                let calls = fake.state().calls.clone();
                assert_eq!(
                    calls,
                    ["unmount /staging", "flush /dev/vdb", "remove /staging"]
                );
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

#[tokio::test(start_paused = true)]
async fn unstage_fails_while_an_unmounted_device_is_in_use() {
    let (fake, node) = world(with_disk(Content::Blank));
    fake.state().in_use = true;
    let error = node.unstage(unstage_request(), soon()).await.unwrap_err();
    assert!(matches!(error, Error::DeviceInUse { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn unstage_finds_a_device_that_lost_its_serial() {
    let (fake, node) = world(with_disk(Content::Blank));
    node.stage(stage_request(), soon()).await.unwrap();
    {
        let mut state = fake.state();
        state.mounts.clear();
        state.devices[0].serial = None;
        state.in_use = true;
    }
    let error = node.unstage(unstage_request(), soon()).await.unwrap_err();
    assert!(matches!(error, Error::DeviceInUse { .. }), "{error:?}");
    fake.state().in_use = false;
    node.unstage(unstage_request(), soon()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_busy_mount_of_a_removed_device_is_detached() {
    let (fake, node) = world(State {
        devices: Vec::new(),
        ..staged()
    });
    fake.state().busy.insert("/staging".into());
    node.unstage(unstage_request(), soon()).await.unwrap();
    assert_eq!(fake.state().calls, ["detach /staging", "remove /staging"]);
}

#[tokio::test(start_paused = true)]
async fn a_device_without_a_node_is_not_treated_as_removed() {
    let (fake, node) = world(State {
        lacks_nodes: true,
        ..staged()
    });
    let unstaged = node.unstage(unstage_request(), soon()).await;
    let error = error_chain(&unstaged.unwrap_err());
    assert!(error.contains("still exists in sysfs"), "{error}");
    fake.state().devices.clear();
    node.unstage(unstage_request(), soon()).await.unwrap();
}
