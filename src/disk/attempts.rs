//! Create requests with a client token whose outcome is unknown. After a lost response the resource may exist, and no later
//! rejection proves the contrary: the cloud can check permissions, balance or stock before the token. Such a name stays
//! unresolved until the resource is found or its creation is excluded, after a restart by the token and the tags.

use std::collections::HashMap;
use std::fmt::Debug;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use scopeguard::ScopeGuard;
use tokio::time::Instant;

use crate::cloud::{Error, Kind, Result};
use crate::model::ClientToken;

/// Maximum number of names without an unresolved request.
const MAX_RESOLVED: usize = 1000;
/// How long the name of a resource created after a rejection is kept: until every listing in use started after its
/// creation. Its first token may not protect it.
const LISTING_TTL: Duration = Duration::from_secs(13 * 3600);

/// The prior attempts of each name, with the time of the last change.
#[derive(Debug, Default)]
pub(super) struct AttemptHistory(Mutex<HashMap<String, (Instant, PriorAttempts)>>);

/// The results of prior calls under one name, or for one disk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PriorAttempts {
    /// The number of rejected calls, each of which may have consumed its token. Part of the next token, which is therefore
    /// the same after a restart.
    pub(super) rejections: u32,
    pub(super) unresolved: Option<PendingRequest>,
    pub(super) created: Option<String>,
    /// Whether a caller has received the created resource.
    is_reported: bool,
    /// The disk or snapshot of the name that no longer exists.
    pub(super) deleted: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingRequest {
    pub(super) token: ClientToken,
    pub(super) request: String,
    /// When the latest attempt ended, or started if it has not ended.
    pub(super) since: Instant,
}

impl PendingRequest {
    pub(super) fn new(token: ClientToken, request: &impl Debug) -> Self {
        Self {
            token,
            request: format!("{request:?}"),
            since: Instant::now(),
        }
    }
}

impl PriorAttempts {
    /// Whether a resource may exist that no caller has received.
    pub(super) fn may_exist(&self) -> bool {
        self.unresolved.is_some() || self.created.is_some()
    }

    /// Records that the latest attempt may take effect after this time.
    fn mark_in_flight(&mut self) {
        let now = Instant::now();
        self.unresolved.iter_mut().for_each(|open| open.since = now);
    }

    /// Whether removal is as safe as a restart: the first token still protects the name.
    fn is_removable(&self, age: Duration) -> bool {
        !self.may_exist() || self.is_reported && (self.rejections == 0 || age >= LISTING_TTL)
    }
}

impl AttemptHistory {
    pub(super) fn get(&self, name: &str) -> PriorAttempts {
        let prior = self.lock().get(name).map(|(_, prior)| prior.clone());
        prior.unwrap_or_default()
    }

    /// Updates the history of a name and removes it once it is empty.
    pub(super) fn update(&self, name: &str, change: impl FnOnce(&mut PriorAttempts)) {
        let mut histories = self.lock();
        // Bounds the memory for names that are never requested again. Unresolved names are kept.
        if histories.len() >= MAX_RESOLVED && !histories.contains_key(name) {
            let removable = histories
                .iter()
                .filter(|(_, (changed, prior))| prior.is_removable(changed.elapsed()));
            let oldest = removable.min_by_key(|(_, (changed, _))| *changed);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                histories.remove(&oldest);
            }
        }
        let now = Instant::now();
        let (changed, prior) = histories
            .entry(name.to_owned())
            .or_insert_with(|| (now, PriorAttempts::default()));
        *changed = now;
        change(prior);
        if *prior == PriorAttempts::default() {
            histories.remove(name);
        }
    }

    /// Sends a request, which is unresolved until the cloud gives a final response, also if this future is dropped. An
    /// earlier unresolved request stays so unless this one succeeds.
    pub(super) async fn track<T: ToString>(
        &self,
        name: &str,
        request: PendingRequest,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let earlier = self.get(name).unresolved;
        let open = PendingRequest {
            since: request.since,
            ..earlier.clone().unwrap_or(request)
        };
        self.update(name, |prior| prior.unresolved = Some(open));
        // If this future is dropped, its latest attempt may take effect after that.
        let cut_off = scopeguard::guard((), |()| self.update(name, PriorAttempts::mark_in_flight));
        let outcome = call.await;
        ScopeGuard::into_inner(cut_off);
        match &outcome {
            Ok(id) => self.resolve(name, Some(&id.to_string()), false),
            Err(error) if error.may_have_taken_effect() => {
                self.update(name, PriorAttempts::mark_in_flight);
            }
            Err(_) => self.update(name, |prior| prior.unresolved = earlier),
        }
        outcome
    }

    /// Records the resource of the name, if any, and whether a caller has received it.
    pub(super) fn resolve(&self, name: &str, created: Option<&str>, is_reported: bool) {
        self.update(name, |prior| {
            prior.unresolved = None;
            prior.created = created.map(str::to_owned);
            prior.is_reported = is_reported;
        });
    }

    /// Records that the resource of the name no longer exists, although its token still returns it.
    pub(super) fn forget(&self, name: &str, id: &str) {
        self.update(name, |prior| {
            *prior = PriorAttempts {
                deleted: Some(id.to_owned()),
                ..PriorAttempts::default()
            };
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, PriorAttempts)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the error is a decision of the cloud that had no effect. Only such a decision can consume the token.
pub(super) fn is_final(error: &Error) -> bool {
    matches!(
        error.kind(),
        Kind::OutOfStock
            | Kind::Quota
            | Kind::Precondition
            | Kind::OutOfRange
            | Kind::Bug
            | Kind::Invalid
            | Kind::Conflict
            | Kind::NotFound
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> PendingRequest {
        PendingRequest::new(ClientToken::derive("test", ["a"]), &"a")
    }

    fn rejected(code: &str) -> Result<String> {
        Err(Error::from_response("CreateDisk", 403, code))
    }

    #[test]
    fn empty_history_is_removed() {
        let history = AttemptHistory::default();
        history.update("pvc-1", |prior| prior.rejections += 1);
        assert_eq!(history.get("pvc-1").rejections, 1);
        history.update("pvc-1", |prior| prior.rejections = 0);
        assert!(history.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn resolved_names_are_bounded_and_unresolved_names_are_kept() {
        let history = AttemptHistory::default();
        for n in 0..3 * MAX_RESOLVED {
            history.resolve(&format!("reported-{n}"), Some("d-1"), true);
            history.update(&format!("pvc-{n}"), |prior| prior.rejections += 1);
        }
        assert_eq!(history.lock().len(), MAX_RESOLVED);
        assert_eq!(
            history
                .get(&format!("pvc-{}", 3 * MAX_RESOLVED - 1))
                .rejections,
            1
        );
        for n in 0..3 * MAX_RESOLVED {
            let call = async { rejected("InternalError") };
            let lost = history.track(&format!("lost-{n}"), request(), call).await;
            assert!(lost.is_err());
        }
        let open = |n| history.get(&format!("lost-{n}")).may_exist();
        assert!((0..3 * MAX_RESOLVED).all(open));
    }

    #[tokio::test(start_paused = true)]
    async fn oldest_names_are_removed_first_except_those_under_a_later_token() {
        let history = AttemptHistory::default();
        let second = Duration::from_secs(1);
        history.update("rejected", |prior| prior.rejections += 1);
        history.resolve("rejected", Some("d-0"), true);
        for n in 0..2 * MAX_RESOLVED {
            tokio::time::advance(second).await;
            history.resolve(&format!("reported-{n}"), Some("d-1"), true);
        }
        let is_known = |name: &str| history.get(name).created.is_some();
        assert!(is_known("rejected"));
        let known = (0..2 * MAX_RESOLVED).filter(|n| is_known(&format!("reported-{n}")));
        assert!(known.eq(MAX_RESOLVED + 1..2 * MAX_RESOLVED));
        // Now every listing in use contains it.
        tokio::time::advance(LISTING_TTL).await;
        history.resolve("another", Some("d-2"), true);
        assert!(!is_known("rejected"));
    }

    #[tokio::test(start_paused = true)]
    async fn rejection_resolves_only_its_own_request() {
        let history = AttemptHistory::default();
        let track = async |code: &'static str| {
            let call = async move { rejected(code) };
            assert!(history.track("pvc-1", request(), call).await.is_err());
            history.get("pvc-1").may_exist()
        };
        assert!(!track("OperationDenied.NoStock").await);
        assert!(!track("Forbidden.RAM").await);
        assert!(track("InternalError").await);
        for code in ["OperationDenied.NoStock", "Forbidden.RAM", "Throttling"] {
            assert!(track(code).await, "{code}");
        }
        let created = history.track("pvc-1", request(), async { Ok("d-1".to_owned()) });
        assert!(created.await.is_ok());
        assert_eq!(history.get("pvc-1").created.as_deref(), Some("d-1"));
    }

    #[tokio::test(start_paused = true)]
    async fn dropped_request_stays_unresolved() {
        let history = AttemptHistory::default();
        let call = history.track("pvc-1", request(), std::future::pending::<Result<String>>());
        let second = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(second, call).await.is_err());
        assert!(history.get("pvc-1").may_exist());
    }
}
