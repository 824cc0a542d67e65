//! Creates a disk, snapshot or snapshot group at most once under its name, regardless of the outcome of earlier calls.
//!
//! The client token is derived from the cluster and the name only: a different request under the name results in a token
//! mismatch, and then the tags identify the resource. A rejected call may have consumed the token, and is rejected again
//! for a day: such a name continues with a token of the complete request.
//!
//! Once a request may have taken effect, all later ones under its name use its token, and no error is final until that is
//! resolved: by a response to the token, by the tags, or by a listing that returns other resources but not this one.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::attempts::{AttemptHistory, PendingRequest, PriorAttempts, is_final};
use super::dependencies::Dependencies;
use super::error::{Error, Result, cloud};
use super::journal::Journal;
use super::owned::{CreateRequest, OwnedResource};
use super::ownership::{Owner, creation_key};
use super::ownership_listing::{EFFECT_DELAY, Listed, OwnershipListing};
use crate::base::Deadline;
use crate::cloud::view::{ConfirmedAbsent, Poller};
use crate::cloud::{self, EcsApi, Kind};
use crate::model::{ClientToken, Failure, Tags};

/// Number of queries by tags, which are indexed late, after a token mismatch.
const TAG_QUERIES: u32 = 5;

#[derive(Debug)]
pub(super) struct Creator<V: OwnedResource> {
    ecs: Arc<dyn EcsApi>,
    owner: Owner,
    pub(super) rows: Arc<Poller<V::Id, V>>,
    pub(super) attempts: AttemptHistory,
    pub(super) listing: OwnershipListing,
    journal: Arc<Journal>,
}

#[derive(Debug)]
pub(super) struct CreateCall {
    pub(super) name: String,
    pub(super) key: String,
    tags: Tags,
    pub(super) prior: PriorAttempts,
    was_queried: bool,
    /// Whether a request of this call was rejected, and may have consumed the token.
    is_rejected: bool,
    is_counted: bool,
}

impl<V: OwnedResource> Creator<V> {
    pub(super) fn new(shared: &Dependencies, rows: Arc<Poller<V::Id, V>>) -> Self {
        Self {
            listing: OwnershipListing::for_resource::<V>(shared),
            attempts: AttemptHistory::default(),
            ecs: Arc::clone(&shared.ecs),
            owner: shared.owner.clone(),
            rows,
            journal: Arc::clone(&shared.journal),
        }
    }

    pub(super) fn start_call(&self, name: &str, tags: Tags) -> CreateCall {
        self.journal.activity.record_call();
        let key = creation_key(&tags).unwrap_or_default();
        CreateCall {
            prior: self.attempts.get(&key),
            name: name.to_owned(),
            key,
            tags,
            was_queried: false,
            is_rejected: false,
            is_counted: false,
        }
    }

    /// The resource that an earlier call created, according to this process, the ownership listing, or the tags. The token
    /// protects a name that is not in the listing.
    pub(super) async fn find_existing(
        &self,
        deadline: Deadline,
        call: &mut CreateCall,
    ) -> Result<Option<V::Id>> {
        let created = call.prior.created.as_deref();
        let is_deleted = |id: &str| call.prior.deleted.as_deref() == Some(id);
        if let Some(id) = created.filter(|id| !is_deleted(id))
            && let Ok(id) = id.parse()
        {
            return Ok(Some(id));
        }
        match self.listing.find(deadline, &call.key).await {
            Listed::Absent if call.prior.unresolved.is_none() => Ok(None),
            Listed::Found(id) if !is_deleted(&id) => {
                self.attempts.resolve(&call.key, Some(&id), false);
                Ok(id.parse().ok())
            }
            Listed::Absent | Listed::Found(_) | Listed::Unknown => {
                self.query_tags(deadline, call).await
            }
        }
    }

    async fn query_tags(&self, deadline: Deadline, call: &mut CreateCall) -> Result<Option<V::Id>> {
        call.was_queried = true;
        let deleted = call.prior.deleted.as_deref();
        let found = self
            .find_by_tags(deadline, &call.name, &call.tags, deleted)
            .await?;
        let id = found.map(|row| row.id().clone());
        if let Some(id) = &id {
            self.attempts
                .resolve(&call.key, Some(&id.to_string()), false);
        }
        Ok(id)
    }

    /// The oldest resource with these tags, which a caller may have received, except the deleted one. `None` if it does not
    /// exist or the tag index lags.
    pub(super) async fn find_by_tags(
        &self,
        deadline: Deadline,
        name: &str,
        tags: &Tags,
        deleted: Option<&str>,
    ) -> Result<Option<V>> {
        let step = || format!("find an earlier {} of {name:?}", V::KIND);
        let page = V::list_page(self.ecs.as_ref(), deadline, tags.clone(), None).await;
        let page = page.map_err(cloud(step()))?;
        // An unreadable row may be the resource: another one must not be created.
        if let Some(row) = page.unreadable.into_iter().next() {
            let error = cloud::Error::new(Kind::Ambiguous, V::DESCRIBE).with_source(row);
            return Err(cloud(step())(error));
        }
        let mut rows = page.rows;
        rows.retain(|row| {
            let id = row.id();
            self.rows.known_absent(id).is_none() && deleted != Some(id.to_string().as_str())
        });
        if rows.len() > 1 {
            let ids: Vec<_> = rows.iter().map(|row| row.id().to_string()).collect();
            let ids = ids.join(",");
            tracing::error!(name, ids, "several {}s have the same name", V::KIND);
        }
        let oldest = rows.into_iter();
        Ok(oldest.min_by_key(|row| (row.created(), row.id().clone())))
    }

    pub(super) async fn find_after_rejection(
        &self,
        deadline: Deadline,
        call: &mut CreateCall,
    ) -> Result<Option<V::Id>> {
        call.is_rejected = true;
        self.query_tags(deadline, call).await
    }

    /// The ID from [`Self::find_existing`] or from a new request, or the cloud's rejection.
    pub(super) async fn find_or_create<R: CreateRequest<Row = V>>(
        &self,
        deadline: Deadline,
        call: &mut CreateCall,
        request: impl Fn(ClientToken) -> R + Send + Sync,
    ) -> Result<cloud::Result<V::Id>> {
        match self.find_existing(deadline, call).await? {
            Some(id) => Ok(Ok(id)),
            None => self.create(deadline, call, request).await,
        }
    }

    /// Creates the resource that [`Self::find_existing`] did not find. Returns its ID or the cloud's rejection.
    pub(super) async fn create<R: CreateRequest<Row = V>>(
        &self,
        deadline: Deadline,
        call: &mut CreateCall,
        request: impl Fn(ClientToken) -> R + Send + Sync,
    ) -> Result<cloud::Result<V::Id>> {
        let name = [self.owner.cluster.as_str(), call.key.as_str()];
        let name = name.into_iter().chain(call.prior.deleted.as_deref());
        let name_token = ClientToken::derive(R::ACTION, name);
        let pending = call.prior.unresolved.as_ref();
        let token = pending
            .map_or(&name_token, |pending| &pending.token)
            .clone();
        let rejection = match self.send(deadline, call, &token, &request).await {
            Ok(id) => return Ok(Ok(id)),
            Err(rejection) => rejection,
        };
        let is_mismatch = rejection.kind() == Kind::TokenMismatch;
        let is_final = is_mismatch || is_final(&rejection);
        if !is_final && !rejection.failure().kind().is_final() {
            return Ok(Err(rejection));
        }
        // The rejection may be a repetition of one after which another token was used.
        let is_echo = is_mismatch || call.prior.rejections > 0;
        let is_open = self.attempts.get(&call.key).unresolved.is_some();
        let was_rejected = std::mem::replace(&mut call.is_rejected, true);
        let found = if is_mismatch && !was_rejected {
            self.poll_tags(deadline, call).await?
        } else if is_echo || is_open || !call.was_queried {
            self.query_tags(deadline, call).await?
        } else {
            None
        };
        if let Some(id) = found {
            return Ok(Ok(id));
        }
        if is_mismatch && !was_rejected && call.prior.rejections == 0 {
            // Another process has used the token for an unknown request.
            let pending = PendingRequest {
                since: Instant::now()
                    .checked_sub(EFFECT_DELAY)
                    .unwrap_or_else(Instant::now),
                ..PendingRequest::new(token.clone(), &request(token))
            };
            self.attempts.update(&call.key, |prior| {
                prior.unresolved.get_or_insert(pending);
            });
        }
        let is_free = self.is_resolved(deadline, call).await && is_echo && is_final;
        if !(is_free && self.excludes_earlier(deadline, call).await) {
            return Ok(Err(rejection));
        }
        // No resource has the name, so a token of the complete request is safe.
        let request_text = format!("{:?}", request(name_token));
        let parts = [request_text, call.prior.rejections.to_string()];
        let token = ClientToken::derive(R::ACTION, parts.iter().map(String::as_str));
        Ok(self.send(deadline, call, &token, &request).await)
    }

    /// Sends one request, which is unresolved until the cloud gives a final response.
    async fn send<R: CreateRequest<Row = V>>(
        &self,
        deadline: Deadline,
        call: &mut CreateCall,
        token: &ClientToken,
        request: impl Fn(ClientToken) -> R + Send + Sync,
    ) -> cloud::Result<V::Id> {
        let request = request(token.clone());
        let pending = PendingRequest::new(token.clone(), &request);
        let sent = request.send(self.ecs.as_ref(), deadline);
        let outcome = self.attempts.track(&call.key, pending, sent).await;
        if outcome.as_ref().is_err_and(is_final) && !call.is_counted {
            call.is_counted = true;
            self.attempts
                .update(&call.key, |prior| prior.rejections += 1);
        }
        outcome
    }

    /// Queries the tags until their index must be up to date.
    async fn poll_tags(&self, deadline: Deadline, call: &mut CreateCall) -> Result<Option<V::Id>> {
        for query in 1..=TAG_QUERIES {
            let found = self.query_tags(deadline, call).await?;
            if found.is_some() {
                return Ok(found);
            }
            let pause = Duration::from_millis(500) * query;
            let _ = deadline.bound(tokio::time::sleep(pause)).await;
        }
        Ok(None)
    }

    /// Whether no request of this process under the name can have taken effect. The tags were just queried without a result.
    async fn is_resolved(&self, deadline: Deadline, call: &mut CreateCall) -> bool {
        let Some(pending) = self.attempts.get(&call.key).unresolved else {
            return true;
        };
        let listing = &self.listing;
        let is_absent = listing.excludes(deadline, &call.key, pending.since);
        let is_absent = is_absent.await;
        if is_absent {
            call.prior.unresolved = None;
            self.attempts
                .update(&call.key, |prior| prior.unresolved = None);
        }
        is_absent
    }

    /// Whether no request of another replica under the name can have taken effect.
    async fn excludes_earlier(&self, deadline: Deadline, call: &CreateCall) -> bool {
        let since = self.journal.activity.active_since();
        self.listing
            .excludes_earlier(deadline, &call.key, since)
            .await
    }

    /// Whether the rejection excludes a resource of an earlier leader: the cloud rejects the credentials, which it checks
    /// first, or they lack the permission to create and the cluster owns no resource.
    fn is_denied(&self, error: &Error) -> bool {
        match error.failure() {
            Failure::NoCredentials
            | Failure::CredentialsExpired
            | Failure::AccessKeyNotFound
            | Failure::AccessKeyInactive
            | Failure::SignatureMismatch
            | Failure::ClockSkew
            | Failure::RoleNotAssumable => true,
            Failure::AccessDenied => self.listing.is_confirmed_empty(),
            _ => false,
        }
    }

    /// Records the outcome of a deletion, which also succeeds if the resource does not exist.
    pub(super) fn mark_deleted(&self, id: &V::Id, outcome: cloud::Result<()>) -> cloud::Result<()> {
        let Some(proof) = ConfirmedAbsent::from_deletion(&outcome) else {
            return outcome;
        };
        self.rows.record_absent(id, proof);
        Ok(())
    }

    /// Replaces a final error by [`Error::CreationUnresolved`] while a resource may exist that no caller has received.
    pub(super) async fn finish<T>(
        &self,
        deadline: Deadline,
        call: &CreateCall,
        id: impl Fn(&T) -> &V::Id,
        outcome: Result<T>,
    ) -> Result<T> {
        match outcome {
            Ok(created) => {
                let id = id(&created).to_string();
                self.attempts.resolve(&call.key, Some(&id), true);
                Ok(created)
            }
            // The outcome of the request is known.
            Err(error @ Error::AlreadyExists { .. }) => Err(error),
            Err(error)
                if error.failure_kind().is_final()
                    && (self.attempts.get(&call.key).may_exist()
                        || call.is_rejected
                            && !self.is_denied(&error)
                            && !self.excludes_earlier(deadline, call).await) =>
            {
                Err(Error::CreationUnresolved {
                    name: call.name.clone(),
                    source: Box::new(error),
                })
            }
            Err(error) => Err(error),
        }
    }
}
