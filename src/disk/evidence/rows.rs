//! Reads one resource, and proves that it does not exist.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use ecs::poll::{MissingProof, Observation, Poller, WaitError};
use ecs::{Client, Condition, Kind};
use jiff::Timestamp;
use scopeguard::ScopeGuard;
use tokio::time::Instant;

use super::existence::{Existence, Fact, Record};
use super::{Active, CONFIRM_AFTER, Nodes, READ_LAG};
use crate::base::Deadline;
use crate::disk::owned::OwnedResource;
use crate::disk::ownership::Owner;
use crate::model::{Disk, Failure, Tags};

type Result<T> = std::result::Result<T, WaitError>;

/// Maximum number of resources whose existence is in doubt. Forgetting one is as safe as a restart.
const CAPACITY: usize = 1000;
/// Canaries of one search.
const CANARIES: usize = 8;

/// Whether a resource exists.
#[derive(Debug)]
pub(in crate::disk) enum Presence<V> {
    Row(Arc<V>),
    Absent,
}

impl<V> Presence<V> {
    pub(in crate::disk) fn row(self) -> Option<Arc<V>> {
        match self {
            Self::Row(row) => Some(row),
            Self::Absent => None,
        }
    }
}

/// The rows of one kind of resource, and what is known about missing ones. Waits are those of the poller.
pub(in crate::disk) struct Rows<V: OwnedResource> {
    ecs: Arc<Client>,
    poller: Poller<V::Id, V>,
    owner: Owner,
    pub(super) active: Active,
    records: Mutex<Records<V::Id>>,
    nodes: Arc<Nodes>,
    /// The disks, for another kind of resource. They prove the account and the region, though not the permission to
    /// describe that kind.
    disks: Option<Arc<Rows<Disk>>>,
    /// Held during a search for canaries, so that other calls use its result.
    search: tokio::sync::Mutex<()>,
}

/// The records with the access key by which they were concluded.
struct Records<K> {
    key: u64,
    records: BTreeMap<K, (Instant, Record)>,
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
            records: Mutex::new(Records {
                key: 0,
                records: BTreeMap::new(),
            }),
        })
    }

    /// The current row; or proof that the resource does not exist.
    ///
    /// # Errors
    /// [`WaitError::Unproven`] if neither is certain; when the cloud rejects the call, or the deadline passes.
    pub(in crate::disk) async fn confirm(&self, deadline: Deadline, id: &V::Id) -> Result<Presence<V>> {
        self.confirm_state(deadline, id, |_| true).await
    }

    /// The row for a report on which nothing depends: `None` if responses with a canary lack it for [`READ_LAG`].
    ///
    /// # Errors
    /// As [`Self::confirm`].
    pub(in crate::disk) async fn find(&self, deadline: Deadline, id: &V::Id) -> Result<Option<Arc<V>>> {
        match self.confirm(deadline, id).await {
            Err(WaitError::Unproven {
                missing: MissingProof::Time { .. },
                ..
            }) => Ok(None),
            outcome => outcome.map(Presence::row),
        }
    }

    /// As [`Self::confirm`], after the call that had to act on the resource named it as missing.
    pub(in crate::disk) async fn confirm_named_missing(&self, deadline: Deadline, id: &V::Id) -> Result<Presence<V>> {
        self.record(id, Fact::NamedMissing);
        self.confirm(deadline, id).await
    }

    /// The row in the expected state, or after [`READ_LAG`] in any state; or proof that the resource does not exist.
    ///
    /// # Errors
    /// As [`Self::confirm`].
    pub(in crate::disk) async fn confirm_state(
        &self,
        deadline: Deadline,
        id: &V::Id,
        is_expected: impl Fn(&V) -> bool + Send + Sync,
    ) -> Result<Presence<V>> {
        if self.is_absent(id) {
            return Ok(Presence::Absent);
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
            let observation = self.poller.observe_until(id, deadline, decide).await?;
            let record = self.record_observation(id, &observation);
            let canary = match observation {
                Observation::Row(row) => return Ok(Presence::Row(row)),
                Observation::Missing { .. } if record.is_absent() => return Ok(Presence::Absent),
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

    /// Whether the cloud accepted the creation of the resource so recently that it may be hidden.
    pub(super) fn may_be_hidden(&self, id: &V::Id) -> bool {
        self.get(id).may_be_hidden(Instant::now())
    }

    /// Whether this process has created the resource with this row, so that no row can be older than a deletion by the
    /// previous controller.
    pub(super) fn is_created_by(&self, id: &V::Id, row: &V) -> bool {
        self.get(id).is_created_by(row.created())
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
        match &outcome {
            // With another key, it was perhaps another account that has no such resource.
            _ if !is_same_key => {}
            Ok(()) => {
                self.record(id, Fact::Deleted);
            }
            Err(error) if names_missing(error) => {
                if error.may_have_taken_effect() {
                    self.record(id, Fact::DeletionLost);
                }
                self.record(id, Fact::NamedMissing);
            }
            Err(error) if error.may_have_taken_effect() => {
                self.record(id, Fact::DeletionLost);
            }
            Err(error) if matches!(error.kind(), Kind::Conflict | Kind::Precondition) => {
                self.record(id, Fact::DeletionRefused);
            }
            Err(_) => {}
        }
        outcome
    }

    /// A number that changes with the access key.
    pub(in crate::disk) fn key(&self) -> u64 {
        self.ecs.key_generation()
    }

    /// Whether the answer to the deletion of the resource, which this process has read, was lost. The deletion can be
    /// sent again without a read.
    pub(in crate::disk) fn is_deletion_lost(&self, id: &V::Id) -> bool {
        self.get(id).existence == Existence::Deleting
    }

    /// Records that the resource was deleted together with its group.
    pub(in crate::disk) fn record_deleted(&self, id: &V::Id) {
        self.record(id, Fact::Deleted);
    }

    pub(super) fn record_observation(&self, id: &V::Id, observation: &Observation<V>) -> Record {
        match observation {
            Observation::Row(_) => self.record(id, Fact::Row),
            Observation::Missing { canary: true } => self.record(id, Fact::Missing),
            Observation::Missing { canary: false } => self.get(id),
        }
    }

    /// Why the absence of a resource that the last response lacks is not proven.
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

    fn get(&self, id: &V::Id) -> Record {
        self.update(id, |record| record)
    }

    fn update(&self, id: &V::Id, change: impl FnOnce(Record) -> Record) -> Record {
        let now = Instant::now();
        let key = self.ecs.key_generation();
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::replace(&mut records.key, key) != key {
            // Another key may belong to another account.
            for (_, record) in records.records.values_mut() {
                record.existence = Existence::Possible;
            }
        }
        let known = records.records.remove(id).map_or(Record::UNKNOWN, |(_, record)| record);
        let record = change(known);
        if record != Record::UNKNOWN {
            if records.records.len() >= CAPACITY {
                let oldest = records.records.iter().min_by_key(|(_, (changed, _))| *changed);
                if let Some(oldest) = oldest.map(|(id, _)| id.clone()) {
                    records.records.remove(&oldest);
                }
            }
            records.records.insert(id.clone(), (now, record));
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
