//! The queues and limits of an account, and the order of calls.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use super::limit::{Earliest, Limit, Shared};
use super::{ACCOUNT, CallOutcome, ConfiguredLimits, LimitReport, Priority};
use crate::base::{Clock, Deadline};

/// A queued call, ordered by priority, deadline and arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct QueuedCall {
    priority: Priority,
    deadline: Deadline,
    id: u64,
    action: &'static str,
}

#[derive(Debug)]
pub(super) struct Queues {
    /// Determines when quotas per minute open.
    clock: Arc<dyn Clock>,
    account: Limit,
    account_shared: Shared,
    apis: BTreeMap<&'static str, Limit>,
    shared: Shared,
    queues: BTreeMap<(Priority, &'static str), Queue>,
    /// Calls that were granted but not sent yet, by id, and when they were granted.
    granted: HashMap<u64, Instant>,
    next_id: u64,
    configured: ConfiguredLimits,
}

/// The waiting calls of a priority of an API.
#[derive(Debug, Default)]
struct Queue {
    waiting: BTreeMap<QueuedCall, Arc<Notify>>,
    /// How often it was passed over, to prevent starvation.
    passed_over: u32,
}

impl Queues {
    pub(super) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            account: Limit::new(ACCOUNT, None),
            account_shared: Shared::default(),
            apis: BTreeMap::new(),
            shared: Shared::default(),
            queues: BTreeMap::new(),
            granted: HashMap::new(),
            next_id: 0,
            configured: ConfiguredLimits::default(),
        }
    }

    /// Replaces the configured limits, also for waiting calls.
    pub(super) fn configure(&mut self, limits: ConfiguredLimits) {
        self.account.configure(limits.get(ACCOUNT).copied());
        for (action, api) in &mut self.apis {
            api.configure(limits.get(action).copied());
        }
        self.configured = limits;
        for queue in self.queues.values() {
            queue.waiting.values().for_each(|wake| wake.notify_one());
        }
    }

    /// Queues a call. `wake` is notified when the call must poll again.
    pub(super) fn join(
        &mut self,
        action: &'static str,
        priority: Priority,
        deadline: Deadline,
        wake: &Arc<Notify>,
    ) -> QueuedCall {
        self.next_id += 1;
        let call = QueuedCall {
            priority,
            deadline,
            id: self.next_id,
            action,
        };
        let configured = self.configured.get(action).copied();
        let unknown = || Limit::new(action, configured);
        self.apis.entry(action).or_insert_with(unknown);
        let queue = self.queues.entry((priority, action)).or_default();
        queue.waiting.insert(call, Arc::clone(wake));
        call
    }

    /// The state of the limits of the account and of each API that was called.
    pub(super) fn report(&self, now: Instant) -> Vec<LimitReport> {
        let waiting = |action: &str| {
            let queues = self.queues.iter().filter(|((_, name), _)| *name == action);
            queues.map(|(_, queue)| queue.waiting.len()).sum()
        };
        let limits = std::iter::once(&self.account).chain(self.apis.values());
        limits.map(|limit| limit.report(waiting(limit.name), now)).collect()
    }

    /// The time between two calls of the action at the learned rate; zero if none is known.
    pub(super) fn spacing(&self, action: &str) -> Duration {
        self.apis.get(action).map_or(Duration::ZERO, Limit::spacing)
    }

    /// Grants every call that may be sent now. Returns when this one was granted, or an error with the time at which it
    /// may be sent, if it is the first of its queue; the others wait for that call.
    pub(super) fn poll(&mut self, call: QueuedCall, now: Instant) -> Result<Instant, Option<Earliest>> {
        self.dispatch(now);
        self.granted.remove(&call.id).ok_or_else(|| {
            let queue = self.queues.get(&(call.priority, call.action))?;
            let is_first = queue.waiting.keys().next() == Some(&call);
            self.earliest(call, now).filter(|_| is_first)
        })
    }

    fn dispatch(&mut self, now: Instant) {
        self.account.update(now, &self.account_shared);
        for api in self.apis.values_mut() {
            api.update(now, &self.shared);
        }
        while let Some((_, call)) = self.next(now) {
            self.grant(call, now);
        }
    }

    /// The next call: from a queue that was passed over too often, otherwise of the highest priority.
    fn next(&self, now: Instant) -> Option<(bool, QueuedCall)> {
        let ready = self.queues.values().filter_map(|queue| {
            let call = *queue.waiting.keys().next()?;
            let is_ready = self.earliest(call, now)?.at <= now;
            let limit = if call.priority == Priority::List { 7 } else { 3 };
            is_ready.then_some((queue.passed_over < limit, call))
        });
        ready.min()
    }

    fn grant(&mut self, call: QueuedCall, now: Instant) {
        self.granted.insert(call.id, now);
        self.account.send(now);
        if let Some(api) = self.apis.get_mut(call.action) {
            api.send(now);
        }
        for ((priority, action), queue) in &mut self.queues {
            if let Some(wake) = queue.waiting.remove(&call) {
                wake.notify_one();
            }
            if queue.waiting.is_empty() || (*priority, *action) == (call.priority, call.action) {
                queue.passed_over = 0;
            } else if self.account.is_limited() || *action == call.action {
                queue.passed_over += 1;
            }
        }
        self.wake_first(call.action);
    }

    fn earliest(&self, call: QueuedCall, now: Instant) -> Option<Earliest> {
        let limits = self.limits(call.action);
        limits
            .map(|(limit, shared)| limit.earliest(now, call.priority, shared))
            .max()
    }

    /// The limits that apply to the action, each with the state that it shares.
    fn limits(&self, action: &str) -> impl Iterator<Item = (&Limit, &Shared)> {
        let account = Some((&self.account, &self.account_shared)).filter(|(account, _)| account.is_limited());
        account
            .into_iter()
            .chain(self.apis.get(action).map(|api| (api, &self.shared)))
    }

    /// Records the outcome of a call. A call that is still queued leaves the queue; a grant that was not used is
    /// returned.
    pub(super) fn end(&mut self, call: QueuedCall, sent: Option<Instant>, outcome: CallOutcome) {
        if let Some(sent) = sent {
            self.record(call, sent, outcome);
        } else if let Some(sent) = self.granted.remove(&call.id) {
            self.record(call, sent, CallOutcome::Unsent);
        } else if let Some(queue) = self.queues.get_mut(&(call.priority, call.action))
            && queue.waiting.remove(&call).is_some()
        {
            self.wake_first(call.action);
        }
    }

    fn record(&mut self, call: QueuedCall, sent: Instant, outcome: CallOutcome) {
        let now = Instant::now();
        // How long the minute of the clock has lasted.
        let millis = self.clock.now().as_millisecond().rem_euclid(60_000);
        let since_minute = Duration::from_millis(millis.unsigned_abs());
        // A call that one limit rejects does not count for the other.
        let (by_api, by_account) = match outcome {
            CallOutcome::Throttled { account: true, .. } => (CallOutcome::ThrottledElsewhere, outcome),
            CallOutcome::Throttled { account: false, .. } => (outcome, CallOutcome::ThrottledElsewhere),
            CallOutcome::Concurrent => (outcome, CallOutcome::Passed),
            _ => (outcome.clone(), outcome),
        };
        self.account
            .record(sent, by_account, now, since_minute, &mut self.account_shared);
        if let Some(api) = self.apis.get_mut(call.action) {
            api.record(sent, by_api, now, since_minute, &mut self.shared);
        }
        self.dispatch(now);
        self.wake_first(call.action);
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

    /// The configured limit, and its calls per second, that delays a call of the action, if the cloud does not delay it
    /// longer.
    pub(super) fn delaying(&self, action: &str, priority: Priority) -> Option<(&'static str, f64)> {
        let mut limits = self.limits(action);
        limits.find_map(|(limit, shared)| Some((limit.name, limit.delaying_rate(priority, shared)?)))
    }

    /// The throttling error that a call of the action waits for.
    pub(super) fn last_error(&self, action: &str) -> Option<String> {
        self.limits(action).find_map(|(limit, _)| limit.last_error.clone())
    }
}
