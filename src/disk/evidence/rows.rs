//! Reads one resource, and proves that it does not exist.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use ecs::poll::{MissingProof, Observation, PollMode, Poller, WaitError};
use ecs::{Client, Condition, Kind};
use jiff::Timestamp;
use scopeguard::ScopeGuard;
use tokio::time::Instant;

use super::existence::{Existence, Fact, Record};
use super::{Active, CONFIRM_AFTER, Nodes, READ_LAG};
use crate::base::{Deadline, lock};
use crate::disk::owned::OwnedResource;
use crate::disk::ownership::Owner;
use crate::model::{Disk, Failure, Tags};

type Result<T> = std::result::Result<T, WaitError>;

/// Each record with the time of its last change.
type Records<K> = BTreeMap<K, (Instant, Record)>;

/// Maximum number of resources whose existence is in doubt. Forgetting one is as safe as a restart.
const CAPACITY: usize = 1000;
const CANARIES: usize = 8;

/// The rows of one kind of resource, and what is known about missing ones. Waits are those of the poller.
pub(in crate::disk) struct Rows<V: OwnedResource> {
    ecs: Arc<Client>,
    poller: Poller<V::Id, V>,
    owner: Owner,
    pub(super) active: Active,
    /// The access key by which the records were concluded, and the records.
    records: Mutex<(u64, Records<V::Id>)>,
    nodes: Arc<Nodes>,
    /// The disks, for another kind of resource. They prove the account and the region, though not the permission to
    /// describe that kind.
    disks: Option<Arc<Rows<Disk>>>,
    /// Held during a search for canaries, so that other calls use its result.
    search: tokio::sync::Mutex<()>,
}

impl<V: OwnedResource> Deref for Rows<V> {
    type Target = Poller<V::Id, V>;

    fn deref(&self) -> &Self::Target {
        &self.poller
    }
}

impl<V: OwnedResource> Rows<V> {
    pub(in crate::disk) fn new(
        ecs: &Arc<Client>,
        poller: Poller<V::Id, V>,
        owner: &Owner,
        active: Active,
        nodes: &Arc<Nodes>,
        disks: Option<&Arc<Rows<Disk>>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            ecs: Arc::clone(ecs),
            poller,
            owner: owner.clone(),
            active,
            nodes: Arc::clone(nodes),
            disks: disks.cloned(),
            search: tokio::sync::Mutex::default(),
            records: Mutex::default(),
        })
    }

    /// The current row; `None` if the resource certainly does not exist.
    ///
    /// # Errors
    /// [`WaitError::Unproven`] if neither is certain; when the cloud rejects the call, or the deadline passes.
    pub(in crate::disk) async fn confirm(&self, deadline: Deadline, id: &V::Id) -> Result<Option<Arc<V>>> {
        self.confirm_state(deadline, id, |_| true).await
    }

    /// The row for a report on which nothing depends: `None` if responses with a canary lack it for [`READ_LAG`].
    pub(in crate::disk) async fn find(&self, deadline: Deadline, id: &V::Id) -> Result<Option<Arc<V>>> {
        match self.confirm(deadline, id).await {
            Err(WaitError::Unproven {
                missing: MissingProof::Time { .. },
                ..
            }) => Ok(None),
            outcome => outcome,
        }
    }

    /// As [`Self::confirm`], after the call that had to act on the resource named it as missing.
    pub(in crate::disk) async fn confirm_named_missing(
        &self,
        deadline: Deadline,
        id: &V::Id,
    ) -> Result<Option<Arc<V>>> {
        self.record(id, Fact::NamedMissing);
        self.confirm(deadline, id).await
    }

    /// The row in the expected state, or after [`READ_LAG`] in any state; `None` if it certainly does not exist.
    pub(in crate::disk) async fn confirm_state(
        &self,
        deadline: Deadline,
        id: &V::Id,
        is_expected: impl Fn(&V) -> bool + Send + Sync,
    ) -> Result<Option<Arc<V>>> {
        if self.is_absent(id) {
            return Ok(None);
        }
        let began = Instant::now();
        let mut may_search = true;
        loop {
            let is_early = || began.elapsed() < READ_LAG;
            let decide = |observation| match observation {
                Observation::Row(row) if !is_expected(&row) && is_early() => None,
                observation => Some(observation),
            };
            let was_early = is_early();
            let observation = self.poller.wait_until(id, deadline, PollMode::Current, decide).await?;
            let record = self.record_observation(id, &observation);
            let canary = match observation {
                Observation::Row(row) => return Ok(Some(row)),
                Observation::Missing { .. } if record.is_absent() => return Ok(None),
                Observation::Missing { canary } => canary,
            };
            if !canary && std::mem::take(&mut may_search) && self.find_canary(deadline).await? {
                continue;
            }
            // A row may become visible within the lag of reads.
            if !was_early {
                return Err(self.unproven(id, canary));
            }
            let caught_up = tokio::time::sleep_until(began + READ_LAG);
            if deadline.bound(caught_up).await.is_err() {
                return Err(self.unproven(id, canary));
            }
        }
    }

    /// Searches for a resource that must be visible: one of this cluster. Where the cluster has no snapshot, any other
    /// of the account shows that the key may describe snapshots, if a disk of the cluster shows that it is the right
    /// account.
    async fn find_canary(&self, deadline: Deadline) -> Result<bool> {
        let Ok(_search) = deadline.bound(self.search.lock()).await else {
            return Ok(false);
        };
        if self.poller.has_canary() {
            return Ok(true);
        }
        let key = self.ecs.key_generation();
        let owned = self.page(deadline, self.owner.tags()).await?;
        let mut canaries: Vec<V::Id> = owned.iter().map(|row| row.id().clone()).collect();
        if canaries.is_empty() {
            let is_right_account = match &self.disks {
                Some(disks) => Box::pin(disks.has_or_finds_canary(deadline)).await,
                None => false,
            };
            let mut rows = self.page(deadline, Tags::new()).await?;
            rows.retain(|row| is_right_account || V::is_canary(row, &self.owner, &self.nodes));
            canaries.extend(rows.iter().map(|row| row.id().clone()));
        }
        if self.ecs.key_generation() != key {
            return Ok(false);
        }
        self.poller.add_canaries(canaries.iter().take(CANARIES));
        Ok(!canaries.is_empty())
    }

    /// The first page; no rows after a transient failure.
    async fn page(&self, deadline: Deadline, tags: Tags) -> Result<Vec<V>> {
        match V::list_page(self.ecs.as_ref(), deadline, tags, None).await {
            Ok(page) => Ok(page.rows),
            Err(error) if Failure::from(&error).kind().is_final() => Err(WaitError::Cloud(Arc::new(error))),
            Err(_) => Ok(Vec::new()),
        }
    }

    /// Whether a resource that must be visible is, with the current access key.
    pub(super) async fn has_or_finds_canary(&self, deadline: Deadline) -> bool {
        self.poller.has_canary() || self.find_canary(deadline).await.is_ok_and(|found| found)
    }

    /// Whether the resource certainly does not exist, without a call.
    pub(in crate::disk) fn is_absent(&self, id: &V::Id) -> bool {
        self.get(id).is_absent()
    }

    /// Records that the cloud accepted the creation of the resource, which was requested at this time of the cloud.
    pub(super) fn record_accepted(&self, id: &V::Id, requested: Option<Timestamp>) {
        let now = Instant::now();
        self.update(id, |record| Record {
            accepted: record.accepted.or(Some(now)),
            requested: record.requested.or(requested),
            ..record
        });
    }

    /// Sends the deletion of a resource that was read with the access key `key`, and records what its outcome proves.
    pub(in crate::disk) async fn delete(
        &self,
        id: &V::Id,
        key: u64,
        call: impl Future<Output = ecs::Result<()>>,
    ) -> ecs::Result<()> {
        let canceled = scopeguard::guard((), |()| {
            self.record(id, Fact::DeletionLost);
        });
        let outcome = call.await;
        ScopeGuard::into_inner(canceled);
        let is_same_key = self.ecs.key_generation() == key;
        let fact = match &outcome {
            // With another key, it was perhaps another account that has no such resource.
            _ if !is_same_key => None,
            Ok(()) => Some(Fact::Deleted),
            Err(error) if names_missing(error) => {
                if error.may_have_taken_effect() {
                    self.record(id, Fact::DeletionLost);
                }
                Some(Fact::NamedMissing)
            }
            Err(error) if error.may_have_taken_effect() => Some(Fact::DeletionLost),
            Err(error) if matches!(error.kind(), Kind::Conflict | Kind::Precondition) => Some(Fact::DeletionRefused),
            Err(_) => None,
        };
        if let Some(fact) = fact {
            self.record(id, fact);
        }
        outcome
    }

    /// A number that changes with the access key.
    pub(in crate::disk) fn key(&self) -> u64 {
        self.ecs.key_generation()
    }

    /// Whether the response to the deletion of the resource, which this process has read, was lost. The deletion can be
    /// sent again without a read.
    pub(in crate::disk) fn is_deletion_lost(&self, id: &V::Id) -> bool {
        self.get(id).existence == Existence::Deleting
    }

    /// Records that the resource was deleted together with its group.
    pub(in crate::disk) fn record_deleted(&self, id: &V::Id) {
        self.record(id, Fact::Deleted);
    }

    /// Records that the resource was used: an earlier deletion whose response was lost had no effect.
    pub(in crate::disk) fn record_used(&self, id: &V::Id) {
        self.record(id, Fact::DeletionRefused);
    }

    pub(super) fn record_observation(&self, id: &V::Id, observation: &Observation<V>) -> Record {
        match observation {
            Observation::Row(_) => self.record(id, Fact::Row),
            Observation::Missing { canary: true } => self.record(id, Fact::Missing),
            Observation::Missing { canary: false } => self.get(id),
        }
    }

    pub(in crate::disk) fn unproven(&self, id: &V::Id, canary: bool) -> WaitError {
        let (record, now) = (self.get(id), Instant::now());
        let seconds = |since: Option<Instant>| since.map_or(0, |since| (now - since).as_secs());
        let action = self.poller.action();
        let missing = match record.existence {
            _ if !canary => MissingProof::Canary(action),
            _ if record.may_be_hidden(now) => MissingProof::Age {
                age_s: seconds(record.accepted),
            },
            existence => MissingProof::Time {
                missing_s: match existence {
                    Existence::Missing { since } => seconds(Some(since)),
                    _ => 0,
                },
                required_s: CONFIRM_AFTER.as_secs(),
            },
        };
        WaitError::Unproven { action, missing }
    }

    fn record(&self, id: &V::Id, fact: Fact) -> Record {
        let now = Instant::now();
        self.update(id, |record| record.after(fact, now))
    }

    pub(super) fn get(&self, id: &V::Id) -> Record {
        self.update(id, |record| record)
    }

    fn update(&self, id: &V::Id, change: impl FnOnce(Record) -> Record) -> Record {
        let now = Instant::now();
        let mut guard = lock(&self.records);
        let (key, records) = &mut *guard;
        let current = self.ecs.key_generation();
        if std::mem::replace(key, current) != current {
            // Another key may belong to another account.
            for (_, record) in records.values_mut() {
                record.existence = Existence::Possible;
            }
        }
        let known = records.remove(id).map(|(_, record)| record);
        let record = change(known.unwrap_or_default());
        if record != Record::default() {
            if records.len() >= CAPACITY {
                let oldest = records.iter().min_by_key(|(_, (changed, _))| *changed);
                if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                    records.remove(&oldest);
                }
            }
            records.insert(id.clone(), (now, record));
        }
        record
    }
}

/// Whether the cloud names the only disk, snapshot or group of the request as missing. A code about another resource
/// proves nothing.
pub(in crate::disk) fn names_missing(error: &ecs::Error) -> bool {
    let about = match error.condition() {
        Condition::NotFound => "",
        Condition::NoSuchDisk => "Disk",
        Condition::NoSuchSnapshot => "Snapshot",
        Condition::NoSuchGroup => "SnapshotGroup",
        _ => return false,
    };
    error.action().contains(about)
}

impl<V: OwnedResource> std::fmt::Debug for Rows<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rows").field("kind", &V::KIND).finish_non_exhaustive()
    }
}
