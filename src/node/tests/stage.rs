//! Tests of stage.

use super::*;
use crate::linux::Device;

#[tokio::test(start_paused = true)]
async fn a_blank_disk_is_read_formatted_and_mounted_once() {
    let (fake, node) = world(with_disk(Content::Blank));
    for _ in 0..2 {
        stage(&node).await.unwrap();
    }
    assert_eq!(
        take_calls(&fake),
        format!("{MKFS_EXT4}, flush /dev/vdb, mkdir /staging, mount /staging")
    );
    assert_eq!(fake.state().content_reads, 1);
}

#[tokio::test(start_paused = true)]
async fn a_disk_published_as_block_device_is_not_formatted() {
    let device = disk("vdb", 16, "bp1");
    let mut raw = mount_of(&device, "/raw", "rw");
    raw.kind = "devtmpfs".to_owned();
    raw.is_of_dev = true;
    raw.root = "/vdb".into();
    let (fake, node) = world(FakeState {
        mounts: vec![raw],
        ..with_disk(Content::Blank)
    });
    let refused = stage(&node).await.unwrap_err();
    assert_eq!(refused.failure(), Failure::DeviceInUse, "{refused}");
    assert!(refused.to_string().ends_with("staging is refused"), "{refused}");
    assert_eq!(take_calls(&fake), "");
}

#[tokio::test(start_paused = true)]
async fn a_failed_probe_fails_stage_without_changes() {
    let (fake, node) = world(FakeState {
        content: None,
        ..with_disk(Content::Blank)
    });
    assert_eq!(
        error_chain(&stage(&node).await.unwrap_err()),
        "volume d-bp1: staging failed: the content of /dev/vdb is ambiguous: injected error"
    );
    assert_eq!(take_calls(&fake), "");
}

#[tokio::test(start_paused = true)]
async fn a_device_replaced_under_its_name_is_neither_formatted_nor_mounted() {
    for content in [Content::Blank, filesystem(Filesystem::Ext4, None)] {
        let (fake, node) = world(FakeState {
            next_devices: Some(vec![disk("vdb", 16, "bp2")]),
            ..with_disk(content)
        });
        let error = error_chain(&stage(&node).await.unwrap_err());
        assert!(
            error.contains("/dev/vdb has changed during the call: it is now") && error.contains("bp2"),
            "{error}"
        );
        assert_eq!(take_calls(&fake), "");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_mount_removes_only_a_directory_that_the_call_created() {
    for (exists, last_call) in [(false, "remove /staging"), (true, "mount /staging")] {
        let (fake, node) = world(with_disk(Content::Blank));
        if exists {
            fake.state().entries.insert("/staging".into(), Entry::Directory);
        }
        fake.state().failing_call = Some("mount");
        stage(&node).await.unwrap_err();
        assert_eq!(fake.state().calls.last().unwrap(), last_call);
    }
}

#[tokio::test(start_paused = true)]
async fn paths_outside_the_kubelet_directory_are_rejected() {
    let (fake, node) = world_below("/var/lib/kubelet", staged());
    let mut request = publish_request(false);
    request.staging = "/var/lib/kubelet/plugins/x".parse().unwrap();
    request.target = request.target.with_field("target_path");
    for (result, path) in [
        (stage(&node).await, "path /staging"),
        (node.publisher.publish(request, soon()).await, "target_path /target"),
        (unpublish(&node).await, "path /target"),
        (unstage(&node).await, "path /staging"),
    ] {
        let error = result.unwrap_err();
        assert_eq!(error.failure(), Failure::PathNotAllowed);
        assert_eq!(
            error.to_string(),
            format!("volume d-bp1: {path} is not below --kubelet-dir /var/lib/kubelet")
        );
    }
    let error = node.health.stats(&path_request("/staging"), soon()).await.unwrap_err();
    assert_eq!(error.failure(), Failure::NoSuchResource, "{error:?}");
    assert!(error.to_string().contains("--kubelet-dir"), "{error}");
    assert_eq!(take_calls(&fake), "");
}

#[tokio::test(start_paused = true)]
async fn a_concurrent_call_for_a_volume_fails_with_busy() {
    let (fake, node) = world(FakeState {
        devices: Vec::new(),
        ..with_disk(Content::Blank)
    });
    let first = tokio::time::timeout(Duration::from_secs(1), stage(&node));
    assert!(first.await.is_err(), "the caller gave up");
    let second = stage(&node).await;
    assert_eq!(second.unwrap_err().failure(), Failure::OperationPending);
    fake.state().devices.push(disk("vdb", 16, "bp1"));
    node.tasks().wait().await;
    assert_eq!(fake.state().mounts.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn stage_fails_if_the_superblock_of_the_mounted_filesystem_cannot_be_read() {
    let (fake, node) = world(FakeState {
        failing_call: Some("read"),
        ..staged()
    });
    let error = stage(&node).await.unwrap_err();
    assert_eq!(
        error_chain(&error),
        format!("volume d-bp1: staging failed: {UNREADABLE}")
    );
    assert_eq!(take_calls(&fake), "");
    // The reason why no call can succeed has precedence.
    fake.state().mounts[0].super_options = "ro,errors=remount-ro".to_owned();
    assert_eq!(stage(&node).await.unwrap_err().failure(), Failure::RemountedReadOnly);
}

/// The kernel adds a disk, then its partitions.
#[tokio::test(start_paused = true)]
async fn the_requested_partition_may_appear_after_the_disk() {
    let whole = disk("vdb", 16, "bp1");
    for is_late in [true, false] {
        let (fake, node) = world(FakeState {
            stated_size: Some(partition(&whole).size),
            ..with_disk(filesystem(Filesystem::Ext4, partition(&whole).size.0))
        });
        let mut request = stage_request();
        request.tuning.partition = true;
        let late = async {
            if is_late {
                tokio::time::sleep(Duration::from_secs(1)).await;
                fake.state().devices[0].partitions = vec![partition(&whole)];
            }
        };
        let deadline = Deadline::after(Duration::from_secs(60));
        let start = Instant::now();
        let (staged, ()) = tokio::join!(node.stager.stage(request, deadline), late);
        assert_eq!(staged.is_ok(), is_late, "{staged:?}");
        // A disk without partitions is rejected long before the deadline.
        assert!(start.elapsed() < Duration::from_secs(6));
    }
}

#[tokio::test(start_paused = true)]
async fn a_partitioned_or_held_disk_is_only_staged_as_block_device() {
    let whole = disk("vdb", 16, "bp1");
    let partitioned = Device {
        partitions: vec![partition(&whole), partition(&whole)],
        ..whole.clone()
    };
    let held = Device {
        holders: vec!["dm-0".to_owned()],
        ..whole
    };
    for (device, users) in [(partitioned, "vdb1 (1072693248 bytes), vdb1"), (held, "dm-0")] {
        let (fake, node) = world(FakeState {
            devices: vec![device],
            ..with_disk(Content::Blank)
        });
        let error = error_chain(&stage(&node).await.unwrap_err());
        assert!(error.contains(users), "{error}");
        assert_eq!(take_calls(&fake), "");
        let request = StageRequest {
            access: Access::Block,
            ..stage_request()
        };
        node.stager.stage(request, soon()).await.unwrap();
    }
}

/// The error of staging an existing filesystem.
async fn stage_error(filesystem: Filesystem, flag: &str, read_only: bool, state: FakeState) -> Error {
    let (_, node) = world(state);
    let mut request = stage_request();
    request.access = Access::Mount {
        filesystem,
        flags: MountFlags::new(Some(flag.to_owned()).filter(|flag| !flag.is_empty())).unwrap(),
    };
    request.read_only = read_only;
    node.stager.stage(request, soon()).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn rejected_mount_options_are_named_and_the_kernel_log_has_the_reason() {
    for (flag, failure, part) in [
        ("commit=x", Failure::MountOptionsRejected, "\"commit=x\""),
        ("", Failure::HostError, "cannot mount the ext4 on /dev/vdb"),
    ] {
        let state = FakeState {
            mount_errno: Some(nix::errno::Errno::EINVAL as i32),
            ..with_disk(filesystem(Filesystem::Ext4, 1 << 30))
        };
        let error = stage_error(Filesystem::Ext4, flag, false, state).await;
        assert_eq!(error.failure(), failure);
        let text = error_chain(&error);
        for part in [part, "its log has the reason", "Invalid"] {
            assert!(text.contains(part), "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_btrfs_with_a_log_on_a_read_only_device_is_rejected_with_the_option() {
    for (device_is_read_only, has_btrfs_log, failure) in [
        ("1", true, Failure::JournalNotReplayed),
        ("1", false, Failure::HostError),
        ("0", true, Failure::HostError),
    ] {
        let state = FakeState {
            mount_errno: Some(nix::errno::Errno::EIO as i32),
            has_btrfs_log,
            block_settings: HashMap::from([("ro".to_owned(), device_is_read_only.to_owned())]),
            ..with_disk(filesystem(Filesystem::Btrfs, 1 << 30))
        };
        let error = stage_error(Filesystem::Btrfs, "noatime", true, state).await;
        assert_eq!(error.failure(), failure);
        let is_named = error.to_string().contains("rescue=nologreplay");
        assert_eq!(is_named, failure == Failure::JournalNotReplayed, "{error}");
    }
}

/// The device of the mount was removed, and the disk has come back with another name.
#[tokio::test(start_paused = true)]
async fn a_dead_mount_at_the_staging_path_is_removed() {
    let (fake, node) = world(FakeState {
        mounts: vec![mount_of(&disk("vdc", 32, "bp1"), "/staging", "rw")],
        entries: [("/staging".into(), Entry::Directory)].into(),
        ..with_disk(filesystem(Filesystem::Ext4, None))
    });
    stage(&node).await.unwrap();
    let calls = take_calls(&fake);
    assert!(
        calls.starts_with("unmount /staging, ") && calls.ends_with(", mount /staging"),
        "{calls}"
    );
    assert_eq!(fake.state().mounts.len(), 1);
}
