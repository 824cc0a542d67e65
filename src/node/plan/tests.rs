use std::path::Path;

use super::*;
use crate::host::fake::{disk, mount_of};
use crate::host::{Content, Device, Entry, Mount};
use crate::model::Filesystem::{Btrfs, Ext4, Xfs};
use crate::model::{Bytes, Filesystem, Fsck, MountFlags, Serial, Tuning};
use crate::node::journal::Journal;

mod leave;
mod publish;
mod stage;

const GIB: u64 = 1 << 30;

/// As a class that says nothing of filesystems has it.
fn stage(wanted: Wanted<'_>, seen: &StageSeen) -> Plan {
    super::stage(wanted, &Tuning::default(), seen)
}

fn path_state(path: &str, entry: Entry, mount: Option<Mount>) -> PathState {
    PathState {
        path: path.into(),
        entry,
        mount,
        dead: false,
    }
}

fn ext4() -> Access {
    mounted(Ext4)
}

fn mounted(filesystem: Filesystem) -> Access {
    Access::Mount {
        filesystem,
        flags: MountFlags::default(),
    }
}

fn seen(content: Content) -> StageSeen {
    StageSeen {
        device: disk("vdb", 16, "bp1"),
        staging: path_state("/staging", Entry::Directory, None),
        elsewhere: Vec::new(),
        content: Some(content),
        journal: Journal::Nothing,
        mounted_size: None,
        ext_grows_mounted: false,
    }
}

fn holds(filesystem: Filesystem, bytes: u64) -> Content {
    Content::Filesystem {
        filesystem,
        size: Some(Bytes(bytes)),
    }
}

fn wanted(access: &Access, read_only: bool) -> Wanted<'_> {
    Wanted {
        access,
        read_only,
        locked: false,
    }
}

/// The steps' names: enough to see what is done in which order.
fn names(steps: &[Step]) -> Vec<&'static str> {
    steps
        .iter()
        .map(|step| match step {
            Step::SetDeviceReadOnly(true) => "setro",
            Step::SetDeviceReadOnly(false) => "setrw",
            Step::Wipe => "wipe",
            Step::ForgetFormat => "forget-format",
            Step::Format { .. } => "format",
            Step::Check(..) => "check",
            Step::GrowUnmounted(..) => "grow-unmounted",
            Step::MakeDirectory(_) => "mkdir",
            Step::MakeFile(_) => "touch",
            Step::Mount {
                read_only: true, ..
            } => "mount-ro",
            Step::Mount { .. } => "mount",
            Step::GrowMounted { .. } => "grow-mounted",
            Step::Bind { .. } => "bind",
            Step::BindDevice(_) => "bind-device",
            Step::RemountReadOnly(_) => "remount-ro",
            Step::Restrict { .. } => "restrict",
            Step::Unmount(_) => "unmount",
            Step::Detach(_) => "detach",
            Step::Flush => "flush",
            Step::Release => "release",
            Step::Remove(_) => "remove",
        })
        .collect()
}

fn published(target: PathState, staged: Option<&str>) -> PublishSeen {
    let device = disk("vdb", 16, "bp1");
    PublishSeen {
        staging: path_state(
            "/staging",
            Entry::Directory,
            staged.map(|options| mount_of(&device, "/staging", options)),
        ),
        device,
        target,
        staged: Vec::new(),
        others: Vec::new(),
    }
}

#[test]
fn a_filesystem_grows_where_it_is_mounted_writable() {
    let device = disk("vdb", 16, "bp1");
    let mounts = [
        mount_of(&device, "/target", "ro"),
        mount_of(&device, "/staging", "rw"),
    ];
    let small = Some(Bytes(GIB / 2));
    let steps = expand(&device, &mounts, small).unwrap();
    assert_eq!(
        steps,
        [Step::GrowMounted {
            filesystem: Ext4,
            at: "/staging".into()
        }]
    );
    assert!(matches!(
        expand(&device, &mounts[..1], small),
        Err(Refusal::GrowReadOnly { .. })
    ));
    assert_eq!(
        expand(&device, &mounts[..1], Some(Bytes(GIB))),
        Ok(Vec::new())
    );
}
