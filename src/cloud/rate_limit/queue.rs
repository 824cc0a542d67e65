//! The queues and limits of an account, and which call is sent next.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::limit::{Earliest, Limit, Shared};
use super::time::Now;
use super::{CallOutcome, Class};
use crate::base::Deadline;

/// The place of a call in its queue. The highest class is first, then the earliest deadline, then who came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    class: Class,
    deadline: Deadline,
    id: u64,
    action: &'static str,
}

#[derive(Debug, Default)]
pub(super) struct Queues {
    account: Limit,
    account_shared: Shared,
    apis: BTreeMap<&'static str, Limit>,
    shared: Shared,
    queues: BTreeMap<(Class, &'static str), Queue>,
    /// Calls whose turn has come, by id, and when that was.
    granted: HashMap<u64, Now>,
    next_id: u64,
}

/// The waiting calls of a class of an API.
#[derive(Debug, Default)]
struct Queue {
    waiting: BTreeMap<Place, Arc<Notify>>,
    /// How often it was passed over, so that none starves.
    passed_over: u32,
}

impl Queues {
    pub(super) fn new() -> Self {
        Self {
            account: Limit::new("account"),
            ..Self::default()
        }
    }

    /// Queues a call, which `wake` wakes whenever it should look again.
    pub(super) fn join(
        &mut self,
        action: &'static str,
        class: Class,
        deadline: Deadline,
        wake: &Arc<Notify>,
    ) -> Place {
        self.next_id += 1;
        let place = Place {
            class,
            deadline,
            id: self.next_id,
            action,
        };
        let unknown = || Limit::new(action);
        self.apis.entry(action).or_insert_with(unknown);
        let queue = self.queues.entry((class, action)).or_default();
        queue.waiting.insert(place, Arc::clone(wake));
        place
    }

    /// The time between two calls of the action at the learned rate, if there is one.
    pub(super) fn spacing(&self, action: &str) -> Duration {
        self.apis.get(action).map_or(Duration::ZERO, Limit::spacing)
    }

    /// Grants every call that may be sent now. Returns whether this one is among them or was before, otherwise when it
    /// may be sent, if it is the first of its queue; the others wait for that call.
    pub(super) fn poll(&mut self, place: Place, now: Now) -> Result<Now, Option<Earliest>> {
        self.dispatch(now);
        self.granted.remove(&place.id).ok_or_else(|| {
            let queue = self.queues.get(&(place.class, place.action))?;
            let is_first = queue.waiting.keys().next() == Some(&place);
            self.earliest(place, now).filter(|_| is_first)
        })
    }

    fn dispatch(&mut self, now: Now) {
        self.account.roll(now, &self.account_shared);
        for api in self.apis.values_mut() {
            api.roll(now, &self.shared);
        }
        while let Some((_, place)) = self.next(now) {
            self.grant(place, now);
        }
    }

    /// The call that is sent next: of a queue that was passed over too often, else of the highest class.
    fn next(&self, now: Now) -> Option<(bool, Place)> {
        let ready = self.queues.values().filter_map(|queue| {
            let place = *queue.waiting.keys().next()?;
            let is_ready = self.earliest(place, now)?.at <= now.at;
            let patience = if place.class == Class::List { 7 } else { 3 };
            is_ready.then_some((queue.passed_over < patience, place))
        });
        ready.min()
    }

    fn grant(&mut self, place: Place, now: Now) {
        self.granted.insert(place.id, now);
        self.account.send(now, &self.account_shared);
        if let Some(api) = self.apis.get_mut(place.action) {
            api.send(now, &self.shared);
        }
        for ((class, action), queue) in &mut self.queues {
            if let Some(wake) = queue.waiting.remove(&place) {
                wake.notify_one();
            }
            if queue.waiting.is_empty() || (*class, *action) == (place.class, place.action) {
                queue.passed_over = 0;
            } else if self.account.is_limited() || *action == place.action {
                queue.passed_over += 1;
            }
        }
        self.wake_first(place.action);
    }

    fn earliest(&self, place: Place, now: Now) -> Option<Earliest> {
        let account = Some(&self.account).filter(|account| account.is_limited());
        let by_account =
            account.map(|limit| limit.earliest(now, place.class, &self.account_shared));
        let api = self.apis.get(place.action);
        let by_api = api.map(|limit| limit.earliest(now, place.class, &self.shared));
        by_api.max(by_account)
    }

    /// Records how a call ended. One that is still in its queue leaves it; one whose turn came unnoticed gives it back.
    pub(super) fn end(&mut self, place: Place, sent: Option<Now>, outcome: CallOutcome, now: Now) {
        if let Some(sent) = sent {
            self.settle(place, sent, outcome, now);
        } else if let Some(sent) = self.granted.remove(&place.id) {
            self.settle(place, sent, CallOutcome::Unsent, now);
        } else if let Some(queue) = self.queues.get_mut(&(place.class, place.action))
            && queue.waiting.remove(&place).is_some()
        {
            self.wake_first(place.action);
        }
    }

    fn settle(&mut self, place: Place, sent: Now, outcome: CallOutcome, now: Now) {
        // What one limit refuses does not count for the other.
        let (by_api, by_account) = match outcome {
            CallOutcome::Throttled { account: true, .. } => (CallOutcome::Unsent, outcome),
            CallOutcome::Throttled { account: false, .. } => (outcome, CallOutcome::Unsent),
            CallOutcome::Concurrent => (outcome, CallOutcome::Passed),
            CallOutcome::Passed | CallOutcome::Unknown | CallOutcome::Unsent => {
                (outcome.clone(), outcome)
            }
        };
        self.account
            .settle(sent, by_account, now, &mut self.account_shared);
        if let Some(api) = self.apis.get_mut(place.action) {
            api.settle(sent, by_api, now, &mut self.shared);
        }
        self.dispatch(now);
        self.wake_first(place.action);
    }

    /// Wakes the first call of each queue that competes with this action's.
    fn wake_first(&self, action: &str) {
        let is_limited = self.account.is_limited();
        for ((_, name), queue) in &self.queues {
            let first = queue.waiting.values().next();
            if let Some(wake) = first.filter(|_| is_limited || *name == action) {
                wake.notify_one();
            }
        }
    }

    /// The throttling error that a call of the action waits for.
    pub(super) fn refusal(&self, action: &str) -> Option<String> {
        let account = Some(&self.account).filter(|account| account.is_limited());
        let limit = account.or_else(|| self.apis.get(action))?;
        limit.refusal.clone()
    }
}
