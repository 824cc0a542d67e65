//! Creates a disk, snapshot or snapshot group at most once under its name, regardless of the outcome of earlier calls.
//!
//! The client token is derived from the cluster and the name only: a different request under the name results in a
//! token mismatch, and then the tags identify the resource. A refused request may have consumed the token, and is
//! refused again for a day: if the name is certainly free, another request follows, with a token of its complete
//! content. The token of the name is always sent first: only if it is consumed can a request of an earlier process have
//! had another one.

use std::sync::Arc;
use std::time::Duration;

use ecs::poll::{Observation, OperationKind, PollMode, WaitError};
use ecs::{Client, Kind};
use tokio::time::Instant;

use super::listing::{Listed, OwnershipListing};
use super::name::{Event, NameState, Names, Pending, consumes_token};
use super::{READ_LAG, Rows};
use crate::base::Deadline;
use crate::disk::dependencies::Dependencies;
use crate::disk::error::{Error, Result, cloud};
use crate::disk::owned::{CreateRequest, OwnedResource};
use crate::disk::ownership::{Owner, creation_key};
use crate::disk::refusals::Refusals;
use crate::model::{ClientToken, Disk, Failure, Tags};

#[derive(Debug)]
pub(in crate::disk) struct Creator<V: OwnedResource> {
    ecs: Arc<Client>,
    owner: Owner,
    pub(in crate::disk) rows: Arc<Rows<V>>,
    pub(in crate::disk) names: Names,
    /// The refused requests, without their tokens.
    pub(in crate::disk) refusals: Refusals<String>,
    pub(in crate::disk) listing: OwnershipListing,
}

#[derive(Debug)]
pub(in crate::disk) struct CreateCall {
    pub(in crate::disk) name: String,
    pub(in crate::disk) key: String,
    tags: Tags,
    /// The number of refused requests before this call.
    rejections: u32,
}

impl<V: OwnedResource> Creator<V> {
    pub(in crate::disk) fn new(shared: &Dependencies, rows: Arc<Rows<V>>) -> Self {
        Self {
            listing: OwnershipListing::for_resource::<V>(shared),
            names: Names::default(),
            refusals: Refusals::default(),
            ecs: Arc::clone(&shared.ecs),
            owner: shared.owner.clone(),
            rows,
        }
    }

    pub(in crate::disk) fn start_call(&self, name: &str, tags: Tags) -> CreateCall {
        let key = creation_key(&tags).unwrap_or_default();
        CreateCall {
            rejections: self.names.get(&key).rejections,
            key,
            name: name.to_owned(),
            tags,
        }
    }

    /// The resource that an earlier call created, according to this process, the ownership listing, or the tags. The
    /// token protects a name that is not in the listing. It counts only once [`Self::wait_created`] has read it.
    pub(in crate::disk) async fn find_existing(&self, deadline: Deadline, call: &CreateCall) -> Result<Option<V::Id>> {
        match self.names.get(&call.key).state {
            NameState::Created { id, .. } => {
                if let Ok(parsed) = id.parse()
                    && !self.rows.is_absent(&parsed)
                {
                    return Ok(Some(parsed));
                }
                self.names.apply(&call.key, Event::Gone { id });
            }
            NameState::Unresolved(_) => return self.find_by_tags(deadline, call).await,
            NameState::Free => {}
        }
        match self.listing.find(deadline, &call.key).await {
            Listed::Absent => Ok(None),
            Listed::Found(id) if !self.is_gone(call, &id) => Ok(id.parse().ok()),
            Listed::Found(_) | Listed::Unknown => self.find_by_tags(deadline, call).await,
        }
    }

    fn is_gone(&self, call: &CreateCall, id: &str) -> bool {
        let is_deleted = self.names.get(&call.key).deleted.as_deref() == Some(id);
        is_deleted || id.parse().is_ok_and(|id| self.rows.is_absent(&id))
    }

    /// The oldest resource with the tags of the name, which a caller may have received, except deleted ones. `None` if
    /// it does not exist or the tag index lags.
    pub(in crate::disk) async fn find_by_tags(&self, deadline: Deadline, call: &CreateCall) -> Result<Option<V::Id>> {
        let step = || format!("find an earlier {} of {:?}", V::KIND, call.name);
        let page = V::list_page(self.ecs.as_ref(), deadline, call.tags.clone(), None).await;
        let page = page.map_err(cloud(step()))?;
        // An unreadable row may be the resource: another one must not be created.
        if let Some(row) = page.unreadable.into_iter().next() {
            let error = ecs::Error::new(Kind::Ambiguous, V::DESCRIBE).with_source(row);
            return Err(cloud(step())(error));
        }
        let mut rows = page.rows;
        rows.retain(|row| !self.is_gone(call, &row.id().to_string()));
        if rows.len() > 1 {
            let ids: Vec<_> = rows.iter().map(|row| row.id().to_string()).collect();
            let (name, ids) = (&call.name, ids.join(","));
            tracing::error!(name, ids, "several {}s have the same name", V::KIND);
        }
        let oldest = rows.into_iter().min_by_key(|row| (row.created(), row.id().clone()));
        Ok(oldest.map(|row| row.id().clone()))
    }

    /// The ID from [`Self::find_existing`] or from a new request, or the cloud's refusal. After a refusal, the request
    /// is repeated with growing pauses, unless it may have taken effect.
    pub(in crate::disk) async fn find_or_create<R: CreateRequest<Row = V>>(
        &self,
        deadline: Deadline,
        call: &CreateCall,
        request: impl Fn(ClientToken) -> R + Send + Sync,
    ) -> Result<ecs::Result<V::Id>> {
        if let Some(id) = self.find_existing(deadline, call).await? {
            return Ok(Ok(id));
        }
        let order = format!("{:?}", request(ClientToken::derive(R::ACTION, [call.key.as_str()])));
        if !self.names.get(&call.key).may_exist()
            && let Err(refusal) = self.refusals.admit(deadline, &order).await
        {
            return Ok(Err(refusal));
        }
        let record = |outcome: &ecs::Result<V::Id>| match outcome {
            Ok(_) => self.refusals.record_success(&order),
            Err(error) => self.refusals.record_refusal(&order, error),
        };
        self.create(deadline, call, request, record).await
    }

    /// Creates the resource that [`Self::find_existing`] did not find. Returns its ID or the cloud's refusal. `record`
    /// gets each outcome before anything else happens.
    pub(in crate::disk) async fn create<R: CreateRequest<Row = V>>(
        &self,
        deadline: Deadline,
        call: &CreateCall,
        request: impl Fn(ClientToken) -> R + Send + Sync,
        record: impl Fn(&ecs::Result<V::Id>) + Send + Sync,
    ) -> Result<ecs::Result<V::Id>> {
        let name = self.names.get(&call.key);
        let parts = [self.owner.cluster.as_str(), call.key.as_str()];
        let parts = parts.into_iter().chain(name.deleted.as_deref());
        let name_token = ClientToken::derive(R::ACTION, parts);
        let pending = name.unresolved().map(|pending| pending.token.clone());
        let token = pending.unwrap_or_else(|| name_token.clone());
        let refusal = match self.send(deadline, call, token, &request, &record).await {
            Ok(id) => return Ok(Ok(id)),
            Err(refusal) => refusal,
        };
        let is_mismatch = refusal.kind() == Kind::TokenMismatch;
        // The refusal may be a repetition of that of an earlier call, which consumed the token.
        if !is_mismatch && (call.rejections == 0 || !consumes_token(&refusal)) {
            return Ok(Err(refusal));
        }
        // A mismatch is not a refusal: an earlier request under the name may have taken effect.
        if !self.is_free(deadline, call, !is_mismatch).await {
            // After a mismatch, an earlier request under the name had other parameters. Its tags may not be indexed
            // yet.
            for pause in [READ_LAG, Duration::ZERO].iter().filter(|_| is_mismatch) {
                if let Some(id) = self.find_by_tags(deadline, call).await? {
                    return Ok(Ok(id));
                }
                let _ = deadline.bound(tokio::time::sleep(*pause)).await;
            }
            return Ok(Err(refusal));
        }
        let request_text = format!("{:?}", request(name_token));
        let rejections = self.names.get(&call.key).rejections.to_string();
        let token = ClientToken::derive(R::ACTION, [request_text.as_str(), &rejections]);
        Ok(self.send(deadline, call, token, &request, &record).await)
    }

    /// Sends one request, which is unresolved until the cloud returns a final response.
    async fn send<R: CreateRequest<Row = V>>(
        &self,
        deadline: Deadline,
        call: &CreateCall,
        token: ClientToken,
        request: impl Fn(ClientToken) -> R + Send + Sync,
        record: impl Fn(&ecs::Result<V::Id>) + Send + Sync,
    ) -> ecs::Result<V::Id> {
        let request = request(token.clone());
        let pending = Pending::new(token, &request);
        let requested = self.ecs.server_clock().server_time();
        let sent = async {
            let outcome = request.send(self.ecs.as_ref(), deadline).await;
            record(&outcome);
            outcome
        };
        let id = self.names.track(&call.key, pending, sent).await?;
        self.rows.record_accepted(&id, requested);
        Ok(id)
    }

    /// Whether no resource can exist under the name, nor be created by an earlier request (rule 3 of the module).
    async fn is_free(&self, deadline: Deadline, call: &CreateCall, is_refusal: bool) -> bool {
        let name = self.names.get(&call.key);
        let unresolved = name.unresolved().map(|pending| pending.since);
        let active_since = self.rows.active.since;
        let since = unresolved.map_or(active_since, |since| since.max(active_since));
        // Without a canary, only a refusal can be final, and only if no request may still take effect.
        let is_strict = unresolved.is_some() || !is_refusal;
        let is_free = matches!(name.state, NameState::Free | NameState::Unresolved(_))
            && self
                .listing
                .excludes(deadline, &call.key, since, is_strict, |id| self.is_gone(call, id))
                .await;
        if is_free {
            self.names.apply(&call.key, Event::Excluded);
        }
        is_free
    }

    /// Waits until `decide` returns a value for a row that counts (rule 2 of the module). `None` if the resource
    /// certainly no longer exists: then the name is free again. Without an operation, the row is expected immediately.
    ///
    /// # Errors
    /// [`WaitError::Unproven`] at the deadline if the last response lacks the resource.
    pub(in crate::disk) async fn wait_created<T>(
        &self,
        deadline: Deadline,
        call: &CreateCall,
        id: &V::Id,
        operation: Option<OperationKind>,
        decide: impl FnMut(&V) -> Option<T> + Send,
    ) -> std::result::Result<Option<T>, WaitError> {
        let decided = self.rows.wait_decided(deadline, id, operation, decide).await?;
        if decided.is_none() {
            let (name, id_text) = (&call.name, id.to_string());
            tracing::warn!(name, id = id_text, "the {} of this name no longer exists", V::KIND);
            self.forget(call, id);
        }
        Ok(decided)
    }

    /// The resource that this process has created or found under the name.
    pub(in crate::disk) fn created(&self, call: &CreateCall) -> Option<V::Id> {
        match self.names.get(&call.key).state {
            NameState::Created { id, .. } => id.parse().ok(),
            NameState::Free | NameState::Unresolved(_) => None,
        }
    }

    /// Records that the resource of the name no longer exists, although its token still returns it.
    pub(in crate::disk) fn forget(&self, call: &CreateCall, id: &V::Id) {
        let id = id.to_string();
        self.names.apply(&call.key, Event::Gone { id });
    }

    /// Replaces a final error by [`Error::CreationUnresolved`] while a resource may exist that no caller has received.
    pub(in crate::disk) async fn finish<T>(
        &self,
        deadline: Deadline,
        call: &CreateCall,
        id: impl Fn(&T) -> &V::Id,
        outcome: Result<T>,
    ) -> Result<T> {
        let error = match outcome {
            Ok(created) => {
                let id = id(&created).to_string();
                self.names.apply(&call.key, Event::Reported(id));
                return Ok(created);
            }
            Err(error) => error,
        };
        let is_known = match &error {
            // The resource of the name is known.
            Error::AlreadyExists { .. } => true,
            error if [Failure::SnapshotFailed, Failure::GroupFailed].contains(&error.failure()) => true,
            error if !error.failure_kind().is_final() => true,
            // The request is invalid, whatever exists. Nothing was sent.
            Error::OutOfRange { .. } => !self.names.get(&call.key).may_exist(),
            error => {
                // The source of a disk is read before any request; that of a snapshot is named by the cloud.
                let is_read = match error {
                    Error::NoSuchSnapshot { .. } | Error::Wait { .. } => true,
                    Error::NoSuchDisk { .. } => V::KIND == Disk::KIND,
                    _ => false,
                };
                self.is_free(deadline, call, !is_read).await
            }
        };
        if is_known {
            return Err(error);
        }
        Err(Error::CreationUnresolved {
            name: call.name.clone(),
            source: Box::new(error),
        })
    }
}

impl<V: OwnedResource> Rows<V> {
    /// Waits until `decide` returns a value for a row that counts; `None` if the resource certainly does not exist.
    pub(in crate::disk) async fn wait_decided<T>(
        &self,
        deadline: Deadline,
        id: &V::Id,
        operation: Option<OperationKind>,
        mut decide: impl FnMut(&V) -> Option<T> + Send,
    ) -> std::result::Result<Option<T>, WaitError> {
        // The token still returns the deleted resource, and stale reads show it.
        if self.is_absent(id) {
            return Ok(None);
        }
        let is_early = self.active.is_new();
        if !self.get(id).may_be_hidden(Instant::now()) && !self.has_canary() {
            // Only with a canary, the absence of a resource that was not accepted just now is proven.
            let observation = self.observe(id, deadline).await?;
            if matches!(observation, Observation::Missing { canary: false }) {
                self.has_or_finds_canary(deadline).await;
            }
        }
        let mut missing = None;
        let mut observe = |observation| {
            missing = match &observation {
                Observation::Row(_) => None,
                Observation::Missing { canary } => Some(*canary),
            };
            let record = self.record_observation(id, &observation);
            match observation.row() {
                Some(row) => {
                    let is_certain = !is_early || self.get(id).is_created_by(row.created());
                    decide(&row).map(|decided| Some((decided, is_certain)))
                }
                None => record.is_absent().then_some(None),
            }
        };
        let waited = match operation {
            Some(operation) => self.wait_until_done(id, deadline, operation, &mut observe).await,
            None => self.wait_until(id, deadline, PollMode::Current, &mut observe).await,
        };
        let waited = match waited {
            Ok(Some((_, false))) => match self.active.settle(deadline).await {
                Ok(()) => self.wait_until(id, deadline, PollMode::Current, &mut observe).await,
                Err(_) => Err(WaitError::Deadline {
                    last: "a row that may be older than this process".to_owned(),
                }),
            },
            waited => waited,
        };
        match (waited, missing) {
            (Err(WaitError::Deadline { .. } | WaitError::Overdue { .. }), Some(canary)) => {
                Err(self.unproven(id, canary))
            }
            (waited, _) => waited.map(|decided| decided.map(|(decided, _)| decided)),
        }
    }
}
