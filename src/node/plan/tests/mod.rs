use std::path::Path;

use super::*;
use crate::linux::fake::{disk, mount_of};
use crate::linux::{Content, Device, Entry, Mount};
use crate::model::Filesystem::{Btrfs, Ext3, Ext4, Xfs};
use crate::model::{Bytes, Filesystem, Fsck, MountFlags, Serial, Tuning};
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

fn step_names(steps: &[Step]) -> Vec<&'static str> {
    steps
        .iter()
        .map(|step| match step {
            Step::Device(DeviceStep::SetReadOnly(true)) => "setro",
            Step::Device(DeviceStep::SetReadOnly(false)) => "setrw",
            Step::Device(DeviceStep::Wipe) => "wipe",
            Step::Device(DeviceStep::RemoveFormatRecord) => "remove-format-record",
            Step::Device(DeviceStep::Format { .. }) => "format",
            Step::Device(DeviceStep::Check(..)) => "check",
            Step::Device(DeviceStep::GrowUnmounted(..)) => "grow-unmounted",
            Step::Path(PathStep::MakeDirectory(_)) => "make-directory",
            Step::Path(PathStep::MakeFile(_)) => "make-file",
            Step::Device(DeviceStep::Mount { read_only: true, .. }) => "mount-ro",
            Step::Device(DeviceStep::Mount { .. }) => "mount",
            Step::Device(DeviceStep::GrowPartition) => "grow-partition",
            Step::Device(DeviceStep::GrowMounted { .. }) => "grow-mounted",
            Step::Path(PathStep::Bind { .. }) => "bind",
            Step::Device(DeviceStep::Bind(_)) => "bind-device",
            Step::Path(PathStep::RemountReadOnly(_)) => "remount-ro",
            Step::Path(PathStep::Restrict { .. }) => "restrict",
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
        [Step::from(DeviceStep::GrowMounted {
            filesystem: Ext4,
            mount_point: "/staging".into()
        })]
    );
    assert!(matches!(
        expand(&device, &mounts[..1], small, false),
        Err(PlanError::GrowReadOnly { .. })
    ));
    assert_eq!(expand(&device, &mounts[..1], Some(Bytes(GIB)), false), Ok(Vec::new()));
}
