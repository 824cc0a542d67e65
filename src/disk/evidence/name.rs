//! The known creations under each name: states, transitions without I/O, and requests.

use std::collections::HashMap;
use std::fmt::Debug;
use std::future::Future;
use std::sync::Mutex;
use std::time::Duration;

use ecs::{Error, Kind, Result};
use scopeguard::ScopeGuard;
use tokio::time::Instant;

use crate::base::lock;
use crate::model::ClientToken;

/// A create request that may have taken effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::disk) struct Pending {
    pub(in crate::disk) token: ClientToken,
    /// The complete content, to send the same request again.
    pub(in crate::disk) request: String,
    /// The end of the latest attempt, or its start if it has not ended.
    pub(super) since: Instant,
    /// Whether a response was lost. Otherwise the refusal of the only attempt resolves it.
    is_lost: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::disk) enum NameState {
    #[default]
    Free,
    Unresolved(Pending),
    /// The ID, and whether a caller has received it.
    Created {
        id: String,
        is_reported: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::disk) struct Name {
    pub(in crate::disk) state: NameState,
    /// The number of refused requests, each of which may have consumed its token. Part of the next token.
    pub(super) rejections: u32,
    /// The resource of the name that no longer exists. The token still returns it.
    pub(super) deleted: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    Sent(Pending),
    /// The response was lost, or the call was canceled.
    Lost(Instant),
    Refused {
        may_consume_token: bool,
    },
    /// The cloud accepted a request, or a row has the tags of the name.
    Found(String),
    Reported(String),
    /// A listing excludes that a request had an effect.
    Excluded,
    /// The resource no longer exists, or is not usable.
    Gone {
        id: String,
    },
}

impl Pending {
    pub(super) fn new(token: ClientToken, request: &impl Debug) -> Self {
        Self {
            token,
            request: format!("{request:?}"),
            since: Instant::now(),
            is_lost: false,
        }
    }
}

impl Name {
    /// Whether a resource may exist that no caller has received.
    pub(in crate::disk) fn may_exist(&self) -> bool {
        self.state != NameState::Free
    }

    pub(in crate::disk) fn unresolved(&self) -> Option<&Pending> {
        match &self.state {
            NameState::Unresolved(pending) => Some(pending),
            NameState::Free | NameState::Created { .. } => None,
        }
    }

    pub(super) fn after(mut self, event: Event) -> Self {
        use NameState::{Created, Free, Unresolved};
        self.state = match (self.state, event) {
            // The earlier request is repeated: its token stays, also if this one has other parameters.
            (Unresolved(earlier), Event::Sent(_)) => Unresolved(earlier),
            (_, Event::Sent(now)) => Unresolved(now),
            (Unresolved(pending), Event::Lost(since)) => Unresolved(Pending {
                since,
                is_lost: true,
                ..pending
            }),
            (Unresolved(pending), Event::Refused { may_consume_token }) => {
                self.rejections += u32::from(may_consume_token);
                match pending.is_lost {
                    true => Unresolved(pending),
                    false => Free,
                }
            }
            (Unresolved(_), Event::Excluded) => Free,
            (_, Event::Found(id)) => Created { id, is_reported: false },
            (_, Event::Reported(id)) => Created { id, is_reported: true },
            (_, Event::Gone { id }) => {
                self.rejections = 0;
                self.deleted = Some(id);
                Free
            }
            (state, Event::Lost(_) | Event::Refused { .. } | Event::Excluded) => state,
        };
        self
    }
}

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
        let name = lock(&self.0).get(key).map(|(_, name)| name.clone());
        name.unwrap_or_default()
    }

    /// Applies the event, and removes a name about which nothing is known.
    pub(super) fn apply(&self, key: &str, event: Event) {
        let mut names = lock(&self.0);
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

    /// Sends a request, which is unresolved until the cloud responds, also if this future is dropped.
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
    use proptest::prelude::*;

    use super::*;

    fn events() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(0_u8..8, 0..20)
    }

    proptest! {
        /// The state after any sequence of calls, against the history of what may have taken effect.
        #[test]
        fn name_is_free_only_if_no_request_may_take_effect(choices in events()) {
            let mut name = Name::default();
            // The token that may have taken effect; the created ID.
            let (mut lost, mut created): (Option<ClientToken>, Option<String>) = (None, None);
            for (number, choice) in choices.into_iter().enumerate() {
                if choice >= 5 {
                    let event = match choice {
                        5 => Event::Excluded,
                        6 => Event::Found("d-found".to_owned()),
                        _ => Event::Gone { id: "d-gone".to_owned() },
                    };
                    match choice {
                        5 => lost = None,
                        6 => (lost, created) = (None, Some("d-found".to_owned())),
                        _ => (lost, created) = (None, None),
                    }
                    name = name.after(event);
                } else if created.is_none() {
                    let fresh = ClientToken::derive("test", [number.to_string().as_str()]);
                    let token = name.unresolved().map_or(fresh, |pending| pending.token.clone());
                    prop_assert!(lost.as_ref().is_none_or(|lost| *lost == token));
                    name = name.after(Event::Sent(Pending::new(token.clone(), &number)));
                    prop_assert!(name.may_exist(), "a request in flight");
                    name = match choice {
                        0 => {
                            (lost, created) = (None, Some("d-1".to_owned()));
                            name.after(Event::Found("d-1".to_owned()))
                        }
                        1 | 2 => {
                            lost.get_or_insert(token);
                            name.after(Event::Lost(Instant::now()))
                        }
                        _ => {
                            let before = name.rejections;
                            let refused = name.after(Event::Refused { may_consume_token: choice == 3 });
                            prop_assert_eq!(refused.rejections, before + u32::from(choice == 3));
                            refused
                        }
                    };
                }
                prop_assert_eq!(name.may_exist(), lost.is_some() || created.is_some());
                prop_assert_eq!(name.unresolved().map(|pending| &pending.token), lost.as_ref());
            }
        }
    }

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
        assert_eq!(lock(&names.0).len(), MAX_RESOLVED);
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
