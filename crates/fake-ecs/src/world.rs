//! The state of the fake cloud and its future events. It has no I/O and no clock: callers pass the
//! time, and every entry point first processes the events that are due (`advance`).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::api_error::ApiError;
use super::config::{Alternatives, Config};
use super::disk::Disks;
use super::distribution::after;
use super::effect::Effects;
use super::event_queue::{Event, EventQueue};
use super::fault::FaultInjector;
use super::group::SnapshotGroups;
use super::history::Retention;
use super::instance::{InstanceRow, NodeSpec};
use super::log::CallLog;
use super::pages::Pages;
use super::rng::Rng;
use super::snapshot::Snapshots;
use super::stock::StockHistory;
use super::task::TaskRow;
use super::throttle::Throttle;
use super::tokens::Tokens;

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
        Self {
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
        }
    }

    pub(crate) fn next_due(&self) -> Option<Timestamp> {
        self.events.next()
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

    /// Schedules an event; without a delay, it happens at the end of the call.
    pub(crate) fn schedule(&mut self, delay: std::time::Duration, due: Event) {
        self.events.push(after(self.now, delay), due);
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
        let (status, code) = alternatives.get(index).copied().unwrap_or((500, "InternalError"));
        let error = ApiError::new(status, code);
        // Observed on the real cloud: this code comes without a message.
        if code == "InvalidOperation.Conflict" {
            error.without_message()
        } else {
            error
        }
    }
}
