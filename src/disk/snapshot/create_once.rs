//! Creating a snapshot or group at most once under its name, whatever became of earlier calls.
//!
//! The token contains the cluster and the name only: a call that requests anything else under the name is answered with
//! a mismatch, and then the tags tell. A refused call may have used the token up, and is answered the same for a day:
//! such a name continues under a token of the whole request.
//!
//! Once a call may have taken effect, no error under its name is final until that is resolved: by a response to the same
//! token, by the tags, or by a listing that returns other resources but not this one.

use std::fmt::Display;
use std::future::Future;
use std::str::FromStr;

use tokio::time::Instant;

use super::Snapshotter;
use crate::base::Deadline;
use crate::cloud::{self as api, Kind};
use crate::disk::Result;
use crate::disk::attempts::{Order, is_final};
use crate::disk::ownership_listing::{EFFECT, Listed, OwnershipListing};
use crate::disk::tag_index::lagging;
use crate::model::ClientToken;

pub(super) trait Request: Sync {
    /// The id that the cloud gives it.
    type Id: FromStr + Display + Send + Sync;

    /// The action that creates it.
    const ACTION: &'static str;

    /// The name within this process.
    fn key(&self) -> String;

    /// What else the request contains.
    fn content(&self) -> Vec<&str>;

    /// The resources of its kind.
    fn listing<'a>(&self, snapshotter: &'a Snapshotter) -> &'a OwnershipListing;

    /// Calls the cloud once.
    fn send(
        &self,
        snapshotter: &Snapshotter,
        deadline: Deadline,
        token: ClientToken,
    ) -> impl Future<Output = api::Result<Self::Id>> + Send;

    /// The oldest resource of this name, by its tags, except the one that is gone.
    fn find(
        &self,
        snapshotter: &Snapshotter,
        deadline: Deadline,
        gone: Option<&str>,
    ) -> impl Future<Output = Result<Option<Self::Id>>> + Send;
}

impl Snapshotter {
    /// The resource of this name, whose creation begins unless it exists; or the cloud's refusal. One that `failed` is
    /// replaced.
    pub(super) async fn create_once<R: Request>(
        &self,
        deadline: Deadline,
        new: &R,
        failed: Option<&R::Id>,
    ) -> Result<api::Result<R::Id>> {
        let key = new.key();
        let past = self.attempts.of(&key);
        let created = past.created.as_deref().and_then(|id| id.parse().ok());
        if failed.is_none()
            && let Some(id) = created
        {
            return Ok(Ok(id));
        }
        let gone = failed.map(ToString::to_string).or(past.gone);
        let gone = gone.as_deref();
        let find = async || {
            let found = new.find(self, deadline, gone).await?;
            Ok(found.inspect(|id| self.attempts.found(&key, &id.to_string())))
        };
        let is_resolved = past.unresolved.is_none();
        let found = match new.listing(self).find(deadline, &key).await {
            Listed::No if is_resolved => None,
            Listed::As(ids) if ids.len() == 1 && gone != Some(ids[0].as_str()) => {
                let id: Option<R::Id> = ids[0].parse().ok();
                id.inspect(|_| self.attempts.found(&key, &ids[0]))
            }
            Listed::No | Listed::As(_) | Listed::Unknown => find().await?,
        };
        if let Some(id) = found {
            return Ok(Ok(id));
        }
        let cluster = self.owner.cluster.as_str();
        let name = [cluster, key.as_str()].into_iter().chain(gone);
        let token = match past.unresolved {
            Some(order) => order.token,
            None => ClientToken::derive(R::ACTION, name.clone()),
        };
        let refusal = match self.order(deadline, new, token.clone()).await {
            Ok(id) => return Ok(Ok(id)),
            Err(refusal) => refusal,
        };
        let is_mismatch = refusal.kind() == Kind::TokenMismatch;
        let is_used_up = is_mismatch || (is_final(&refusal) && past.refused > 0);
        let found = match is_mismatch {
            true => lagging(deadline, find).await?,
            // The echo of an earlier refusal; or another snapshot is being created, perhaps this one.
            false if is_final(&refusal) || refusal.failure().meaning().is_final() => find().await?,
            false => None,
        };
        if let Some(id) = found {
            return Ok(Ok(id));
        }
        let unresolved = self.attempts.of(&key).unresolved;
        // The token of another process, of which nothing is known.
        let is_foreign = is_mismatch && past.refused == 0;
        let since = match unresolved {
            Some(order) => Some(order.since),
            None if is_foreign => Instant::now().checked_sub(EFFECT),
            None => None,
        };
        if let Some(since) = since {
            let listing = new.listing(self);
            let is_absent = listing.proves_absent(deadline, &key, since).await;
            self.attempts.note(&key, |past| {
                past.unresolved = match is_absent {
                    true => None,
                    false => past.unresolved.take().or(Some(Order {
                        candidate: None,
                        token,
                        since,
                    })),
                };
            });
            if !is_absent {
                return Ok(Err(refusal));
            }
        }
        if !is_used_up {
            return Ok(Err(refusal));
        }
        // Nothing carries the name, so a token of the whole request is safe.
        let refused = past.refused.to_string();
        let whole = name.chain(new.content()).chain([refused.as_str()]);
        let token = ClientToken::derive(R::ACTION, whole);
        Ok(self.order(deadline, new, token).await)
    }

    /// One call, which counts as unresolved until it is answered for good.
    async fn order<R: Request>(
        &self,
        deadline: Deadline,
        new: &R,
        token: ClientToken,
    ) -> api::Result<R::Id> {
        let call = new.send(self, deadline, token.clone());
        let order = Order::new(token, None);
        self.attempts.track(&new.key(), order, call).await
    }
}
