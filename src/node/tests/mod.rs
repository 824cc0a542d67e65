//! Tests of the operations on a fake host: the order of the steps, and the state after a failed step.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::base::Deadline;
use crate::base::error_chain;
use crate::linux::fake::{FakeHost, FakeState, disk, mount_of, partition};
use crate::linux::{Capabilities, Content, Entry};
use crate::model::{Bytes, DriverName, Failure, Filesystem, Fsck, MountFlags, Tuning};

mod block_settings;
mod btrfs;
mod expand;
mod find;
mod format;
mod fsck;
mod health;
mod io_watch;
mod serial;
mod stage;
mod unmount;

const TOOL_MEMORY: Bytes = Bytes(256 << 20);

/// The command that creates an ext4 without parameters of a class.
const MKFS_EXT4: &str = "mkfs.ext4 -q -O none,has_journal,ext_attr,resize_inode,dir_index,filetype,sparse_super,\
                         large_file,extent,flex_bg,64bit,huge_file,dir_nlink,extra_isize,metadata_csum -m 0 \
                         -E nodiscard -e remount-ro /dev/vdb";

/// The error of a device whose superblock cannot be read.
const UNREADABLE: &str = "cannot read /dev/vdb: injected error";

fn world(state: FakeState) -> (Arc<FakeHost>, Arc<NodeServices>) {
    world_below("/", state)
}

pub(super) fn world_below(kubelet_dir: &str, mut state: FakeState) -> (Arc<FakeHost>, Arc<NodeServices>) {
    let kept = state.state_dir.take().unwrap_or_else(|| tempfile::tempdir().unwrap());
    let state_dir = kept.path().to_owned();
    state.state_dir = Some(kept);
    let fake = Arc::new(FakeHost::new(state));
    let node = restarted(&fake, kubelet_dir, &state_dir);
    (fake, node)
}

/// A new driver process on the host, with the records of the earlier one.
fn restarted(fake: &Arc<FakeHost>, kubelet_dir: &str, state_dir: &Path) -> Arc<NodeServices> {
    let settings = NodeSettings {
        id: "i-1".parse().unwrap(),
        zone: "z-a".parse().unwrap(),
        max_volumes: Some(7),
        categories: Vec::new(),
        instance_types: InstanceTypeSource::default(),
        device_dir: None,
        kubelet_dir: kubelet_dir.into(),
        state_dir: state_dir.to_owned(),
    };
    Arc::new(NodeServices::new(
        Arc::clone(fake) as _,
        Arc::clone(fake) as _,
        settings,
        DriverName::default(),
        Some(TOOL_MEMORY),
    ))
}

fn with_disk(content: Content) -> FakeState {
    FakeState {
        devices: vec![disk("vdb", 16, "bp1")],
        content: Some(content),
        ..FakeState::default()
    }
}

fn filesystem(filesystem: Filesystem, bytes: impl Into<Option<u64>>) -> Content {
    Content::Filesystem {
        filesystem,
        size: bytes.into().map(Bytes),
    }
}

fn staged() -> FakeState {
    FakeState {
        mounts: vec![mount_of(&disk("vdb", 16, "bp1"), "/staging", "rw")],
        entries: [("/staging".into(), Entry::Directory)].into(),
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

fn stage_request() -> StageRequest {
    StageRequest {
        volume: volume(),
        staging: "/staging".parse().unwrap(),
        access: access(),
        read_only: false,
        device_read_only: false,
        tuning: Tuning::default(),
    }
}

fn publish_request(read_only: bool) -> PublishRequest {
    PublishRequest {
        volume: volume(),
        staging: "/staging".parse().unwrap(),
        target: "/target".parse().unwrap(),
        access: access(),
        read_only,
        single_target: false,
    }
}

fn path_request(path: &str) -> PathRequest {
    PathRequest {
        volume: volume(),
        path: path.parse().unwrap(),
    }
}

async fn stage(node: &NodeServices) -> Result<()> {
    node.stager.stage(stage_request(), soon()).await
}

async fn publish(node: &NodeServices) -> Result<()> {
    node.publisher.publish(publish_request(false), soon()).await
}

async fn unpublish(node: &NodeServices) -> Result<()> {
    node.unmounter.unpublish(path_request("/target"), soon()).await
}

async fn unstage(node: &NodeServices) -> Result<()> {
    node.unmounter.unstage(path_request("/staging"), soon()).await
}

/// The calls since the last call of this function.
fn take_calls(fake: &FakeHost) -> String {
    std::mem::take(&mut fake.state().calls).join(", ")
}

fn set_block_setting(fake: &FakeHost, name: &str, value: &str) {
    fake.state().block_settings.insert(name.to_owned(), value.to_owned());
}

fn state_dir(fake: &FakeHost) -> PathBuf {
    fake.state().state_dir.as_ref().unwrap().path().to_owned()
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(5))
}
