//! Unstaging and unpublishing, and what a failed publish takes back.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_read_only_publish_that_fails_leaves_no_writable_mount() {
    let (fake, node) = world(staged());
    fake.state().fails = Some("remount-ro");
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
async fn mounts_on_top_of_each_other_come_off_before_the_directory_goes() {
    let (fake, node) = world(staged());
    node.publish(publish_request(false), soon()).await.unwrap();
    let copy = fake.state().mounts.last().cloned();
    fake.state().mounts.extend(copy);
    fake.state().calls.clear();
    node.unpublish(leave("/target"), soon()).await.unwrap();
    assert_eq!(
        fake.state().calls,
        ["unmount /target", "unmount /target", "remove /target"]
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_in_use_is_waited_for_and_then_told_with_who_uses_it() {
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
            fake.state().claimed = true;
        }
        let deadline = soon();
        let unstaged = node.unstage(leave("/staging"), deadline).await;
        assert!(!deadline.is_over());
        match (free_after, unstaged) {
            (Some(_), done) => {
                done.unwrap();
                let calls = fake.state().calls.clone();
                assert_eq!(
                    calls,
                    ["unmount /staging", "flush /dev/vdb", "remove /staging"]
                );
            }
            (None, done) => {
                let told = chain(&done.unwrap_err());
                let what = if busy {
                    "the mount at /staging"
                } else {
                    "/dev/vdb (254:16)"
                };
                assert_eq!(
                    told,
                    format!("volume d-bp1: unstaging is refused: {what} is in use by device dm-7")
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_unmounted_but_not_released_is_not_said_to_be_unstaged_the_next_time() {
    let (fake, node) = world(with_disk(Content::Blank));
    fake.state().claimed = true;
    let error = node.unstage(leave("/staging"), soon()).await.unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_does_not_tell_its_serial_is_not_absent_when_its_volume_is_unstaged() {
    let (fake, node) = world(with_disk(Content::Blank));
    node.stage(stage_request(), soon()).await.unwrap();
    {
        let mut state = fake.state();
        state.mounts.clear();
        state.devices[0].serial = None;
        state.claimed = true;
    }
    let error = node.unstage(leave("/staging"), soon()).await.unwrap_err();
    assert!(matches!(error, Error::InUse { .. }), "{error:?}");
    fake.state().claimed = false;
    node.unstage(leave("/staging"), soon()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_mount_without_a_device_is_detached_where_it_is_in_use() {
    let (fake, node) = world(State {
        devices: Vec::new(),
        ..staged()
    });
    fake.state().busy.insert("/staging".into());
    node.unstage(leave("/staging"), soon()).await.unwrap();
    assert_eq!(fake.state().calls, ["detach /staging", "remove /staging"]);
}

#[tokio::test(start_paused = true)]
async fn a_device_whose_node_is_missing_is_not_taken_for_one_that_is_gone() {
    let (fake, node) = world(State {
        lacks_nodes: true,
        ..staged()
    });
    let unstaged = node.unstage(leave("/staging"), soon()).await;
    let error = chain(&unstaged.unwrap_err());
    assert!(error.contains("the kernel still has it"), "{error}");
    fake.state().devices.clear();
    node.unstage(leave("/staging"), soon()).await.unwrap();
}
