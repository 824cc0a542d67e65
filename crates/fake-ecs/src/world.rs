//! The state of the fake cloud and its future events. It has no I/O and no clock: callers pass the
//! time, and every entry point first processes the events that are due.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::client_token::Tokens;
use super::config::{Alternatives, Config};
use super::disk::{self, Disks};
use super::distribution::after;
use super::effect::{self, Effects};
use super::event_queue::{Event, EventQueue};
use super::fault::FaultInjector;
use super::group::SnapshotGroups;
use super::history::Retention;
use super::instance::{self, InstanceRow, NodeSpec};
use super::log::CallLog;
use super::page::Pages;
use super::response::ApiError;
use super::rng::Rng;
use super::snapshot::{self, Snapshots};
use super::stock::StockHistory;
use super::task::{self, TaskRow};
use super::throttle::Throttle;
use super::{attach, detach, resize};

/// The parameters of a new state.
#[derive(Debug, Clone)]
pub(crate) struct InitialState {
    pub(crate) region: String,
    pub(crate) zones: Vec<String>,
    pub(crate) nodes: Vec<NodeSpec>,
    pub(crate) seed: u64,
    /// Whether effects are performed outside the state machine, as with loop devices.
    pub(crate) backed: bool,
    pub(crate) config: Config,
}

/// The state of the fake cloud.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) region: String,
    pub(crate) zones: Vec<String>,
    pub(crate) config: Config,
    pub(crate) now: Timestamp,
    pub(crate) rng: Rng,
    pub(crate) disks: Disks,
    pub(crate) snapshots: Snapshots,
    pub(crate) groups: SnapshotGroups,
    pub(crate) instances: BTreeMap<String, InstanceRow>,
    /// Changes of categories, oldest first.
    pub(crate) tasks: Vec<TaskRow>,
    pub(crate) stock: StockHistory,
    pub(crate) tokens: Tokens,
    pub(crate) pages: Pages,
    pub(crate) throttle: Throttle,
    pub(crate) faults: FaultInjector,
    pub(crate) log: CallLog,
    pub(crate) events: EventQueue,
    pub(crate) effects: Effects,
    /// When resources were created that may be hidden.
    pub(crate) created_at: BTreeMap<String, Timestamp>,
}

impl World {
    pub(crate) fn new(initial_state: InitialState, now: Timestamp) -> Self {
        let mut world = Self {
            region: initial_state.region,
            zones: initial_state.zones,
            config: initial_state.config,
            now,
            rng: Rng::new(initial_state.seed),
            disks: Disks::default(),
            snapshots: Snapshots::default(),
            groups: SnapshotGroups::default(),
            instances: BTreeMap::new(),
            tasks: Vec::new(),
            stock: StockHistory::default(),
            tokens: Tokens::default(),
            pages: Pages::default(),
            throttle: Throttle::default(),
            faults: FaultInjector::starting(now),
            log: CallLog::default(),
            events: EventQueue::default(),
            effects: Effects::new(initial_state.backed),
            created_at: BTreeMap::new(),
        };
        for spec in initial_state.nodes {
            instance::add_running_instance(&mut world, spec);
        }
        world
    }

    /// Processes all events that are due. Time never runs backwards.
    pub(crate) fn advance(&mut self, now: Timestamp) {
        while let Some((at, due)) = self.events.pop(now) {
            self.now = self.now.max(at);
            self.begin(due);
        }
        self.now = self.now.max(now);
    }

    /// The time of the next event.
    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.events.next()
    }

    /// Reports that an effect is complete.
    pub(crate) fn complete(&mut self, now: Timestamp, effect: u64, success: bool) {
        self.advance(now);
        if let Some(due) = self.effects.end(effect) {
            self.finish(due, success);
        }
    }

    /// Replaces the configuration; a changed list of faults restarts their counters.
    pub(crate) fn configure(&mut self, config: Config) {
        if config.faults != self.config.faults {
            self.faults = FaultInjector::starting(self.now);
        }
        if config.out_of_stock != self.config.out_of_stock {
            let replaced = std::mem::take(&mut self.config.out_of_stock);
            self.stock.record(self.now, replaced);
        }
        self.config = config;
    }

    /// Schedules an event after a delay; without a delay it happens immediately.
    pub(crate) fn schedule(&mut self, delay: std::time::Duration, due: Event) {
        if delay.is_zero() {
            self.begin(due);
        } else {
            self.events.push(after(self.now, delay), due);
        }
    }

    fn begin(&mut self, due: Event) {
        match effect::work_of(&self.disks, &self.snapshots, &due) {
            Some(work) if self.effects.backed() => self.effects.start(work, due),
            _ => self.finish(due, true),
        }
    }

    fn finish(&mut self, due: Event, success: bool) {
        match due {
            Event::Created { disk } => disk::create_finished(self, &disk, success),
            Event::Loaded { disk } => {
                self.disks
                    .change(self.retention(), &disk, |row| row.loading = false);
            }
            Event::Attached { disk, instance } => {
                attach::attach_finished(self, &disk, &instance, success);
            }
            Event::AttachFailed { disk, instance } => {
                attach::attach_finished(self, &disk, &instance, false);
            }
            Event::Detached { disk, instance } => detach::detach_finished(self, &disk, &instance),
            Event::Resized { disk, size, .. } => {
                resize::resize_finished(self, &disk, size, success);
            }
            Event::Modified { task, success } => task::modify_finished(self, &task, success),
            Event::Deleted { disk, .. } => self.disks.remove(self.retention(), &disk),
            Event::Vanished { disk } => disk::create_finished(self, &disk, false),
            Event::Cut { snapshot } => snapshot::snapshot_captured(self, &snapshot, success),
            Event::Accomplished { snapshot } => snapshot::snapshot_accomplished(self, &snapshot),
            Event::SnapshotFailed { snapshot } => snapshot::snapshot_failed(self, &snapshot),
            Event::SnapshotExpired { snapshot } => snapshot::snapshot_expired(self, &snapshot),
            Event::SnapshotDeleted { .. } => {}
            Event::PowerState { instance, to } => instance::power_changed(self, &instance, to),
        }
    }

    /// The time and the retention of a change that happens now.
    pub(crate) fn retention(&self) -> Retention {
        Retention {
            now: self.now,
            memory: self.config.stale.memory(),
        }
    }

    pub(crate) fn state(&self) -> Value {
        let disks = self.disks.rows().values().map(|row| {
            let mut value = json!(row);
            value["status"] = json!(row.status());
            value
        });
        json!({
            "now": self.now,
            "region": self.region,
            "zones": self.zones,
            "disks": disks.collect::<Vec<_>>(),
            "groups": self.groups.rows().values().map(|row| json!(row)).collect::<Vec<_>>(),
            "snapshots": self.snapshots.rows().values().map(|row| json!(row)).collect::<Vec<_>>(),
            "tasks": self.tasks.iter().map(|row| json!(row)).collect::<Vec<_>>(),
            "instances": self.instances.values().map(|row| json!(row)).collect::<Vec<_>>(),
        })
    }

    /// One of several documented errors.
    pub(crate) fn documented_error(&mut self, alternatives: &[(u16, &str)]) -> ApiError {
        let index = match self.config.rules.alternatives {
            Alternatives::Seeded => self.rng.index(alternatives.len()),
            Alternatives::First => 0,
            Alternatives::Last => alternatives.len().saturating_sub(1),
        };
        let (status, code) = alternatives
            .get(index)
            .copied()
            .unwrap_or((500, "InternalError"));
        let error = ApiError::new(status, code);
        // Observed on the real cloud: this code comes without a message.
        if code == "InvalidOperation.Conflict" {
            error.without_message()
        } else {
            error
        }
    }
}
