//! The names of recent creations.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ecs::{Error, Kind, Result};
use scopeguard::ScopeGuard;
use tokio::time::Instant;

use super::name::{Event, Name, NameState, Pending};

/// Maximum number of names without an unresolved request.
const MAX_RESOLVED: usize = 1000;
/// How long the name of a resource created after a refusal is kept: until every listing in use began after its
/// creation. The first token of the name may not protect it.
const LISTING_TTL: Duration = Duration::from_secs(13 * 3600);

/// Each name with the time of its last change.
#[derive(Debug, Default)]
pub(in crate::disk) struct Names(Mutex<HashMap<String, (Instant, Name)>>);

impl Names {
    pub(in crate::disk) fn get(&self, key: &str) -> Name {
        let name = self.lock().get(key).map(|(_, name)| name.clone());
        name.unwrap_or_default()
    }

    /// Applies the event, and removes a name about which nothing is known.
    pub(super) fn apply(&self, key: &str, event: Event) {
        let mut names = self.lock();
        // Bounds the memory for names that are never requested again. Unresolved names are kept.
        if names.len() >= MAX_RESOLVED && !names.contains_key(key) {
            let removable = names
                .iter()
                .filter(|(_, (changed, name))| is_removable(name, changed.elapsed()));
            let oldest = removable.min_by_key(|(_, (changed, _))| *changed);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                names.remove(&oldest);
            }
        }
        let (_, name) = names.remove(key).unwrap_or_else(|| (Instant::now(), Name::default()));
        let name = name.after(event);
        if name != Name::default() {
            names.insert(key.to_owned(), (Instant::now(), name));
        }
    }

    /// Sends a request, which is unresolved until the cloud answers, also if this future is dropped.
    pub(super) async fn track<T: ToString>(
        &self,
        key: &str,
        request: Pending,
        call: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.apply(key, Event::Sent(request));
        // If this future is dropped, its latest attempt may take effect after that.
        let canceled = scopeguard::guard((), |()| self.apply(key, Event::Lost(Instant::now())));
        let outcome = call.await;
        ScopeGuard::into_inner(canceled);
        let event = match &outcome {
            Ok(id) => Event::Found(id.to_string()),
            Err(error) if error.may_have_taken_effect() => Event::Lost(Instant::now()),
            Err(error) => Event::Refused {
                may_consume_token: consumes_token(error),
            },
        };
        self.apply(key, event);
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, (Instant, Name)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether removal is as safe as a restart: the first token still protects the name.
fn is_removable(name: &Name, age: Duration) -> bool {
    match &name.state {
        NameState::Free => true,
        NameState::Unresolved(_) => false,
        NameState::Created { is_reported, .. } => *is_reported && (name.rejections == 0 || age >= LISTING_TTL),
    }
}

/// Whether the error is a decision of the cloud about the request, or about its token. Only such a decision can consume
/// the token.
pub(in crate::disk) fn consumes_token(error: &Error) -> bool {
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
            | Kind::TokenMismatch
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ClientToken;

    fn request() -> Pending {
        Pending::new(ClientToken::derive("test", ["a"]), &"a")
    }

    async fn refuse(names: &Names, key: &str, code: &str) {
        let call = async { Err::<String, _>(Error::from_response("CreateDisk", 403, code)) };
        names.track(key, request(), call).await.unwrap_err();
    }

    #[tokio::test(start_paused = true)]
    async fn resolved_names_are_bounded_and_unresolved_names_are_kept() {
        let names = Names::default();
        for n in 0..3 * MAX_RESOLVED {
            names.apply(&format!("reported-{n}"), Event::Reported("d-1".to_owned()));
        }
        assert_eq!(names.lock().len(), MAX_RESOLVED);
        for n in 0..2 * MAX_RESOLVED {
            refuse(&names, &format!("lost-{n}"), "InternalError").await;
        }
        assert!((0..2 * MAX_RESOLVED).all(|n| names.get(&format!("lost-{n}")).may_exist()));
    }

    #[tokio::test(start_paused = true)]
    async fn oldest_names_are_removed_first_except_those_under_a_later_token() {
        let names = Names::default();
        refuse(&names, "refused", "OperationDenied.NoStock").await;
        names.apply("refused", Event::Reported("d-0".to_owned()));
        for n in 0..2 * MAX_RESOLVED {
            tokio::time::advance(Duration::from_secs(1)).await;
            names.apply(&format!("reported-{n}"), Event::Reported("d-1".to_owned()));
        }
        let is_known = |key: &str| names.get(key).may_exist();
        assert!(is_known("refused"));
        let known = (0..2 * MAX_RESOLVED).filter(|n| is_known(&format!("reported-{n}")));
        assert!(known.eq(MAX_RESOLVED + 1..2 * MAX_RESOLVED));
        // Now every listing in use contains it.
        tokio::time::advance(LISTING_TTL).await;
        names.apply("another", Event::Reported("d-2".to_owned()));
        assert!(!is_known("refused"));
    }

    #[tokio::test(start_paused = true)]
    async fn refusal_resolves_only_its_own_request() {
        let names = Names::default();
        refuse(&names, "pvc-1", "OperationDenied.NoStock").await;
        refuse(&names, "pvc-1", "Forbidden.RAM").await;
        assert!(!names.get("pvc-1").may_exist());
        assert_eq!(names.get("pvc-1").rejections, 1);
        refuse(&names, "pvc-1", "InternalError").await;
        for code in ["OperationDenied.NoStock", "Forbidden.RAM", "Throttling"] {
            refuse(&names, "pvc-1", code).await;
            assert!(names.get("pvc-1").may_exist(), "{code}");
        }
        let created = names.track("pvc-1", request(), async { Ok("d-1".to_owned()) });
        assert!(created.await.is_ok());
        assert!(names.get("pvc-1").unresolved().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn dropped_request_stays_unresolved_from_its_end() {
        let names = Names::default();
        let call = names.track("pvc-1", request(), std::future::pending::<Result<String>>());
        let second = Duration::from_secs(1);
        assert!(tokio::time::timeout(second, call).await.is_err());
        assert_eq!(names.get("pvc-1").unresolved().unwrap().since, Instant::now());
    }
}
