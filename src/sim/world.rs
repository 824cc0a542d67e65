//! The state machine of the fake cloud: all facts, and what is still to happen to them. No I/O and
//! no clock of its own: every entry point is told the time, and first lets happen what is due.

use std::collections::{BTreeMap, VecDeque};

use jiff::Timestamp;

use super::agenda::{Agenda, Due};
use super::config::{Alternatives, Config};
use super::disk::DiskRow;
use super::effect::Effects;
use super::fault::FaultCounters;
use super::group::GroupRow;
use super::ids::Rng;
use super::index::Index;
use super::instance::{InstanceRow, NodeSpec};
use super::log::CallLog;
use super::page::Pages;
use super::reply::Refusal;
use super::snapshot::SnapshotRow;
use super::spread::after;
use super::stale::History;
use super::stock::SoldOut;
use super::task::TaskRow;
use super::throttle::Throttle;
use super::token::Tokens;

/// What a world is made of at its start.
#[derive(Debug, Clone)]
pub(crate) struct Genesis {
    pub(crate) region: String,
    pub(crate) zones: Vec<String>,
    pub(crate) nodes: Vec<NodeSpec>,
    pub(crate) seed: u64,
    /// Whether something outside performs the effects, such as loop devices.
    pub(crate) backed: bool,
    pub(crate) config: Config,
}

/// The fake cloud.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) region: String,
    pub(crate) zones: Vec<String>,
    pub(crate) config: Config,
    pub(crate) now: Timestamp,
    pub(crate) rng: Rng,
    pub(crate) disks: BTreeMap<String, DiskRow>,
    pub(crate) snapshots: BTreeMap<String, SnapshotRow>,
    pub(crate) groups: BTreeMap<String, GroupRow>,
    pub(crate) instances: BTreeMap<String, InstanceRow>,
    /// The spec changes, the oldest first.
    pub(crate) tasks: Vec<TaskRow>,
    /// The disks of an instance.
    pub(crate) held_by: Index,
    /// The disks made from a snapshot.
    pub(crate) made_from: Index,
    /// The snapshots of a disk.
    pub(crate) cut_from: Index,
    pub(crate) old_disks: History<DiskRow>,
    pub(crate) old_snapshots: History<SnapshotRow>,
    /// What was sold out before, and until when.
    pub(crate) sold_before: VecDeque<(Timestamp, Vec<SoldOut>)>,
    pub(crate) old_groups: History<GroupRow>,
    pub(crate) tokens: Tokens,
    pub(crate) pages: Pages,
    pub(crate) throttle: Throttle,
    pub(crate) faults: FaultCounters,
    pub(crate) log: CallLog,
    pub(crate) agenda: Agenda,
    pub(crate) effects: Effects,
}

impl World {
    pub(crate) fn new(genesis: Genesis, now: Timestamp) -> Self {
        let mut world = Self {
            region: genesis.region,
            zones: genesis.zones,
            config: genesis.config,
            now,
            rng: Rng::new(genesis.seed),
            disks: BTreeMap::new(),
            snapshots: BTreeMap::new(),
            groups: BTreeMap::new(),
            instances: BTreeMap::new(),
            tasks: Vec::new(),
            held_by: Index::default(),
            made_from: Index::default(),
            cut_from: Index::default(),
            old_disks: History::default(),
            old_snapshots: History::default(),
            sold_before: VecDeque::new(),
            old_groups: History::default(),
            tokens: Tokens::default(),
            pages: Pages::default(),
            throttle: Throttle::default(),
            faults: FaultCounters::starting(now),
            log: CallLog::default(),
            agenda: Agenda::default(),
            effects: Effects::new(genesis.backed),
        };
        for spec in genesis.nodes {
            world.found_instance(spec);
        }
        world
    }

    /// Lets everything happen that is due by now. Time never runs backwards.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        while let Some((at, due)) = self.agenda.pop(now) {
            self.now = self.now.max(at);
            self.begin(due);
        }
        self.now = self.now.max(now);
    }

    /// When something is next to happen.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.agenda.next()
    }

    /// Reports the end of an effect.
    pub(crate) fn complete(&mut self, now: Timestamp, effect: u64, success: bool) {
        self.advance(now);
        if let Some(due) = self.effects.end(effect) {
            self.finish(due, success);
        }
    }

    /// Replaces the configuration; faults are counted anew when their list has changed.
    pub(crate) fn configure(&mut self, config: Config) {
        if config.faults != self.config.faults {
            self.faults = FaultCounters::starting(self.now);
        }
        if config.sold_out != self.config.sold_out {
            let replaced = std::mem::take(&mut self.config.sold_out);
            self.sold_before.push_back((self.now, replaced));
            // No more than what a lag can show.
            if self.sold_before.len() > 1000 {
                self.sold_before.pop_front();
            }
        }
        self.config = config;
    }

    /// Plans something after a delay; without one, it happens at once.
    pub(crate) fn plan(&mut self, delay: std::time::Duration, due: Due) {
        if delay.is_zero() {
            self.begin(due);
        } else {
            self.agenda.push(after(self.now, delay), due);
        }
    }

    fn begin(&mut self, due: Due) {
        match self.work_of(&due) {
            Some(work) if self.effects.backed() => self.effects.start(work, due),
            _ => self.finish(due, true),
        }
    }

    fn finish(&mut self, due: Due, success: bool) {
        match due {
            Due::Created { disk } => self.disk_created(&disk, success),
            Due::Loaded { disk } => self.change_disk(&disk, |row| row.loading = false),
            Due::Attached { disk, instance } => self.disk_attached(&disk, &instance, success),
            Due::AttachFailed { disk, instance } => self.disk_attached(&disk, &instance, false),
            Due::Detached { disk, instance } => self.disk_detached(&disk, &instance),
            Due::Resized { disk, size, .. } => self.disk_resized(&disk, size, success),
            Due::Modified { task, success } => self.task_ended(&task, success),
            Due::Deleted { disk, .. } => self.drop_disk(&disk),
            Due::Vanished { disk } => self.disk_created(&disk, false),
            Due::Cut { snapshot } => self.snapshot_cut(&snapshot, success),
            Due::Accomplished { snapshot } => self.snapshot_accomplished(&snapshot),
            Due::SnapshotFailed { snapshot } => self.snapshot_failed(&snapshot),
            Due::SnapshotExpired { snapshot } => self.snapshot_expired(&snapshot),
            Due::SnapshotDeleted { .. } => {}
            Due::Power { instance, to } => self.instance_power(&instance, to),
        }
    }

    /// One of several documented answers.
    pub(crate) fn alternative(&mut self, alternatives: &[(u16, &str)]) -> Refusal {
        let index = match self.config.rules.alternatives {
            Alternatives::Seeded => self.rng.index(alternatives.len()),
            Alternatives::First => 0,
            Alternatives::Last => alternatives.len().saturating_sub(1),
        };
        let (status, code) = alternatives
            .get(index)
            .copied()
            .unwrap_or((500, "InternalError"));
        let refusal = Refusal::new(status, code);
        // Seen in the wild: this code comes without words.
        if code == "InvalidOperation.Conflict" {
            refusal.speechless()
        } else {
            refusal
        }
    }
}
