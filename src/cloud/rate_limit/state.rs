//! The queues and limits of an account, and which call is sent next.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;

use super::limit::{Blocked, Limit, Shared, Ticket};
use super::tally::Now;
use super::{CallOutcome, Class};
use crate::base::Deadline;

/// Position within a class: the earliest deadline first, then the order of arrival.
pub(super) type Position = (Deadline, u64);

#[derive(Debug, Default)]
pub(super) struct State {
    account: Limit,
    shares: Shares,
    shared: Shared,
    apis: BTreeMap<&'static str, Api>,
    /// Calls whose turn has come, by id.
    granted: HashMap<u64, Tickets>,
    /// Code and RequestId of the last throttling error of each API, and of the account.
    refusals: BTreeMap<&'static str, (String, String)>,
    next_id: u64,
}

#[derive(Debug)]
struct Api {
    limit: Limit,
    waiting: [BTreeMap<Position, Arc<Notify>>; Class::ALL.len()],
    shares: Shares,
}

/// A call in flight, under the limit of its API and of the account.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tickets {
    api: Ticket,
    account: Ticket,
}

/// How often each class was passed over, so that none starves.
#[derive(Debug, Default)]
struct Shares([u32; Class::ALL.len()]);

impl State {
    fn api(&mut self, action: &'static str) -> &mut Api {
        self.apis.entry(action).or_insert_with(|| Api {
            limit: Limit::of_api(action),
            waiting: Default::default(),
            shares: Shares::default(),
        })
    }

    /// Queues a call, which `wake` wakes whenever it should look again.
    pub(super) fn join(
        &mut self,
        action: &'static str,
        class: Class,
        deadline: Deadline,
        wake: &Arc<Notify>,
    ) -> Position {
        self.next_id += 1;
        let position = (deadline, self.next_id);
        self.api(action).waiting[class as usize].insert(position, Arc::clone(wake));
        position
    }

    /// The time between two calls of the action at the learned rate, if there is one.
    pub(super) fn spacing(&self, action: &str) -> Duration {
        let api = self.apis.get(action);
        api.map_or(Duration::ZERO, |api| api.limit.spacing())
    }

    /// Takes a call out of the queue, or gives back its turn.
    pub(super) fn leave(
        &mut self,
        action: &'static str,
        class: Class,
        position: Position,
        now: Now,
    ) {
        if let Some(tickets) = self.take(position) {
            self.settle(action, tickets, CallOutcome::Unsent, now);
        } else if self.api(action).waiting[class as usize]
            .remove(&position)
            .is_some()
        {
            self.wake_first(action);
        }
    }

    /// The turn of a call, if it has come.
    pub(super) fn take(&mut self, position: Position) -> Option<Tickets> {
        self.granted.remove(&position.1)
    }

    /// Grants every call that may be sent now.
    pub(super) fn dispatch(&mut self, now: Now) {
        self.account.roll(now, &self.shared);
        for api in self.apis.values_mut() {
            api.limit.roll(now, &self.shared);
        }
        while let Some((_, _, class, position, action)) = self.next(now) {
            let tickets = self.send(action, class, now);
            self.granted.insert(position.1, tickets);
            if let Some(wake) = self.api(action).waiting[class as usize].remove(&position) {
                wake.notify_one();
            }
            self.wake_first(action);
        }
    }

    /// The call that is sent next: a class that was passed over too often, else the highest class.
    fn next(&self, now: Now) -> Option<(bool, bool, Class, Position, &'static str)> {
        let ready = self.apis.iter().flat_map(|(action, api)| {
            Class::ALL.into_iter().filter_map(|class| {
                let position = api.first(class)?;
                self.check(api, class, now).ok()?;
                let waits = !self.shares.is_owed(class);
                Some((waits, !api.shares.is_owed(class), class, position, *action))
            })
        });
        ready.min()
    }

    fn check(&self, api: &Api, class: Class, now: Now) -> Result<(), Blocked> {
        let by_api = api
            .limit
            .blocked(now, class, api.shares.is_owed(class), &self.shared);
        let is_owed = self.shares.is_owed(class);
        let by_account = self.account.blocked(now, class, is_owed, &self.shared);
        match (by_api, by_account) {
            (Err(api), Err(account)) if account.until < api.until => Err(api),
            (by_api, Ok(())) => by_api,
            (_, by_account) => by_account,
        }
    }

    fn send(&mut self, action: &'static str, class: Class, now: Now) -> Tickets {
        if self.account.is_limited() {
            let apis = &self.apis;
            let waits = |class| apis.values().any(|api| api.first(class).is_some());
            self.shares.record(class, waits);
        }
        let account = self.account.send(now, &self.shared);
        self.api(action);
        let api = self.apis.get_mut(action).map(|api| {
            let waiting = &api.waiting;
            api.shares
                .record(class, |class| !waiting[class as usize].is_empty());
            api.limit.send(now, &self.shared)
        });
        Tickets {
            api: api.unwrap_or(account),
            account,
        }
    }

    /// What the first call of a class waits for; the others wait for that call.
    pub(super) fn blocked(
        &self,
        action: &str,
        class: Class,
        position: Position,
        now: Now,
    ) -> Option<Blocked> {
        let api = self.apis.get(action)?;
        let is_first = api.first(class) == Some(position);
        self.check(api, class, now).err().filter(|_| is_first)
    }

    /// Records how a call ended.
    pub(super) fn settle(
        &mut self,
        action: &'static str,
        tickets: Tickets,
        outcome: CallOutcome,
        now: Now,
    ) {
        self.account
            .settle(tickets.account, outcome, now, &mut self.shared);
        if let Some(api) = self.apis.get_mut(action) {
            api.limit
                .settle(tickets.api, outcome, now, &mut self.shared);
        }
        self.dispatch(now);
        self.wake_first(action);
    }

    /// Wakes the calls that wait for limits on behalf of their class.
    fn wake_first(&self, action: &str) {
        let is_limited = self.account.is_limited();
        for (name, api) in &self.apis {
            if is_limited || *name == action {
                let first = api.waiting.iter().filter_map(BTreeMap::first_key_value);
                first.for_each(|(_, wake)| wake.notify_one());
            }
        }
    }

    pub(super) fn set_refusal(&mut self, name: &'static str, code: String, request: String) {
        self.refusals.insert(name, (code, request));
    }

    /// Code and RequestId of the throttling error that a call of the action waits for.
    pub(super) fn refusal(&self, action: &str) -> Option<(String, String)> {
        let account = self.refusals.get(super::ACCOUNT);
        let account = account.filter(|_| self.account.is_limited());
        account.or_else(|| self.refusals.get(action)).cloned()
    }
}

impl Api {
    fn first(&self, class: Class) -> Option<Position> {
        self.waiting[class as usize].keys().next().copied()
    }
}

impl Shares {
    fn is_owed(&self, class: Class) -> bool {
        self.0[class as usize] >= if class == Class::List { 7 } else { 3 }
    }

    /// Records that a call of a class is sent while others may wait.
    fn record(&mut self, sent: Class, waits: impl Fn(Class) -> bool) {
        for class in Class::ALL {
            let passed_over = &mut self.0[class as usize];
            *passed_over = if class == sent || !waits(class) {
                0
            } else {
                *passed_over + 1
            };
        }
    }
}
