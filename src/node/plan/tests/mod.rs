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

fn stage_request(access: &Access, read_only: bool) -> StageRequest {
    StageRequest {
        volume: Volume::new("d-bp1".parse().unwrap(), None),
        staging: "/staging".parse().unwrap(),
        access: access.clone(),
        read_only,
        device_read_only: false,
        tuning: Tuning::default(),
    }
}

/// Plans staging with the default filesystem parameters.
fn stage(access: &Access, read_only: bool, observed: &StageObservation) -> Plan {
    super::stage(&stage_request(access, read_only), observed)
}

fn publish(access: &Access, read_only: bool, observed: &PublishObservation) -> Plan {
    let request = PublishRequest {
        volume: Volume::new("d-bp1".parse().unwrap(), None),
        staging: "/staging".parse().unwrap(),
        target: "/target".parse().unwrap(),
        access: access.clone(),
        read_only,
        single_target: false,
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
    mount_access(Ext4, "")
}

fn mount_access(filesystem: Filesystem, flags: &str) -> Access {
    let flags = Some(flags.to_owned()).filter(|flags| !flags.is_empty());
    Access::Mount {
        filesystem,
        flags: MountFlags::new(flags).unwrap(),
    }
}

fn stage_observation(content: impl Into<Option<Content>>) -> StageObservation {
    StageObservation {
        rejects_writes: false,
        partition_grows: false,
        device: disk("vdb", 16, "bp1"),
        staging: path_state("/staging", Entry::Directory, None),
        elsewhere: Vec::new(),
        content: content.into(),
        format_record: FormatRecord::None,
        mounted_size: Ok(None),
        ext_grows_mounted: false,
    }
}

fn filesystem_content(filesystem: Filesystem, bytes: u64) -> Content {
    Content::Filesystem {
        filesystem,
        size: Some(Bytes(bytes)),
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

/// The names of the steps, or the message of the error.
fn outcome(plan: Plan) -> String {
    let steps = match plan {
        Ok(steps) => steps,
        Err(error) => return error.to_string(),
    };
    let name = |step: &Step| match step {
        Step::SetReadOnly(true) => "setro",
        Step::SetReadOnly(false) => "setrw",
        Step::Wipe => "wipe",
        Step::RemoveFormatRecord => "remove-format-record",
        Step::Format { .. } => "format",
        Step::Check(..) => "check",
        Step::GrowUnmounted(..) => "grow-unmounted",
        Step::MakeDirectory(_) => "make-directory",
        Step::MakeFile(_) => "make-file",
        Step::Mount(request) if request.read_only => "mount-ro",
        Step::Mount(_) => "mount",
        Step::GrowPartition => "grow-partition",
        Step::GrowMounted(..) => "grow-mounted",
        Step::Bind { .. } => "bind",
        Step::BindDevice(_) => "bind-device",
        Step::Restrict { flags, .. } if flags.to_string() == "ro" => "remount-ro",
        Step::Restrict { flags, .. } if flags.read_only() => "restrict-ro",
        Step::Restrict { .. } => "restrict",
    };
    steps.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn publish_observation(target: Entry, staged: Option<&str>) -> PublishObservation {
    let device = disk("vdb", 16, "bp1");
    let staged = staged.map(|options| mount_of(&device, "/staging", options));
    PublishObservation {
        rejects_writes: false,
        staging: path_state("/staging", Entry::Directory, staged),
        device,
        target: path_state("/target", target, None),
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
    assert_eq!(steps, [Step::GrowMounted(Ext4, "/staging".into())]);
    let refused = expand(&device, &mounts[..1], small, false);
    assert_error(&refused, Failure::ReadOnlyUnsupported, "is mounted read-only");
    assert_eq!(expand(&device, &mounts[..1], Some(Bytes(GIB)), false), Ok(Vec::new()));
}
