//! Lives of volumes on a node: attached, used, taken off, several times over.

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

use crate::disk::{Disk, Kind, MIB, sh};
use crate::judge::{Ledger, mounts};
use crate::kubelet::{Ask, Kubelet, Outcome, Patience};
use crate::rng::Rng;

/// So often in a row a call must fail by itself before it counts as failing for ever. A tool that
/// outlives its plugin may hold the disk meanwhile.
const STUCK: u32 = 25;

const FOREIGN: &str = "FOREIGN_DATA";
const UNFINISHED: &str = "detached unfinished";
const DAMAGED: &str = "FILESYSTEM_DAMAGED";

/// How much of a device its filesystem may leave unused: what does not fill a group of blocks.
const UNUSED: u64 = 8 * MIB;

/// What has happened, by name. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally(Arc<Mutex<BTreeMap<&'static str, u32>>>);

impl Tally {
    fn note(&self, what: &'static str) {
        *self.0.lock().unwrap().entry(what).or_default() += 1;
    }

    /// How many disks were left unfinished: of these records stay, too.
    pub(crate) fn unfinished(&self) -> usize {
        let count = self.0.lock().unwrap().get(UNFINISHED).copied();
        usize::try_from(count.unwrap_or_default()).unwrap()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, count) in self.0.lock().unwrap().iter() {
            write!(f, " {what}={count}")?;
        }
        Ok(())
    }
}

/// Who leads lives on one node.
#[derive(Debug, Clone)]
pub(crate) struct Lane {
    pub(crate) home: PathBuf,
    pub(crate) kubelet: Kubelet,
    pub(crate) ledger: Ledger,
    pub(crate) tally: Tally,
}

/// How a pod's time went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Went {
    Well,
    /// The filesystem must be repaired before it can be staged.
    Damaged,
    /// Its making was cut off before it was detached, and it cannot be staged for ever.
    Unfinished,
}

/// One volume in use.
#[derive(Debug)]
struct Life<'a> {
    lane: &'a Lane,
    disk: Disk,
    rng: Rng,
    /// What a pod has written; none before the first pod.
    written: Option<Vec<u8>>,
    /// A pod was deleted before its volume was there.
    abandoned: bool,
}

impl Lane {
    /// A whole life; which one is said by the number alone.
    pub(crate) async fn live(&self, seed: u64, number: u64) {
        let kind = Kind::of(number);
        let serial = format!("nk{seed}x{number}");
        let mut life = Life {
            lane: self,
            disk: Disk::make(&self.home, serial, kind).await,
            rng: Rng(seed << 32 | number),
            written: None,
            abandoned: false,
        };
        match kind {
            Kind::Foreign(_) => life.foreign().await,
            Kind::Ext4 | Kind::Xfs | Kind::Btrfs | Kind::Block => life.own().await,
        }
        self.ledger.forget(&life.disk);
        life.disk.remove();
    }
}

impl Life<'_> {
    /// A disk with somebody else's data is refused, and keeps every byte.
    async fn foreign(&mut self) {
        let before = self.disk.bytes();
        for _ in 0..2 {
            self.disk.attach().await;
            let patience = Patience::Refused(3, FOREIGN);
            let outcome = self.lane.kubelet.call(&self.stage(), patience).await;
            assert_eq!(
                outcome,
                Outcome::GivenUp(FOREIGN.to_owned()),
                "{:?}",
                self.disk
            );
            self.take_off(&[]).await;
            assert!(
                self.disk.bytes() == before,
                "{:?} was written to",
                self.disk
            );
        }
        self.lane.tally.note("refused");
    }

    async fn own(&mut self) {
        for round in 0..3 {
            loop {
                match self.round(round).await {
                    Went::Well => break,
                    Went::Damaged => self.repair().await,
                    Went::Unfinished => return,
                }
            }
        }
        self.disk.is_sound().await;
        if self.disk.size() > self.disk.kind.sizes().0 {
            let (stated, size) = (self.disk.stated(), self.disk.size());
            assert!(
                stated + UNUSED >= size,
                "{:?}: {stated} of {size}",
                self.disk
            );
            self.lane.tally.note("grown");
        }
        self.lane.tally.note("whole lives");
    }

    /// A pod comes and goes. A mkfs that was killed with its plugin is finished by the next plugin.
    async fn round(&mut self, round: u32) -> Went {
        let kubelet = &self.lane.kubelet.clone();
        if round == 2 && !self.grows_online() {
            self.disk.grow().await;
        }
        self.disk.attach().await;
        let patience = match self.rng.below(6) {
            // The pod is deleted before its volume is there.
            0 if round < 2 => Patience::Times(1 + u32::try_from(self.rng.below(4)).unwrap()),
            _ => Patience::Stuck(STUCK),
        };
        match kubelet.call(&self.stage(), patience).await {
            Outcome::Done => {}
            Outcome::GivenUp(name) => {
                self.take_off(&[]).await;
                if matches!(patience, Patience::Times(_)) {
                    self.lane.tally.note("abandoned");
                    self.abandoned = true;
                    return Went::Well;
                }
                // Only where an unmounted filesystem was growing, because it cannot grow mounted here.
                if name == DAMAGED && round == 2 && !self.grows_online() {
                    return Went::Damaged;
                }
                // Once it has been detached, nobody can prove any more that it was blank.
                let nothing = self.written.is_none();
                assert!(self.abandoned && nothing, "{:?}: {name}", self.disk);
                self.lane.tally.note(UNFINISHED);
                return Went::Unfinished;
            }
        }
        kubelet.done(&self.publish("a", false)).await;
        self.use_it("a");
        self.lane.ledger.note(&self.disk);
        for _ in 0..self.rng.below(4) {
            self.second_pod().await;
        }
        if round == 2 {
            if self.grows_online() {
                self.disk.grow().await;
            }
            kubelet.done(&self.expand("a")).await;
        }
        // As after a restart of kubelet.
        kubelet.done(&self.stage()).await;
        self.take_off(&["a"]).await;
        Went::Well
    }

    /// What people do who read that the filesystem is damaged: a resize2fs that was killed with the plugin
    /// leaves what e2fsck mends, but not unasked.
    async fn repair(&self) {
        self.lane.tally.note("repaired by hand");
        let image = self.disk.image();
        let check = format!("e2fsck -f -y {} || test $? = 1", image.display());
        sh(&check).await;
    }

    /// Another pod on the same node comes and goes.
    async fn second_pod(&mut self) {
        let kubelet = &self.lane.kubelet.clone();
        // A device is read-only for all or for none.
        let read_only = self.rng.below(2) == 0 && self.disk.kind != Kind::Block;
        self.twice(&self.publish("b", read_only)).await;
        self.use_it("b");
        if self.rng.below(2) == 0 {
            kubelet.done(&self.unpublish("a")).await;
            kubelet.done(&self.publish("a", false)).await;
        }
        self.twice(&self.unpublish("b")).await;
    }

    /// Whether the filesystem can grow here while it is in use.
    fn grows_online(&self) -> bool {
        self.disk.kind != Kind::Ext4 || crate::common::machine::can_resize_mounted_ext()
    }

    /// The pod writes what it wants to keep, or finds it.
    fn use_it(&mut self, target: &str) {
        let place = self.disk.place(target);
        let is_block = self.disk.kind == Kind::Block;
        let path = if is_block { place } else { place.join("kept") };
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
        let mut file = OpenOptions::new()
            .write(true)
            .create(!is_block)
            .open(&path)
            .unwrap();
        file.write_all(&bytes).unwrap();
        file.sync_all().unwrap();
        self.written = Some(bytes);
    }

    /// The pod is gone: nothing of the volume stays on the node.
    async fn take_off(&mut self, targets: &[&str]) {
        let kubelet = &self.lane.kubelet;
        for target in targets {
            kubelet.done(&self.unpublish(target)).await;
        }
        self.twice(&self.unstage()).await;
        for place in ["staging", "a", "b"] {
            let place = self.disk.place(place);
            assert!(
                fs::symlink_metadata(&place).is_err(),
                "{} is left",
                place.display()
            );
        }
        let left = mounts(&self.disk.place(""));
        assert!(left.is_empty(), "{left:?}");
        self.disk.detach().await;
    }

    /// The call until it does well, with a second caller at its side now and then.
    async fn twice(&self, ask: &Ask) {
        let kubelet = &self.lane.kubelet;
        tokio::join!(kubelet.done(ask), kubelet.call(ask, Patience::Times(2)));
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

    fn stage(&self) -> Ask {
        Ask::Stage(NodeStageVolumeRequest {
            volume_id: self.disk.volume(),
            staging_target_path: text(&self.disk.place("staging")),
            volume_capability: self.capability(),
            ..NodeStageVolumeRequest::default()
        })
    }

    fn publish(&self, target: &str, readonly: bool) -> Ask {
        Ask::Publish(NodePublishVolumeRequest {
            volume_id: self.disk.volume(),
            staging_target_path: text(&self.disk.place("staging")),
            target_path: text(&self.disk.place(target)),
            volume_capability: self.capability(),
            readonly,
            ..NodePublishVolumeRequest::default()
        })
    }

    fn unpublish(&self, target: &str) -> Ask {
        Ask::Unpublish(NodeUnpublishVolumeRequest {
            volume_id: self.disk.volume(),
            target_path: text(&self.disk.place(target)),
        })
    }

    fn unstage(&self) -> Ask {
        Ask::Unstage(NodeUnstageVolumeRequest {
            volume_id: self.disk.volume(),
            staging_target_path: text(&self.disk.place("staging")),
        })
    }

    fn expand(&self, target: &str) -> Ask {
        Ask::Expand(NodeExpandVolumeRequest {
            volume_id: self.disk.volume(),
            volume_path: text(&self.disk.place(target)),
            staging_target_path: text(&self.disk.place("staging")),
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
