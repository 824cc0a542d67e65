//! Lifecycles of volumes on a node: attached, used and detached several times.

use std::fs::{self, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;

use crate::common::csi::filesystem;
use crate::common::mounts::mounts;
use crate::common::request::block;
use crate::common::rng::Rng;
use crate::common::shell::sh;
use crate::common::volume::{NodePort, NodeVolume};
use crate::kill::counts::Counts;
use crate::kill::disk::{Disk, Kind, MIB};
use crate::kill::invariants::FilesystemUuids;
use crate::kill::kubelet::{Kubelet, NodeCall, Outcome, RetryPolicy, TIMEOUT, Verb};

/// Failures after which a call counts as failing permanently. Until then, a tool of a killed plugin may use the disk.
const MAX_FAILURES: u32 = 100;

const FOREIGN_DATA: &str = "FOREIGN_DATA";
/// Counts disks whose mkfs was not completed: their records remain.
pub(crate) const FORMAT_INTERRUPTED: &str = "format interrupted";
const DAMAGED: &str = "FILESYSTEM_DAMAGED";

/// The size in bytes that a filesystem may leave unused: less than a block group.
const MAX_UNUSED: u64 = 8 * MIB;

/// A node with concurrent volumes.
#[derive(Debug, Clone)]
pub(crate) struct TestNode {
    pub(crate) home: PathBuf,
    pub(crate) kubelet: Kubelet,
    pub(crate) uuids: FilesystemUuids,
    pub(crate) counters: Counts,
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
            disk: Disk::create(&self.home, &serial, kind).await,
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
            let outcome = self.node.kubelet.call(&self.call(Verb::Stage, "a"), policy).await;
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
        match kubelet.call(&self.call(Verb::Stage, "a"), policy).await {
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
        kubelet.call_until_success(&self.call(Verb::Publish, "a")).await;
        self.use_volume("a");
        self.node.uuids.record(&self.disk);
        for _ in 0..self.rng.below(4) {
            self.second_pod().await;
        }
        if round == 2 {
            if self.grows_online() {
                self.disk.resize().await;
            }
            kubelet.call_until_success(&self.call(Verb::Expand, "a")).await;
        }
        // kubelet stages again after its restart.
        kubelet.call_until_success(&self.call(Verb::Stage, "a")).await;
        self.remove_from_node(&["a"]).await;
        RoundOutcome::Completed
    }

    /// Repairs the filesystem manually: a resize2fs that was killed with the plugin leaves damage that `e2fsck -p` does
    /// not repair.
    async fn repair(&self) {
        self.node.counters.increment("repaired manually");
        let check = format!("e2fsck -f -y {} || test $? = 1", self.disk.image.display());
        sh(&check).await;
    }

    /// Publishes and unpublishes the volume for a second pod on the node.
    async fn second_pod(&mut self) {
        let kubelet = &self.node.kubelet.clone();
        // All targets of a block device share its access.
        let mut publish = self.call(Verb::Publish, "b");
        publish.volume.readonly = self.rng.below(2) == 0 && self.disk.kind != Kind::Block;
        self.call_concurrently(&publish).await;
        self.use_volume("b");
        if self.rng.below(2) == 0 {
            kubelet.call_until_success(&self.call(Verb::Unpublish, "a")).await;
            kubelet.call_until_success(&self.call(Verb::Publish, "a")).await;
        }
        self.call_concurrently(&self.call(Verb::Unpublish, "b")).await;
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
            kubelet.call_until_success(&self.call(Verb::Unpublish, target)).await;
        }
        self.call_concurrently(&self.call(Verb::Unstage, "a")).await;
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

    /// A call for the volume with this target.
    fn call(&self, verb: Verb, target: &str) -> NodeCall {
        let Self { disk, node, .. } = self;
        let capability = match disk.kind {
            Kind::Block => block(),
            kind => filesystem(kind.fs_type()),
        };
        let port = NodePort::Socket(node.kubelet.channel.clone());
        let volume = NodeVolume::new(port, disk.volume(), &disk.path(""), Some(capability));
        NodeCall {
            verb,
            volume: volume.at(target).within(TIMEOUT),
            size: disk.size(),
        }
    }
}
