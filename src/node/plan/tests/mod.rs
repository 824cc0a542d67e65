use std::path::Path;

use super::*;
use crate::linux::fake::{disk, mount_of};
use crate::linux::{Content, Device, Entry, Mount};
use crate::model::Filesystem::{Btrfs, Ext3, Ext4, Xfs};
use crate::model::{Bytes, Failure, Filesystem, Fsck, MountFlags, Serial, Tuning};
use crate::node::format_record::FormatRecord;
use crate::node::request::Volume;

mod mount_owner;
mod publish;
mod stage;

const GIB: u64 = 1 << 30;

/// The access that a call requests.
#[derive(Debug, Clone, Copy)]
struct RequestedAccess<'a> {
    access: &'a Access,
    read_only: bool,
    device_read_only: bool,
}

/// Plans staging with the default filesystem parameters.
fn stage(requested: RequestedAccess<'_>, observed: &StageObservation) -> Plan {
    stage_tuned(requested, &Tuning::default(), observed)
}

fn stage_tuned(requested: RequestedAccess<'_>, tuning: &Tuning, observed: &StageObservation) -> Plan {
    let request = StageRequest {
        volume: Volume::new("d-bp1".parse().unwrap(), None),
        staging: "/staging".parse().unwrap(),
        access: requested.access.clone(),
        read_only: requested.read_only,
        device_read_only: requested.device_read_only,
        tuning: tuning.clone(),
    };
    super::stage(&request, observed)
}

fn publish(requested: RequestedAccess<'_>, single_target: bool, observed: &PublishObservation) -> Plan {
    let request = PublishRequest {
        volume: Volume::new("d-bp1".parse().unwrap(), None),
        staging: "/staging".parse().unwrap(),
        target: "/target".parse().unwrap(),
        access: requested.access.clone(),
        read_only: requested.read_only,
        single_target,
    };
    super::publish(&request, observed)
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
    mount_access(Ext4)
}

fn mount_access(filesystem: Filesystem) -> Access {
    Access::Mount {
        filesystem,
        flags: MountFlags::default(),
    }
}

fn stage_observation(content: Content) -> StageObservation {
    StageObservation {
        rejects_writes: false,
        partition_grows: false,
        device: disk("vdb", 16, "bp1"),
        staging: path_state("/staging", Entry::Directory, None),
        elsewhere: Vec::new(),
        content: Some(content),
        format_record: FormatRecord::None,
        mounted_size: None,
        ext_grows_mounted: false,
    }
}

fn filesystem_content(filesystem: Filesystem, bytes: u64) -> Content {
    Content::Filesystem {
        filesystem,
        size: Some(Bytes(bytes)),
    }
}

fn requested(access: &Access, read_only: bool) -> RequestedAccess<'_> {
    RequestedAccess {
        access,
        read_only,
        device_read_only: false,
    }
}

#[track_caller]
fn assert_error(plan: &Plan, failure: Failure, part: &str) {
    let error = plan.as_ref().unwrap_err();
    assert!(
        error.failure == failure && error.to_string().contains(part),
        "{error:?}"
    );
}

fn step_names(steps: &[Step]) -> Vec<&'static str> {
    steps
        .iter()
        .map(|step| match step {
            Step::SetReadOnly(true) => "setro",
            Step::SetReadOnly(false) => "setrw",
            Step::Wipe => "wipe",
            Step::RemoveFormatRecord => "remove-format-record",
            Step::Format { .. } => "format",
            Step::Check(..) => "check",
            Step::GrowUnmounted(..) => "grow-unmounted",
            Step::MakeDirectory(_) => "make-directory",
            Step::MakeFile(_) => "make-file",
            Step::Mount { read_only: true, .. } => "mount-ro",
            Step::Mount { .. } => "mount",
            Step::GrowPartition => "grow-partition",
            Step::GrowMounted { .. } => "grow-mounted",
            Step::Bind { .. } => "bind",
            Step::BindDevice(_) => "bind-device",
            Step::RemountReadOnly(_) => "remount-ro",
            Step::Restrict { .. } => "restrict",
        })
        .collect()
}

fn publish_observation(target: PathState, staged: Option<&str>) -> PublishObservation {
    let device = disk("vdb", 16, "bp1");
    PublishObservation {
        rejects_writes: false,
        staging: path_state(
            "/staging",
            Entry::Directory,
            staged.map(|options| mount_of(&device, "/staging", options)),
        ),
        device,
        target,
        filesystem_mounts: Vec::new(),
        other_targets: Vec::new(),
    }
}

#[test]
fn expand_uses_a_writable_mount() {
    let device = disk("vdb", 16, "bp1");
    let mounts = [mount_of(&device, "/target", "ro"), mount_of(&device, "/staging", "rw")];
    let small = Some(Bytes(GIB / 2));
    let steps = expand(&device, &mounts, small, false).unwrap();
    assert_eq!(
        steps,
        [Step::GrowMounted {
            filesystem: Ext4,
            mount_point: "/staging".into()
        }]
    );
    let refused = expand(&device, &mounts[..1], small, false);
    assert_error(&refused, Failure::ReadOnlyUnsupported, "is mounted read-only");
    assert_eq!(expand(&device, &mounts[..1], Some(Bytes(GIB)), false), Ok(Vec::new()));
}
