//! Lifecycles of volumes on a node: attached, used and detached several times.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use diskplugin::csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use diskplugin::csi::proto::{
    CapacityRange, NodeExpandVolumeRequest, NodePublishVolumeRequest, NodeStageVolumeRequest,
    NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest, VolumeCapability,
};

use crate::common::rng::Rng;
use crate::common::shell::sh;
use crate::kill::disk::{Disk, Kind, MIB};
use crate::kill::invariants::FilesystemUuids;
use crate::kill::kubelet::{Kubelet, NodeCall, Outcome, RetryPolicy};
use crate::mounts::mounts;

/// Failures after which a call counts as failing permanently. Until then, a tool of a killed plugin may use the disk.
const MAX_FAILURES: u32 = 100;

const FOREIGN_DATA: &str = "FOREIGN_DATA";
const FORMAT_INTERRUPTED: &str = "format interrupted";
const DAMAGED: &str = "FILESYSTEM_DAMAGED";

/// The size in bytes that a filesystem may leave unused: less than a block group.
const MAX_UNUSED: u64 = 8 * MIB;

/// The number of events by name. Clones share the state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counters(Arc<Mutex<BTreeMap<&'static str, u32>>>);

impl Counters {
    fn increment(&self, name: &'static str) {
        *self.0.lock().unwrap().entry(name).or_default() += 1;
    }

    /// The number of disks whose mkfs was not completed: their records remain.
    pub(crate) fn interrupted_formats(&self) -> usize {
        let count = self.0.lock().unwrap().get(FORMAT_INTERRUPTED).copied();
        usize::try_from(count.unwrap_or_default()).unwrap()
    }
}

impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in self.0.lock().unwrap().iter() {
            write!(f, " {name}={count}")?;
        }
        Ok(())
    }
}

/// A node with concurrent volumes.
#[derive(Debug, Clone)]
pub(crate) struct TestNode {
    pub(crate) home: PathBuf,
    pub(crate) kubelet: Kubelet,
    pub(crate) uuids: FilesystemUuids,
    pub(crate) counters: Counters,
}

/// The outcome of one attachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RoundOutcome {
    Completed,
    /// The filesystem must be repaired before it can be staged.
    Damaged,
    /// The disk was detached after an interrupted mkfs and can no longer be staged.
    FormatInterrupted,
}

#[derive(Debug)]
struct Lifecycle<'a> {
    node: &'a TestNode,
    disk: Disk,
    rng: Rng,
    /// The data that the first pod wrote.
    written: Option<Vec<u8>>,
    /// A pod was deleted before its volume was staged.
    was_abandoned: bool,
}

impl TestNode {
    /// Runs the lifecycle of the volume with this number.
    pub(crate) async fn run_volume(&self, seed: u64, number: u64) {
        let kind = Kind::from_number(number);
        let serial = format!("nk{seed}x{number}");
        let mut lifecycle = Lifecycle {
            node: self,
            disk: Disk::create(&self.home, serial, kind).await,
            rng: Rng(seed << 32 | number),
            written: None,
            was_abandoned: false,
        };
        match kind {
            Kind::Foreign(_) => lifecycle.run_foreign().await,
            Kind::Ext4 | Kind::Xfs | Kind::Btrfs | Kind::Block => lifecycle.run().await,
        }
        self.uuids.remove(&lifecycle.disk);
        lifecycle.disk.remove();
    }
}

impl Lifecycle<'_> {
    /// Staging a disk with foreign data fails and does not change it.
    async fn run_foreign(&mut self) {
        let before = self.disk.bytes();
        for _ in 0..2 {
            self.disk.attach().await;
            let policy = RetryPolicy::MaxFailuresWith(3, FOREIGN_DATA);
            let outcome = self.node.kubelet.call(&self.stage(), policy).await;
            assert_eq!(outcome, Outcome::Failed(FOREIGN_DATA.to_owned()), "{:?}", self.disk);
            self.remove_from_node(&[]).await;
            assert!(self.disk.bytes() == before, "the content of {:?} changed", self.disk);
        }
        self.node.counters.increment("rejected");
    }

    async fn run(&mut self) {
        for round in 0..3 {
            loop {
                match self.round(round).await {
                    RoundOutcome::Completed => break,
                    RoundOutcome::Damaged => self.repair().await,
                    RoundOutcome::FormatInterrupted => return,
                }
            }
        }
        self.disk.check_filesystem().await;
        if self.disk.size() > self.disk.kind.sizes().0 {
            let (filesystem_size, size) = (self.disk.filesystem_size(), self.disk.size());
            assert!(
                filesystem_size + MAX_UNUSED >= size,
                "{:?}: {filesystem_size} of {size}",
                self.disk
            );
            self.node.counters.increment("grown");
        }
        self.node.counters.increment("completed");
    }

    /// Attaches, uses and detaches the disk. The next plugin repeats a mkfs that was killed with its plugin.
    async fn round(&mut self, round: u32) -> RoundOutcome {
        let kubelet = &self.node.kubelet.clone();
        if round == 2 && !self.grows_online() {
            self.disk.resize().await;
        }
        self.disk.attach().await;
        let policy = match self.rng.below(6) {
            // The pod is deleted before its volume is staged.
            0 if round < 2 => RetryPolicy::MaxAttempts(1 + u32::try_from(self.rng.below(4)).unwrap()),
            _ => RetryPolicy::MaxFailures(MAX_FAILURES),
        };
        match kubelet.call(&self.stage(), policy).await {
            Outcome::Succeeded => {}
            Outcome::Failed(name) => {
                self.remove_from_node(&[]).await;
                if matches!(policy, RetryPolicy::MaxAttempts(_)) {
                    self.node.counters.increment("abandoned");
                    self.was_abandoned = true;
                    return RoundOutcome::Completed;
                }
                // Only while an unmounted filesystem grew, because the process may not resize it mounted.
                if name == DAMAGED && round == 2 && !self.grows_online() {
                    return RoundOutcome::Damaged;
                }
                // After a detach, the record no longer proves that the disk was blank.
                let is_unwritten = self.written.is_none();
                assert!(self.was_abandoned && is_unwritten, "{:?}: {name}", self.disk);
                self.node.counters.increment(FORMAT_INTERRUPTED);
                return RoundOutcome::FormatInterrupted;
            }
        }
        kubelet.call_until_success(&self.publish("a", false)).await;
        self.use_volume("a");
        self.node.uuids.record(&self.disk);
        for _ in 0..self.rng.below(4) {
            self.second_pod().await;
        }
        if round == 2 {
            if self.grows_online() {
                self.disk.resize().await;
            }
            kubelet.call_until_success(&self.expand("a")).await;
        }
        // kubelet stages again after its restart.
        kubelet.call_until_success(&self.stage()).await;
        self.remove_from_node(&["a"]).await;
        RoundOutcome::Completed
    }

    /// Repairs the filesystem manually: a resize2fs that was killed with the plugin leaves damage that `e2fsck -p` does
    /// not repair.
    async fn repair(&self) {
        self.node.counters.increment("repaired manually");
        let image = self.disk.image();
        let check = format!("e2fsck -f -y {} || test $? = 1", image.display());
        sh(&check).await;
    }

    /// Publishes and unpublishes the volume for a second pod on the node.
    async fn second_pod(&mut self) {
        let kubelet = &self.node.kubelet.clone();
        // All targets of a block device share its access.
        let read_only = self.rng.below(2) == 0 && self.disk.kind != Kind::Block;
        self.call_concurrently(&self.publish("b", read_only)).await;
        self.use_volume("b");
        if self.rng.below(2) == 0 {
            kubelet.call_until_success(&self.unpublish("a")).await;
            kubelet.call_until_success(&self.publish("a", false)).await;
        }
        self.call_concurrently(&self.unpublish("b")).await;
    }

    fn grows_online(&self) -> bool {
        self.disk.kind != Kind::Ext4 || crate::common::machine::can_resize_mounted_ext()
    }

    /// Writes data as the first pod, and verifies it as later pods.
    fn use_volume(&mut self, target: &str) {
        let target = self.disk.path(target);
        let is_block = self.disk.kind == Kind::Block;
        let path = if is_block { target } else { target.join("kept") };
        if let Some(written) = &self.written {
            let mut found = vec![0; written.len()];
            let mut file = fs::File::open(&path).unwrap();
            file.read_exact(&mut found).unwrap();
            assert!(&found == written, "{:?} has lost its data", self.disk);
            return;
        }
        let bytes: Vec<u8> = (0..16384u64)
            .flat_map(|_| self.rng.below(u64::MAX).to_le_bytes())
            .collect();
        let mut file = OpenOptions::new().write(true).create(!is_block).open(&path).unwrap();
        file.write_all(&bytes).unwrap();
        file.sync_all().unwrap();
        self.written = Some(bytes);
    }

    /// Unpublishes, unstages and detaches the volume, and verifies that nothing remains.
    async fn remove_from_node(&mut self, targets: &[&str]) {
        let kubelet = &self.node.kubelet;
        for target in targets {
            kubelet.call_until_success(&self.unpublish(target)).await;
        }
        self.call_concurrently(&self.unstage()).await;
        for name in ["staging", "a", "b"] {
            let path = self.disk.path(name);
            assert!(fs::symlink_metadata(&path).is_err(), "{} still exists", path.display());
        }
        let left = mounts(&self.disk.path(""));
        assert!(left.is_empty(), "{left:?}");
        self.disk.detach().await;
    }

    /// Retries the call until it succeeds while a second caller makes the same call.
    async fn call_concurrently(&self, call: &NodeCall) {
        let kubelet = &self.node.kubelet;
        tokio::join!(
            kubelet.call_until_success(call),
            kubelet.call(call, RetryPolicy::MaxAttempts(2))
        );
    }

    fn capability(&self) -> Option<VolumeCapability> {
        let access_type = match self.disk.kind {
            Kind::Block => AccessType::Block(BlockVolume {}),
            kind => AccessType::Mount(MountVolume {
                fs_type: kind.fs_type().to_owned(),
                ..MountVolume::default()
            }),
        };
        Some(VolumeCapability {
            access_type: Some(access_type),
            access_mode: Some(AccessMode {
                mode: Mode::SingleNodeWriter.into(),
            }),
        })
    }

    fn stage(&self) -> NodeCall {
        NodeCall::Stage(NodeStageVolumeRequest {
            volume_id: self.disk.volume(),
            staging_target_path: text(&self.disk.path("staging")),
            volume_capability: self.capability(),
            ..NodeStageVolumeRequest::default()
        })
    }

    fn publish(&self, target: &str, readonly: bool) -> NodeCall {
        NodeCall::Publish(NodePublishVolumeRequest {
            volume_id: self.disk.volume(),
            staging_target_path: text(&self.disk.path("staging")),
            target_path: text(&self.disk.path(target)),
            volume_capability: self.capability(),
            readonly,
            ..NodePublishVolumeRequest::default()
        })
    }

    fn unpublish(&self, target: &str) -> NodeCall {
        NodeCall::Unpublish(NodeUnpublishVolumeRequest {
            volume_id: self.disk.volume(),
            target_path: text(&self.disk.path(target)),
        })
    }

    fn unstage(&self) -> NodeCall {
        NodeCall::Unstage(NodeUnstageVolumeRequest {
            volume_id: self.disk.volume(),
            staging_target_path: text(&self.disk.path("staging")),
        })
    }

    fn expand(&self, target: &str) -> NodeCall {
        NodeCall::Expand(NodeExpandVolumeRequest {
            volume_id: self.disk.volume(),
            volume_path: text(&self.disk.path(target)),
            staging_target_path: text(&self.disk.path("staging")),
            volume_capability: self.capability(),
            capacity_range: Some(CapacityRange {
                required_bytes: i64::try_from(self.disk.size()).unwrap(),
                limit_bytes: 0,
            }),
            ..NodeExpandVolumeRequest::default()
        })
    }
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}
