//! Kubernetes events on claims and nodes, for `kubectl describe`.
//!
//! They are best effort: recording does not block, the same event is written at most once a minute despite retries of
//! the sidecars, and events that cannot be written are dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Cluster;
use super::nodes::Nodes;
use crate::base::{Tasks, lock};
use crate::model::DriverName;

mod event;
mod write;

pub use event::{Cause, Claim, ClusterEvent};

/// How long a repeated event is suppressed.
const QUIET: Duration = Duration::from_mins(1);

/// The budget of events, and its refill: a zone that is out of stock affects every claim.
const BURST: u32 = 50;
const PER_SECOND: u32 = 1;

/// Maximum number of queued events; more are dropped.
const QUEUE: usize = 100;

/// Number of remembered events above which expired ones are removed.
const SWEEP: usize = 1000;

/// Records events. Clones share the state. The default one discards events.
#[derive(Debug, Clone, Default)]
pub struct EventRecorder(Option<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    queue: mpsc::Sender<ClusterEvent>,
    budget: Arc<Mutex<Budget>>,
}

/// Permit to record one event.
#[derive(Debug)]
pub struct EventPermit(mpsc::OwnedPermit<ClusterEvent>);

impl EventRecorder {
    /// A recorder for this driver in this cluster. A background task writes the events while the process runs.
    pub fn new(cluster: &Cluster, nodes: Nodes, driver: &DriverName) -> Self {
        let (queue, events) = mpsc::channel(QUEUE);
        let write = write::run(cluster.clone(), nodes, driver.clone(), events);
        Tasks::default().spawn(write);
        let budget = Arc::new(Mutex::new(Budget::new()));
        Self(Some(Inner { queue, budget }))
    }

    /// Whether an event with this reason and object is due: at most once a minute.
    pub fn permit(&self, reason: &'static str, about: &str) -> Option<EventPermit> {
        let Inner { queue, budget } = self.0.as_ref()?;
        let permit = queue.clone().try_reserve_owned().ok()?;
        lock(budget).spend(reason, about).then_some(EventPermit(permit))
    }
}

impl EventPermit {
    /// Queues the event without blocking.
    pub fn record(self, event: ClusterEvent) {
        drop(self.0.send(event));
    }
}

/// The times of recent events, and the remaining budget.
#[derive(Debug)]
struct Budget {
    last_written: HashMap<(&'static str, String), Instant>,
    left: u32,
    filled: Instant,
}

impl Budget {
    fn new() -> Self {
        Self {
            last_written: HashMap::new(),
            left: BURST,
            filled: Instant::now(),
        }
    }

    /// Whether the event is due, which is then recorded.
    fn spend(&mut self, reason: &'static str, about: &str) -> bool {
        let seconds = u32::try_from(self.filled.elapsed().as_secs()).unwrap_or(u32::MAX);
        if seconds > 0 {
            let more = seconds.saturating_mul(PER_SECOND);
            self.left = self.left.saturating_add(more).min(BURST);
            self.filled += Duration::from_secs(seconds.into());
        }
        let key = (reason, about.to_owned());
        let is_recent = |when: &Instant| when.elapsed() < QUIET;
        if self.left == 0 || self.last_written.get(&key).is_some_and(is_recent) {
            return false;
        }
        if self.last_written.len() > SWEEP {
            self.last_written.retain(|_, when| is_recent(when));
        }
        self.last_written.insert(key, Instant::now());
        self.left -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_event_repeats_once_a_minute_and_all_events_have_a_bounded_rate() {
        let mut budget = Budget::new();
        let mut permits = |about: &str| budget.spend("SoldOut", about);
        assert!(permits("a"));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(!permits("a"));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(permits("a"));
        let all = (0..200).filter(|number| permits(&number.to_string())).count();
        assert_eq!(all, 49);
        tokio::time::advance(Duration::from_secs(5)).await;
        let more = (1000..1200).filter(|number| permits(&number.to_string())).count();
        assert_eq!(more, 5);
    }

    #[test]
    fn the_uid_of_a_claim_is_part_of_its_volume_name() {
        let uid = |volume: &str| Claim::of_volume("ns", "data", volume).uid;
        let known = "0d6e3b1c-5f5c-4c39-9a3e-1f0e4a3f9d2b";
        assert_eq!(uid(&format!("pvc-{known}")).as_deref(), Some(known));
        for volume in ["", "pvc-0d6e3b1c", "d-bp1", "pvc-0d6e3b1c-5f5c-4c39-9a3e-1f0e4a3f9dé"] {
            assert_eq!(uid(volume), None, "{volume}");
        }
    }

    #[test]
    fn without_a_cluster_no_event_is_permitted() {
        assert!(EventRecorder::default().permit("SoldOut", "a").is_none());
    }
}
