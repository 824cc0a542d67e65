//! Which nodes are provably down, from the history of reads. No I/O.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use tokio::time::Instant;

use super::{FencingConfig, MAX_READ, RELEASED_AFTER};
use crate::cluster::nodes::Member;
use crate::disk::InstanceStates;
use crate::model::{InstanceId, InstanceStatus};

/// Why the instance of a node cannot write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Evidence {
    Stopped,
    Released,
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stopped => "reports its instance as Stopped",
            Self::Released => "no longer has its instance",
        })
    }
}

/// A Node by name and UID, and its instance.
type Identity = (String, String, InstanceId);

/// Evidence that all reads since a time agree on.
type Since = (Evidence, Instant);

#[derive(Debug)]
pub(super) struct Rule {
    config: FencingConfig,
    key: u64,
    suspects: BTreeMap<Identity, Since>,
    /// The ready nodes that were read with this key, and whether their instance was returned. An instance that never
    /// was may be of another region, or hidden from the key.
    known: BTreeMap<Identity, bool>,
    /// When the last read that counts began.
    read: Instant,
}

impl Rule {
    pub(super) fn new(config: FencingConfig) -> Self {
        Self {
            config,
            key: 0,
            suspects: BTreeMap::new(),
            known: BTreeMap::new(),
            read: Instant::now(),
        }
    }

    /// Starts the periods of all nodes again, after a failed read.
    pub(super) fn reset(&mut self) {
        self.suspects.clear();
    }

    /// Records a read of the instances of all suspects. Returns whether it counts.
    pub(super) fn record(&mut self, read: &InstanceStates, members: &[Member]) -> bool {
        let is_canary = |member: &Member| member.is_ready && member.has_owner && is_running(member, read);
        let has_canary = members.iter().any(is_canary);
        if std::mem::replace(&mut self.key, read.key) != read.key {
            self.reset();
            self.known.clear();
        }
        if !has_canary {
            self.reset();
            return false;
        }
        let present: BTreeSet<Identity> = members.iter().map(identity).collect();
        self.known.retain(|known, _| present.contains(known));
        for member in members.iter().filter(|member| member.is_ready) {
            if let Some(state) = read.states.get(&member.instance) {
                *self.known.entry(identity(member)).or_default() |= state.is_some();
            }
        }
        let before = std::mem::take(&mut self.suspects);
        for member in members.iter().filter(|member| is_suspect(member)) {
            let evidence = match read.states.get(&member.instance) {
                Some(Some(InstanceStatus::Stopped)) => Evidence::Stopped,
                Some(None) if self.known.get(&identity(member)) == Some(&true) => Evidence::Released,
                // Another state, never seen, or not asked for.
                Some(_) | None => continue,
            };
            let identity = identity(member);
            let since = before.get(&identity).filter(|(known, _)| *known == evidence);
            let since = since.map_or(read.ended, |(_, since)| *since);
            self.suspects.insert(identity, (evidence, since));
        }
        self.read = read.began;
        true
    }

    /// Whether the node was not read yet since it is ready.
    pub(super) fn is_new(&self, member: &Member) -> bool {
        member.is_ready && !self.known.contains_key(&identity(member))
    }

    /// The time from the first to the last read that this evidence requires.
    fn required(&self, evidence: Evidence) -> Duration {
        match evidence {
            Evidence::Stopped => self.config.grace_period,
            Evidence::Released => self.config.grace_period.max(RELEASED_AFTER),
        }
    }

    /// Until when the last read may be used.
    pub(super) fn valid_until(&self) -> Instant {
        self.read + MAX_READ
    }

    /// The nodes that the last read proves to be down, those known for the longest time first, within the share; and
    /// how many more there are.
    pub(super) fn due<'a>(&self, members: &'a [Member]) -> (Vec<(&'a Member, Evidence)>, usize) {
        let suspects = members.iter().filter(|member| is_suspect(member));
        let known = suspects.filter_map(|member| Some((member, *self.suspects.get(&identity(member))?)));
        let mut due: Vec<_> = known
            .filter(|(_, (evidence, since))| *since + self.required(*evidence) <= self.read)
            .collect();
        due.sort_by_key(|(_, (_, since))| *since);
        let held = due.split_off(self.free(members).min(due.len())).len();
        let due = due.into_iter().map(|(member, (evidence, _))| (member, evidence));
        (due.collect(), held)
    }

    /// How many more nodes may be out of service.
    fn free(&self, members: &[Member]) -> usize {
        let allowed = members.len() * usize::from(self.config.max_nodes_percent) / 100;
        let out_of_service = members.iter().filter(|member| member.out_of_service.is_some());
        allowed.max(1).saturating_sub(out_of_service.count())
    }

    /// When the next read can prove that a node is down; none without a suspect whose instance is stopped or missing.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let due = self.suspects.values();
        due.map(|(evidence, since)| *since + self.required(*evidence)).min()
    }
}

/// Without an owner, the CSINode may be that of an earlier Node, and name another instance.
pub(super) fn is_suspect(member: &Member) -> bool {
    !member.is_ready && member.has_owner && member.out_of_service.is_none()
}

pub(super) fn is_running(member: &Member, read: &InstanceStates) -> bool {
    read.states.get(&member.instance) == Some(&Some(InstanceStatus::Running))
}

fn identity(member: &Member) -> Identity {
    (member.node.clone(), member.uid.clone(), member.instance.clone())
}

#[cfg(test)]
mod tests;
