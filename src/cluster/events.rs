//! Kubernetes events on claims and nodes, for `kubectl describe`.
//!
//! They are best effort: recording does not block, the same event is written at most once a minute despite retries of the
//! sidecars, and events that cannot be written are dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Cluster;
use super::nodes::Nodes;
use crate::base::Tasks;
use crate::model::{DiskId, DriverName, InstanceId};

mod write;

/// How long the same thing is not written again.
const QUIET: Duration = Duration::from_mins(1);

/// How many are written at once, and how many more in each second: a zone that is sold out is news for every claim.
const BURST: u32 = 50;
const PER_SECOND: u32 = 1;

/// How many wait to be written; more are dropped.
const QUEUE: usize = 100;

/// So many things are remembered before those of long ago are swept out.
const SWEEP: usize = 1000;

/// The claim that a volume is for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claim {
    pub namespace: String,
    pub name: String,
    /// Its uid, without which `kubectl describe` does not find the event; none where that is not known.
    pub uid: Option<String>,
}

impl Claim {
    /// The claim of a volume name: external-provisioner derives the name from the claim's UID.
    #[must_use]
    pub fn of_volume(namespace: &str, name: &str, volume: &str) -> Self {
        let tail = volume.len().checked_sub(36);
        let tail = tail.and_then(|start| volume.get(start..));
        let uid = tail.filter(|tail| uuid::Uuid::try_parse(tail).is_ok());
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            uid: uid.map(str::to_owned),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// No zone and category could be had for a claim.
    SoldOut {
        claim: Claim,
        /// What was tried, and why each could not be had.
        reasons: String,
    },
    /// A node wants a disk that another one holds.
    InUseElsewhere {
        disk: DiskId,
        node: InstanceId,
        holder: InstanceId,
        /// What it is for; none for a disk that was not made for a claim.
        claim: Option<Claim>,
    },
    /// A node has reached its attach limit.
    AttachLimitExceeded {
        /// The disk that does not fit any more.
        disk: DiskId,
        node: InstanceId,
        /// What it is for; none for a disk that was not made for a claim.
        claim: Option<Claim>,
        /// How it came to this, in words.
        reasons: String,
    },
}

impl Happening {
    /// What `kubectl describe` calls it.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::SoldOut { .. } => reason::SOLD_OUT,
            Self::InUseElsewhere { .. } => reason::IN_USE_ELSEWHERE,
            Self::AttachLimitExceeded { .. } => reason::ATTACH_LIMIT_EXCEEDED,
        }
    }
}

/// What `kubectl describe` calls what has happened.
pub mod reason {
    /// No zone and category could be had.
    pub const SOLD_OUT: &str = "DiskSoldOut";
    /// Another node holds the disk.
    pub const IN_USE_ELSEWHERE: &str = "DiskInUseElsewhere";
    /// The node has reached its attach limit.
    pub const ATTACH_LIMIT_EXCEEDED: &str = "NodeTakesNoMoreDisks";
}

/// Records events. Clones share the state. The default one discards events.
#[derive(Debug, Clone, Default)]
pub struct Events(Option<Inner>);

#[derive(Debug, Clone)]
struct Inner {
    queue: mpsc::Sender<Happening>,
    budget: Arc<Mutex<Budget>>,
}

/// Leave to tell of one thing.
#[derive(Debug)]
pub struct Turn(mpsc::OwnedPermit<Happening>);

impl Events {
    /// Events of this driver in this cluster. They are written on a task of their own, as long as the process runs.
    #[must_use]
    pub fn new(cluster: &Cluster, nodes: Nodes, driver: &DriverName) -> Self {
        let (queue, waiting) = mpsc::channel(QUEUE);
        let write = write::run(cluster.clone(), nodes, driver.clone(), waiting);
        Tasks::default().spawn(write);
        let budget = Arc::new(Mutex::new(Budget::new()));
        Self(Some(Inner { queue, budget }))
    }

    /// Whether an event with this reason and object is due: at most once a minute. Callers check it
    /// before they compose the message.
    #[must_use]
    pub fn turn(&self, reason: &'static str, about: &str) -> Option<Turn> {
        let Inner { queue, budget } = self.0.as_ref()?;
        let mut budget = budget.lock().unwrap_or_else(PoisonError::into_inner);
        if !budget.is_due(reason, about) {
            return None;
        }
        let permit = queue.clone().try_reserve_owned().ok()?;
        budget.spend(reason, about);
        Some(Turn(permit))
    }
}

impl Turn {
    /// Queues the event without blocking.
    pub fn tell(self, happening: Happening) {
        drop(self.0.send(happening));
    }
}

/// The times of recent events, and the remaining budget.
#[derive(Debug)]
struct Budget {
    told: HashMap<(&'static str, String), Instant>,
    left: u32,
    filled: Instant,
}

impl Budget {
    fn new() -> Self {
        Self {
            told: HashMap::new(),
            left: BURST,
            filled: Instant::now(),
        }
    }

    fn is_due(&mut self, reason: &'static str, about: &str) -> bool {
        let seconds = u32::try_from(self.filled.elapsed().as_secs()).unwrap_or(u32::MAX);
        if seconds > 0 {
            let more = seconds.saturating_mul(PER_SECOND);
            self.left = self.left.saturating_add(more).min(BURST);
            self.filled += Duration::from_secs(seconds.into());
        }
        let before = self.told.get(&(reason, about.to_owned()));
        self.left > 0 && before.is_none_or(|when| when.elapsed() >= QUIET)
    }

    fn spend(&mut self, reason: &'static str, about: &str) {
        if self.told.len() > SWEEP {
            self.told.retain(|_, when| when.elapsed() < QUIET);
        }
        self.told.insert((reason, about.to_owned()), Instant::now());
        self.left -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_same_thing_is_told_once_a_minute_and_all_together_at_a_bounded_rate() {
        let mut budget = Budget::new();
        let mut tell = |about: &str| {
            let due = budget.is_due("SoldOut", about);
            if due {
                budget.spend("SoldOut", about);
            }
            due
        };
        assert!(tell("a"));
        tokio::time::advance(Duration::from_secs(59)).await;
        assert!(!tell("a"));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(tell("a"));
        let all = (0..200).filter(|number| tell(&number.to_string())).count();
        assert_eq!(all, 49);
        tokio::time::advance(Duration::from_secs(5)).await;
        let more = (1000..1200)
            .filter(|number| tell(&number.to_string()))
            .count();
        assert_eq!(more, 5);
    }

    #[test]
    fn the_uid_of_a_claim_is_in_the_name_that_the_provisioner_gives_its_volume() {
        let uid = |volume: &str| Claim::of_volume("ns", "data", volume).uid;
        let known = "0d6e3b1c-5f5c-4c39-9a3e-1f0e4a3f9d2b";
        assert_eq!(uid(&format!("pvc-{known}")).as_deref(), Some(known));
        for volume in [
            "",
            "pvc-0d6e3b1c",
            "d-bp1",
            "pvc-0d6e3b1c-5f5c-4c39-9a3e-1f0e4a3f9dé",
        ] {
            assert_eq!(uid(volume), None, "{volume}");
        }
    }

    #[test]
    fn without_a_cluster_nobody_has_a_turn() {
        assert!(Events::default().turn("SoldOut", "a").is_none());
    }
}
