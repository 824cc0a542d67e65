//! Creating a disk, snapshot or snapshot group at most once under its name, whatever became of earlier calls.
//!
//! The token contains the cluster and the name only: a call that requests anything else under the name is answered with
//! a mismatch, and then the tags tell. A refused call may have used the token up, and is answered the same for a day:
//! such a name continues under a token of the whole request.
//!
//! Once an order may have taken effect, all others under its name have its token, and no error is final until that is
//! resolved: by a response to the token, by the tags, or by a listing that returns other resources but not this one.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::attempts::{AttemptHistory, Order, PriorAttempts, is_final};
use super::dependencies::Dependencies;
use super::error::{Error, Result, cloud};
use super::journal::Journal;
use super::owned::{CreateRequest, Owned};
use super::ownership::{Owner, key_of};
use super::ownership_listing::{EFFECT, Listed, OwnershipListing};
use crate::base::Deadline;
use crate::cloud::view::{ConfirmedAbsent, Poller};
use crate::cloud::{self, EcsApi, Kind};
use crate::model::{ClientToken, Failure, Tags};

/// Lookups by tags, which are indexed late, for what has used a token.
const LOOKS_FOR_LAGGING_TAGS: u32 = 5;

#[derive(Debug)]
pub(super) struct Creator<V: Owned> {
    ecs: Arc<dyn EcsApi>,
    owner: Owner,
    pub(super) rows: Arc<Poller<V::Id, V>>,
    pub(super) attempts: AttemptHistory,
    pub(super) listing: OwnershipListing,
    journal: Arc<Journal>,
}

#[derive(Debug)]
pub(super) struct Call {
    pub(super) name: String,
    pub(super) key: String,
    tags: Tags,
    pub(super) past: PriorAttempts,
    looked_up: bool,
    /// Whether an order of this call was refused. Then the token may be used up by it.
    is_refused: bool,
    is_counted: bool,
}

impl<V: Owned> Creator<V> {
    pub(super) fn new(shared: &Dependencies, rows: Arc<Poller<V::Id, V>>) -> Self {
        Self {
            listing: OwnershipListing::of::<V>(shared),
            attempts: AttemptHistory::default(),
            ecs: Arc::clone(&shared.ecs),
            owner: shared.owner.clone(),
            rows,
            journal: Arc::clone(&shared.journal),
        }
    }

    /// A call for the resource that has this name and is found by these tags.
    pub(super) fn call(&self, name: &str, tags: Tags) -> Call {
        self.journal.activity.note();
        let key = key_of(&tags).unwrap_or_default();
        Call {
            past: self.attempts.of(&key),
            name: name.to_owned(),
            key,
            tags,
            looked_up: false,
            is_refused: false,
            is_counted: false,
        }
    }

    /// What an earlier call has created, as far as this process knows: from its own orders, the ownership listing, or the
    /// tags. The token protects a name that is not in the listing.
    pub(super) async fn earlier(
        &self,
        deadline: Deadline,
        call: &mut Call,
    ) -> Result<Option<V::Id>> {
        let created = call.past.created.as_deref();
        let is_gone = |id: &str| call.past.gone.as_deref() == Some(id);
        if let Some(id) = created.filter(|id| !is_gone(id))
            && let Ok(id) = id.parse()
        {
            return Ok(Some(id));
        }
        match self.listing.find(deadline, &call.key).await {
            Listed::No if call.past.unresolved.is_none() => Ok(None),
            Listed::As(id) if !is_gone(&id) => {
                self.attempts.resolve(&call.key, Some(&id), false);
                Ok(id.parse().ok())
            }
            Listed::No | Listed::As(_) | Listed::Unknown => self.look_up(deadline, call).await,
        }
    }

    async fn look_up(&self, deadline: Deadline, call: &mut Call) -> Result<Option<V::Id>> {
        call.looked_up = true;
        let gone = call.past.gone.as_deref();
        let found = self.named(deadline, &call.name, &call.tags, gone).await?;
        let id = found.map(|row| row.id().clone());
        if let Some(id) = &id {
            self.attempts
                .resolve(&call.key, Some(&id.to_string()), false);
        }
        Ok(id)
    }

    /// The oldest resource of the name, by its tags, but the one that is gone: a caller may have that one. None if there
    /// is none yet, or the tag index lags.
    pub(super) async fn named(
        &self,
        deadline: Deadline,
        name: &str,
        tags: &Tags,
        gone: Option<&str>,
    ) -> Result<Option<V>> {
        let step = || format!("find an earlier {} of {name:?}", V::KIND);
        let page = V::page(self.ecs.as_ref(), deadline, tags.clone(), None).await;
        let page = page.map_err(cloud(step()))?;
        // A row that cannot be read may be the one: another one must not be created.
        if let Some(row) = page.unreadable.into_iter().next() {
            let error = cloud::Error::new(Kind::Ambiguous, V::DESCRIBE).with_source(row);
            return Err(cloud(step())(error));
        }
        let mut rows = page.rows;
        rows.retain(|row| {
            let id = row.id();
            self.rows.known_absent(id).is_none() && gone != Some(id.to_string().as_str())
        });
        if rows.len() > 1 {
            let ids: Vec<_> = rows.iter().map(|row| row.id().to_string()).collect();
            let ids = ids.join(",");
            tracing::error!(name, ids, "one name has several {}s", V::KIND);
        }
        let oldest = rows.into_iter();
        Ok(oldest.min_by_key(|row| (row.created(), row.id().clone())))
    }

    pub(super) async fn after_refusal(
        &self,
        deadline: Deadline,
        call: &mut Call,
    ) -> Result<Option<V::Id>> {
        call.is_refused = true;
        self.look_up(deadline, call).await
    }

    /// The resource of [`Self::earlier`], or else of a new order: its id, or the cloud's refusal.
    pub(super) async fn find_or_order<R: CreateRequest<Row = V>>(
        &self,
        deadline: Deadline,
        call: &mut Call,
        request: impl Fn(ClientToken) -> R + Send + Sync,
    ) -> Result<cloud::Result<V::Id>> {
        match self.earlier(deadline, call).await? {
            Some(id) => Ok(Ok(id)),
            None => self.order(deadline, call, request).await,
        }
    }

    /// Requests the resource that [`Self::earlier`] does not know of: its id, or the cloud's refusal.
    pub(super) async fn order<R: CreateRequest<Row = V>>(
        &self,
        deadline: Deadline,
        call: &mut Call,
        request: impl Fn(ClientToken) -> R + Send + Sync,
    ) -> Result<cloud::Result<V::Id>> {
        let name = [self.owner.cluster.as_str(), call.key.as_str()];
        let name = name.into_iter().chain(call.past.gone.as_deref());
        let of_name = ClientToken::derive(R::ACTION, name);
        let open = call.past.unresolved.as_ref();
        let token = open.map_or(&of_name, |order| &order.token).clone();
        let refusal = match self.send(deadline, call, &token, &request).await {
            Ok(id) => return Ok(Ok(id)),
            Err(refusal) => refusal,
        };
        let is_mismatch = refusal.kind() == Kind::TokenMismatch;
        let is_final = is_mismatch || is_final(&refusal);
        if !is_final && !refusal.failure().kind().is_final() {
            return Ok(Err(refusal));
        }
        // The refusal may be the echo of one after which another token has served.
        let is_echo = is_mismatch || call.past.refused > 0;
        let is_open = self.attempts.of(&call.key).unresolved.is_some();
        let was_refused = std::mem::replace(&mut call.is_refused, true);
        let found = if is_mismatch && !was_refused {
            self.look_up_lagging(deadline, call).await?
        } else if is_echo || is_open || !call.looked_up {
            self.look_up(deadline, call).await?
        } else {
            None
        };
        if let Some(id) = found {
            return Ok(Ok(id));
        }
        if is_mismatch && !was_refused && call.past.refused == 0 {
            // Another process has used it. What for is not known.
            let order = Order {
                since: Instant::now()
                    .checked_sub(EFFECT)
                    .unwrap_or_else(Instant::now),
                ..Order::new(token.clone(), &request(token))
            };
            self.attempts.note(&call.key, |past| {
                past.unresolved.get_or_insert(order);
            });
        }
        let is_free = self.is_settled(deadline, call).await && is_echo && is_final;
        if !(is_free && self.excludes_earlier(deadline, call).await) {
            return Ok(Err(refusal));
        }
        // Nothing has the name, so that a token of the whole request is safe.
        let whole = format!("{:?}", request(of_name));
        let parts = [whole, call.past.refused.to_string()];
        let token = ClientToken::derive(R::ACTION, parts.iter().map(String::as_str));
        Ok(self.send(deadline, call, &token, &request).await)
    }

    /// One call, which counts as unresolved until it is answered for good.
    async fn send<R: CreateRequest<Row = V>>(
        &self,
        deadline: Deadline,
        call: &mut Call,
        token: &ClientToken,
        request: impl Fn(ClientToken) -> R + Send + Sync,
    ) -> cloud::Result<V::Id> {
        let request = request(token.clone());
        let order = Order::new(token.clone(), &request);
        let sent = request.send(self.ecs.as_ref(), deadline);
        let outcome = self.attempts.track(&call.key, order, sent).await;
        if outcome.as_ref().is_err_and(is_final) && !call.is_counted {
            call.is_counted = true;
            self.attempts.note(&call.key, |past| past.refused += 1);
        }
        outcome
    }

    /// Queries the name again until the tag index must be up to date.
    async fn look_up_lagging(&self, deadline: Deadline, call: &mut Call) -> Result<Option<V::Id>> {
        for look in 1..=LOOKS_FOR_LAGGING_TAGS {
            let found = self.look_up(deadline, call).await?;
            if found.is_some() {
                return Ok(found);
            }
            let pause = Duration::from_millis(500) * look;
            let _ = deadline.bound(tokio::time::sleep(pause)).await;
        }
        Ok(None)
    }

    /// Whether no order of this process under the name, which was just looked up in vain, can have taken effect.
    async fn is_settled(&self, deadline: Deadline, call: &mut Call) -> bool {
        let Some(order) = self.attempts.of(&call.key).unresolved else {
            return true;
        };
        let listing = &self.listing;
        let is_absent = listing.proves_absent(deadline, &call.key, order.since);
        let is_absent = is_absent.await;
        if is_absent {
            call.past.unresolved = None;
            self.attempts.note(&call.key, |past| past.unresolved = None);
        }
        is_absent
    }

    /// Whether no order of another replica under the name can have taken effect.
    async fn excludes_earlier(&self, deadline: Deadline, call: &Call) -> bool {
        let since = self.journal.activity.since();
        self.listing
            .excludes_earlier(deadline, &call.key, since)
            .await
    }

    /// Whether the credentials themselves are refused, which the cloud checks before anything else, or lack the right to
    /// create, where nothing was ever created: nothing of an earlier leader is behind such a refusal.
    fn is_denied(&self, error: &Error) -> bool {
        match error.failure() {
            Failure::NoCredentials
            | Failure::CredentialsExpired
            | Failure::AccessKeyNotFound
            | Failure::AccessKeyInactive
            | Failure::SignatureMismatch
            | Failure::ClockSkew
            | Failure::RoleNotAssumable => true,
            Failure::AccessDenied => self.listing.is_empty(),
            _ => false,
        }
    }

    /// The outcome of a deletion, which also succeeds if the resource does not exist.
    pub(super) fn deleted(&self, id: &V::Id, outcome: cloud::Result<()>) -> cloud::Result<()> {
        let Some(proof) = ConfirmedAbsent::from_deletion(&outcome) else {
            return outcome;
        };
        self.rows.record_absent(id, proof);
        Ok(())
    }

    /// The outcome of the call, with a final error withheld while a resource may exist that no caller has.
    pub(super) async fn conclude<T>(
        &self,
        deadline: Deadline,
        call: &Call,
        id: impl Fn(&T) -> &V::Id,
        outcome: Result<T>,
    ) -> Result<T> {
        match outcome {
            Ok(created) => {
                let id = id(&created).to_string();
                self.attempts.resolve(&call.key, Some(&id), true);
                Ok(created)
            }
            // It is known what became of the order.
            Err(error @ Error::Exists { .. }) => Err(error),
            Err(error)
                if error.failure_kind().is_final()
                    && (self.attempts.of(&call.key).is_open()
                        || call.is_refused
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
