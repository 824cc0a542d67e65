//! All queues and limits of an account, and which call is sent next.

use std::collections::{BTreeMap, HashMap};

use super::limit::{Blocked, Limit, Shared, Ticket};
use super::queue::{Position, Queue, Shares};
use super::tally::Now;
use super::{CallOutcome, Class};

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) account: Limit,
    pub(super) account_refusal: Option<Refusal>,
    shares: Shares,
    shared: Shared,
    apis: BTreeMap<&'static str, Api>,
    /// Calls whose turn has come, by id. Without tickets for those that only wait to be ready.
    pub(super) granted: HashMap<u64, Option<Tickets>>,
    pub(super) next_id: u64,
}

#[derive(Debug)]
pub(super) struct Api {
    limit: Limit,
    pub(super) queue: Queue,
    pub(super) last_refusal: Option<Refusal>,
}

/// Code and RequestId of a throttling error.
pub(super) type Refusal = (String, String);

#[derive(Debug, Clone, Copy)]
pub(super) struct Tickets {
    api: Ticket,
    pub(super) account: Ticket,
}

impl State {
    pub(super) fn api(&mut self, action: &'static str) -> &mut Api {
        self.apis.entry(action).or_insert_with(|| Api::new(action))
    }

    /// Grants every call that may be sent now.
    pub(super) fn dispatch(&mut self, now: Now) {
        self.account.roll(now, &self.shared);
        for api in self.apis.values_mut() {
            api.limit.roll(now, &self.shared);
        }
        while let Some((_, _, (class, position), action)) = self.next(now) {
            let api = self.api(action);
            let Some(waiter) = api.queue.remove(class, position) else {
                break;
            };
            let tickets = (!waiter.is_ready_only).then(|| self.send(action, class, now));
            self.granted.insert(position.1, tickets);
            waiter.wake.notify_one();
        }
        for api in self.apis.values_mut() {
            api.queue.wake_heads();
        }
    }

    /// The call that is sent next.
    fn next(&self, now: Now) -> Option<(bool, bool, (Class, Position), &'static str)> {
        let mut best = None;
        for (action, api) in &self.apis {
            for class in Class::ALL {
                let Some(position) = api.queue.first(class) else {
                    continue;
                };
                if self.check(api, class, now).is_err() {
                    continue;
                }
                let other = !self.shares.is_owed(class);
                let other_here = !api.queue.shares.is_owed(class);
                let candidate = (other, other_here, (class, position), *action);
                if best.is_none_or(|best| candidate < best) {
                    best = Some(candidate);
                }
            }
        }
        best
    }

    fn check(&self, api: &Api, class: Class, now: Now) -> std::result::Result<(), Blocked> {
        let owed = api.queue.shares.is_owed(class);
        let by_api = api.limit.blocked(now, class, owed, &self.shared);
        let owed = self.shares.is_owed(class);
        let by_account = self.account.blocked(now, class, owed, &self.shared);
        match (by_api, by_account) {
            (Err(api), Err(account)) if account.until > api.until => Err(account),
            (Ok(()), by_account) => by_account,
            (by_api, _) => by_api,
        }
    }

    fn send(&mut self, action: &'static str, class: Class, now: Now) -> Tickets {
        let (apis, is_limited) = (&self.apis, self.account.is_limited());
        self.shares.record(class, |class| {
            is_limited && apis.values().any(|api| api.queue.has(class))
        });
        let account = self.account.send(now, &self.shared);
        let api = self.apis.entry(action).or_insert_with(|| Api::new(action));
        api.queue.record(class);
        let api = api.limit.send(now, &self.shared);
        Tickets { api, account }
    }

    /// What the call at the head of its class waits for; the others wait for the head.
    pub(super) fn blocked(
        &self,
        action: &str,
        class: Class,
        position: Position,
        now: Now,
    ) -> Option<Blocked> {
        let api = self.apis.get(action)?;
        let is_first = api.queue.first(class) == Some(position);
        self.check(api, class, now).err().filter(|_| is_first)
    }

    pub(super) fn settle(
        &mut self,
        action: &'static str,
        tickets: Tickets,
        outcome: CallOutcome,
        now: Now,
    ) {
        let shared = &mut self.shared;
        let account = &mut self.account;
        let api = self.apis.entry(action).or_insert_with(|| Api::new(action));
        let limit = &mut api.limit;
        match outcome {
            CallOutcome::Passed => {
                limit.passed(tickets.api, now, shared);
                account.passed(tickets.account, now, shared);
            }
            CallOutcome::Throttled {
                account: true,
                wait,
            } => {
                limit.unsent(tickets.api);
                account.refused(tickets.account, now, wait, shared);
            }
            CallOutcome::Throttled { wait, .. } => {
                limit.refused(tickets.api, now, wait, shared);
                account.unsent(tickets.account);
            }
            CallOutcome::Concurrent => {
                limit.too_many(tickets.api);
                account.unknown(tickets.account);
            }
            CallOutcome::Unknown => {
                limit.unknown(tickets.api);
                account.unknown(tickets.account);
            }
            CallOutcome::Unsent => {
                limit.unsent(tickets.api);
                account.unsent(tickets.account);
            }
        }
        self.dispatch(now);
        // What the first calls wait for may have changed.
        let is_limited = self.account.is_limited();
        for (name, api) in &self.apis {
            if is_limited || *name == action {
                api.queue.wake_first();
            }
        }
    }
}

impl Api {
    fn new(action: &'static str) -> Self {
        Self {
            limit: Limit::of_api(action),
            queue: Queue::default(),
            last_refusal: None,
        }
    }
}
