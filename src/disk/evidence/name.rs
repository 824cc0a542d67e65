//! What is known about the creations under one name: states and transitions, without I/O.

use std::fmt::Debug;

use tokio::time::Instant;

use crate::model::ClientToken;

/// A create request that may have taken effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::disk) struct Pending {
    pub(in crate::disk) token: ClientToken,
    /// The complete content, to send the same request again.
    pub(in crate::disk) request: String,
    /// The end of the latest attempt, or its start if it has not ended.
    pub(super) since: Instant,
    /// Whether an answer was lost. Otherwise the refusal of the only attempt resolves it.
    is_lost: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::disk) enum NameState {
    /// No request of this process may take effect.
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
    /// A request is about to be sent.
    Sent(Pending),
    /// The answer was lost, or the call was canceled.
    Lost(Instant),
    Refused {
        may_consume_token: bool,
    },
    /// The cloud accepted a request, or a row has the tags of the name.
    Found(String),
    /// A caller has received the resource.
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
}
