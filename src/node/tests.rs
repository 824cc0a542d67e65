//! The verbs on a host of plain values: what is done in which order, and what is left when a step
//! fails.

use std::time::Duration;

use super::*;
use crate::base::Deadline;
use crate::base::chain::chain;
use crate::host::fake::{Fake, State, disk, mount_of};
use crate::host::{Content, Entry};
use crate::model::{Bytes, Filesystem, MountFlags};

fn world(state: State) -> (Arc<Fake>, Arc<Node>) {
    let fake = Arc::new(Fake::new(state));
    let settings = Settings {
        id: "i-1".parse().unwrap(),
        zone: "z-a".parse().unwrap(),
        max_volumes: Some(7),
        categories: Vec::new(),
        device_dir: None,
    };
    let host = Arc::clone(&fake);
    let exec = Arc::clone(&fake);
    (fake, Arc::new(Node::new(host, exec, settings)))
}

fn with_disk(content: Content) -> State {
    State {
        devices: vec![disk("vdb", 16, "bp1")],
        content: Some(content),
        ..State::default()
    }
}

fn staged() -> State {
    State {
        mounts: vec![mount_of(&disk("vdb", 16, "bp1"), "/staging", "rw")],
        ..with_disk(Content::Blank)
    }
}

fn volume() -> Volume {
    Volume::new("d-bp1".parse().unwrap(), None)
}

fn access() -> Access {
    Access::Mount {
        filesystem: Filesystem::Ext4,
        flags: MountFlags::default(),
    }
}

fn stage_request() -> Stage {
    Stage {
        volume: volume(),
        staging: "/staging".parse().unwrap(),
        access: access(),
        read_only: false,
        locked: false,
    }
}

fn publish_request(read_only: bool) -> Publish {
    Publish {
        volume: volume(),
        staging: "/staging".parse().unwrap(),
        target: "/target".parse().unwrap(),
        access: access(),
        read_only,
        single_target: false,
    }
}

fn leave(path: &str) -> Leave {
    Leave {
        volume: volume(),
        path: path.parse().unwrap(),
    }
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(5))
}

#[tokio::test(start_paused = true)]
async fn a_blank_disk_is_formatted_and_mounted_once() {
    let (fake, node) = world(with_disk(Content::Blank));
    for _ in 0..2 {
        node.stage(stage_request(), soon()).await.unwrap();
    }
    assert_eq!(
        fake.state().calls,
        [
            "mkfs.ext4 -q -m 0 -E nodiscard /dev/vdb",
            "mkdir /staging",
            "mount /staging"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_fails_is_an_error_and_nothing_is_done() {
    let (fake, node) = world(State {
        content: None,
        ..with_disk(Content::Blank)
    });
    let error = node.stage(stage_request(), soon()).await.unwrap_err();
    assert_eq!(
        chain(&error),
        "volume d-bp1: staging failed: the content of /dev/vdb is unclear: the test says so"
    );
    assert!(fake.state().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_name_that_another_disk_has_by_now_is_neither_formatted_nor_mounted() {
    let filesystem = Content::Filesystem {
        filesystem: Filesystem::Ext4,
        size: None,
    };
    for content in [Content::Blank, filesystem] {
        let (fake, node) = world(State {
            next_devices: Some(vec![disk("vdb", 16, "bp2")]),
            ..with_disk(content)
        });
        let error = chain(&node.stage(stage_request(), soon()).await.unwrap_err());
        assert!(
            error.contains("/dev/vdb has changed under the call: it is now")
                && error.contains("bp2"),
            "{error}"
        );
        assert!(fake.state().calls.is_empty(), "{:?}", fake.state().calls);
    }
}

#[tokio::test(start_paused = true)]
async fn what_comes_onto_a_blank_disk_before_it_is_formatted_is_not_formatted_over() {
    let (fake, node) = world(State {
        next_content: Some(Content::Foreign {
            what: "a gpt partition table".to_owned(),
        }),
        ..with_disk(Content::Blank)
    });
    let error = node.stage(stage_request(), soon()).await.unwrap_err();
    assert_eq!(
        chain(&error),
        "volume d-bp1: staging failed: /dev/vdb has changed under the call: it was blank, now it \
         holds a gpt partition table"
    );
    assert!(fake.state().calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_damaged_filesystem_is_not_mounted() {
    let content = Content::Filesystem {
        filesystem: Filesystem::Ext4,
        size: Some(Bytes(1 << 30)),
    };
    for (code, mounted) in [(0, true), (1, true), (4, false), (12, false)] {
        let (fake, node) = world(with_disk(content.clone()));
        fake.state().exit_codes.insert("e2fsck", code);
        let staged = node.stage(stage_request(), soon()).await;
        assert_eq!(staged.is_ok(), mounted, "{code}: {staged:?}");
        let has_mount = !fake.state().mounts.is_empty();
        assert_eq!(has_mount, mounted, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_mount_takes_back_the_directory_that_this_call_made_and_no_other() {
    let (fake, node) = world(with_disk(Content::Blank));
    fake.state().fails = Some("mount");
    node.stage(stage_request(), soon()).await.unwrap_err();
    let calls = fake.state().calls.clone();
    assert_eq!(calls.last().map(String::as_str), Some("remove /staging"));

    let (fake, node) = world(with_disk(Content::Blank));
    fake.state()
        .entries
        .insert("/staging".into(), Entry::Directory);
    fake.state().fails = Some("mount");
    node.stage(stage_request(), soon()).await.unwrap_err();
    let calls = fake.state().calls.clone();
    assert_eq!(calls.last().map(String::as_str), Some("mount /staging"));
}

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
    node.unpublish(leave("/target")).await.unwrap();
    assert_eq!(
        fake.state().calls,
        ["unmount /target", "unmount /target", "remove /target"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_device_that_comes_late_is_waited_for() {
    let (fake, node) = world(State {
        devices: Vec::new(),
        ..with_disk(Content::Blank)
    });
    let late = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        fake.state().devices.push(disk("vdb", 16, "bp1"));
    };
    let (staged, ()) = tokio::join!(node.stage(stage_request(), soon()), late);
    staged.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_device_that_does_not_come_is_told_by_the_deadline() {
    let (_, node) = world(State {
        devices: vec![disk("vda", 0, "system")],
        ..State::default()
    });
    let deadline = soon();
    let error = node.stage(stage_request(), deadline).await.unwrap_err();
    assert!(!deadline.is_over());
    assert_eq!(
        error.to_string(),
        "volume d-bp1: no device with serial bp1 by the deadline: there are /dev/vda (254:0) with \
         serial system"
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_call_for_a_volume_is_told_to_come_again_and_the_first_goes_on() {
    let (fake, node) = world(State {
        devices: Vec::new(),
        ..with_disk(Content::Blank)
    });
    let first = tokio::time::timeout(Duration::from_secs(1), node.stage(stage_request(), soon()));
    assert!(first.await.is_err(), "the caller gave up");
    let second = node.stage(stage_request(), soon()).await;
    assert!(matches!(second, Err(Error::Busy { .. })), "{second:?}");
    fake.state().devices.push(disk("vdb", 16, "bp1"));
    node.tasks().finish().await;
    assert_eq!(fake.state().mounts.len(), 1);
}

fn expand_request(required: u64) -> Expand {
    Expand {
        volume: volume(),
        path: "/staging".parse().unwrap(),
        required: Some(Bytes(required)),
        block: false,
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_capability_is_named_where_growing_fails_for_it() {
    let (fake, node) = world(State {
        stated_size: Some(Bytes(1 << 29)),
        ..staged()
    });
    fake.state().exit_codes.insert("resize2fs", 1);
    let error = node.expand(expand_request(0), soon()).await.unwrap_err();
    assert!(matches!(error, Error::NoCapability { .. }), "{error}");
    fake.state().may_grow_mounted_ext = true;
    let error = node.expand(expand_request(0), soon()).await.unwrap_err();
    assert_eq!(
        chain(&error),
        "volume d-bp1: cannot grow the filesystem: `resize2fs /dev/vdb`: exit code Some(1): so it said"
    );
}

#[tokio::test(start_paused = true)]
async fn growing_waits_for_the_device() {
    let (fake, node) = world(State {
        stated_size: Some(Bytes(1 << 30)),
        ..staged()
    });
    let error = node.expand(expand_request(2 << 30), soon()).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "volume d-bp1: /dev/vdb (254:16) still has 1073741824 bytes at the deadline, 2147483648 \
         bytes are wanted"
    );
    let late = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        fake.state().devices[0].size = Bytes(2 << 30);
    };
    let (size, ()) = tokio::join!(node.expand(expand_request(2 << 30), soon()), late);
    assert_eq!(size.unwrap(), Bytes(2 << 30));
    assert_eq!(fake.state().calls, ["resize2fs /dev/vdb"]);
}

#[tokio::test(start_paused = true)]
async fn another_volume_at_the_path_is_not_this_one() {
    let (fake, node) = world(staged());
    fake.state().devices.push(disk("vdc", 32, "bp2"));
    let request = Stats {
        volume: Volume::new("d-bp2".parse().unwrap(), None),
        path: "/staging".parse().unwrap(),
    };
    let error = node.stats(&request, soon()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "volume d-bp2 is not at /staging: /dev/vdb is mounted there"
    );
}

fn health(places: &[&str]) -> Health {
    Health {
        volume: volume(),
        places: places.iter().map(|path| path.parse().unwrap()).collect(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_well_tells_nothing_with_or_without_its_path() {
    let (_, node) = world(staged());
    for places in [&[][..], &["/staging"]] {
        assert_eq!(node.health(&health(places)).await.unwrap(), []);
    }
    assert_eq!(node.storage_health().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_mount_whose_device_is_gone_is_told_and_a_volume_elsewhere_is_not_here() {
    let state = State {
        devices: Vec::new(),
        ..staged()
    };
    let (_, node) = world(state);
    let found = node
        .health(&health(&["/target", "/staging"]))
        .await
        .unwrap();
    assert_eq!(found[0].reason(), "DeviceGone");
    assert!(found[0].to_string().contains("/staging"), "{}", found[0]);
    let missing = node.health(&health(&[])).await.unwrap_err();
    assert!(matches!(missing, Error::NotHere { .. }), "{missing:?}");
}

#[tokio::test(start_paused = true)]
async fn a_filesystem_that_the_kernel_made_read_only_is_told() {
    let mut mount = mount_of(&disk("vdb", 16, "bp1"), "/staging", "rw,relatime");
    mount.super_options = "ro,errors=remount-ro".to_owned();
    let state = State {
        mounts: vec![mount],
        ..with_disk(Content::Blank)
    };
    let (_, node) = world(state);
    let found = node.health(&health(&[])).await.unwrap();
    assert_eq!(found[0].reason(), "RemountedReadOnly");
}
