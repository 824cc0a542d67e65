//! Create requests with a client token whose outcome is unknown. After a lost response the resource may exist, and no later
//! rejection proves the contrary: the cloud can check permissions, balance or stock before the token. Such a name stays
//! unresolved until the resource is found or its creation is excluded. After a restart, the token and the tags of the name
//! suffice.

use std::collections::HashMap;
use std::fmt::Debug;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use scopeguard::ScopeGuard;
use tokio::time::Instant;

use crate::cloud::{Error, Kind, Result};
use crate::model::ClientToken;

/// How many names without open orders are remembered.
const MOST: usize = 1000;
/// The name of a resource that was created after a refusal may be under another token than its first one, which alone
/// protects it. It is remembered until every listing in use began after its creation.
const LISTED: Duration = Duration::from_secs(13 * 3600);

/// The pasts of all names, each with its last change.
#[derive(Debug, Default)]
pub(super) struct AttemptHistory(Mutex<HashMap<String, (Instant, PriorAttempts)>>);

/// What earlier calls under one name, or for one disk, left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PriorAttempts {
    /// How many calls were refused: each may have used its token up. After a restart the same calls count the same.
    pub(super) refused: u32,
    pub(super) unresolved: Option<Order>,
    pub(super) created: Option<String>,
    is_told: bool,
    /// The disk or snapshot that the name had and that does not exist any more.
    pub(super) gone: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) token: ClientToken,
    pub(super) request: String,
    /// When its newest attempt ended, or began if it has not ended.
    pub(super) since: Instant,
}

impl Order {
    pub(super) fn new(token: ClientToken, request: &impl Debug) -> Self {
        Self {
            token,
            request: format!("{request:?}"),
            since: Instant::now(),
        }
    }
}

impl PriorAttempts {
    /// Whether a resource may exist that a caller does not have, at least if the response to it was lost.
    pub(super) fn is_open(&self) -> bool {
        self.unresolved.is_some() || self.created.is_some()
    }

    /// The newest attempt may take effect from now on.
    fn may_take_effect(&mut self) {
        let now = Instant::now();
        self.unresolved.iter_mut().for_each(|open| open.since = now);
    }

    /// Forgetting a name whose first token protects it is as safe as a restart.
    fn may_be_forgotten(&self, age: Duration) -> bool {
        !self.is_open() || self.is_told && (self.refused == 0 || age >= LISTED)
    }
}

impl AttemptHistory {
    pub(super) fn of(&self, name: &str) -> PriorAttempts {
        let past = self.lock().get(name).map(|(_, past)| past.clone());
        past.unwrap_or_default()
    }

    /// Updates the history of a name and removes it once it is empty.
    pub(super) fn note(&self, name: &str, change: impl FnOnce(&mut PriorAttempts)) {
        let mut pasts = self.lock();
        // Names that nobody asks for again must not add up; only what may exist is never forgotten.
        if pasts.len() >= MOST && !pasts.contains_key(name) {
            let settled = pasts
                .iter()
                .filter(|(_, (changed, past))| past.may_be_forgotten(changed.elapsed()));
            let oldest = settled.min_by_key(|(_, (changed, _))| *changed);
            if let Some(oldest) = oldest.map(|(name, _)| name.clone()) {
                pasts.remove(&oldest);
            }
        }
        let now = Instant::now();
        let (changed, past) = pasts
            .entry(name.to_owned())
            .or_insert_with(|| (now, PriorAttempts::default()));
        *changed = now;
        change(past);
        if *past == PriorAttempts::default() {
            pasts.remove(name);
        }
    }

    /// Sends an order. It counts as unresolved until the cloud has answered it for good, also if this future is
    /// dropped; an earlier one that is unresolved stays so unless this one succeeds.
    pub(super) async fn track<T: ToString>(
        &self,
        name: &str,
        order: Order,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let earlier = self.of(name).unresolved;
        let open = Order {
            since: order.since,
            ..earlier.clone().unwrap_or(order)
        };
        self.note(name, |past| past.unresolved = Some(open));
        // If this future is dropped, its newest attempt may take effect from then on.
        let cut_off = scopeguard::guard((), |()| self.note(name, PriorAttempts::may_take_effect));
        let outcome = call.await;
        ScopeGuard::into_inner(cut_off);
        match &outcome {
            Ok(id) => self.resolve(name, Some(&id.to_string()), false),
            Err(error) if error.may_have_taken_effect() => {
                self.note(name, PriorAttempts::may_take_effect);
            }
            Err(_) => self.note(name, |past| past.unresolved = earlier),
        }
        outcome
    }

    /// It is known which resource the name has, if any, and whether a caller has it.
    pub(super) fn resolve(&self, name: &str, created: Option<&str>, is_told: bool) {
        self.note(name, |past| {
            past.unresolved = None;
            past.created = created.map(str::to_owned);
            past.is_told = is_told;
        });
    }

    /// The resource of the name does not exist any more, though its token still names it.
    pub(super) fn forget(&self, name: &str, id: &str) {
        self.note(name, |past| {
            *past = PriorAttempts {
                gone: Some(id.to_owned()),
                ..PriorAttempts::default()
            };
        });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, PriorAttempts)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the cloud has decided and nothing was done. Anything else may have taken effect; only of
/// a decided call can the token be used up.
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

    fn order() -> Order {
        Order::new(ClientToken::derive("test", ["a"]), &"a")
    }

    fn refused(code: &str) -> Result<String> {
        Err(Error::from_response("CreateDisk", 403, code))
    }

    #[test]
    fn a_name_that_ended_well_leaves_nothing_behind() {
        let history = AttemptHistory::default();
        history.note("pvc-1", |past| past.refused += 1);
        assert_eq!(history.of("pvc-1").refused, 1);
        history.note("pvc-1", |past| past.refused = 0);
        assert!(history.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn names_that_nobody_asks_for_again_do_not_add_up_unless_something_may_exist() {
        let history = AttemptHistory::default();
        for n in 0..3 * MOST {
            history.resolve(&format!("told-{n}"), Some("d-1"), true);
            history.note(&format!("pvc-{n}"), |past| past.refused += 1);
        }
        assert_eq!(history.lock().len(), MOST);
        assert_eq!(history.of(&format!("pvc-{}", 3 * MOST - 1)).refused, 1);
        for n in 0..3 * MOST {
            let call = async { refused("InternalError") };
            let lost = history.track(&format!("lost-{n}"), order(), call).await;
            assert!(lost.is_err());
        }
        let open = |n| history.of(&format!("lost-{n}")).is_open();
        assert!((0..3 * MOST).all(open));
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_names_are_forgotten_first_and_none_that_only_a_later_token_protects() {
        let history = AttemptHistory::default();
        let second = Duration::from_secs(1);
        history.note("refused", |past| past.refused += 1);
        history.resolve("refused", Some("d-0"), true);
        for n in 0..2 * MOST {
            tokio::time::advance(second).await;
            history.resolve(&format!("told-{n}"), Some("d-1"), true);
        }
        let is_known = |name: &str| history.of(name).created.is_some();
        assert!(is_known("refused"));
        let known = (0..2 * MOST).filter(|n| is_known(&format!("told-{n}")));
        assert!(known.eq(MOST + 1..2 * MOST));
        // By now every listing in use has it.
        tokio::time::advance(LISTED).await;
        history.resolve("another", Some("d-2"), true);
        assert!(!is_known("refused"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_settles_its_own_order_and_no_earlier_one() {
        let history = AttemptHistory::default();
        let track = async |code: &'static str| {
            let call = async move { refused(code) };
            assert!(history.track("pvc-1", order(), call).await.is_err());
            history.of("pvc-1").is_open()
        };
        assert!(!track("OperationDenied.NoStock").await);
        assert!(!track("Forbidden.RAM").await);
        assert!(track("InternalError").await);
        for code in ["OperationDenied.NoStock", "Forbidden.RAM", "Throttling"] {
            assert!(track(code).await, "{code}");
        }
        let made = history.track("pvc-1", order(), async { Ok("d-1".to_owned()) });
        assert!(made.await.is_ok());
        assert_eq!(history.of("pvc-1").created.as_deref(), Some("d-1"));
    }

    #[tokio::test(start_paused = true)]
    async fn an_order_that_is_cut_off_stays_unresolved() {
        let history = AttemptHistory::default();
        let call = history.track("pvc-1", order(), std::future::pending::<Result<String>>());
        let second = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(second, call).await.is_err());
        assert!(history.of("pvc-1").is_open());
    }
}
