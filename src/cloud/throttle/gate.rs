//! The gate that every attempt goes through: one queue for each API, all under one account.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::Class;
use super::fate::{CONCURRENT, Fate};
use super::lane::{Blocked, Lane};
use crate::base::{Clock, Deadline};
use crate::cloud::Result;
use crate::cloud::error::{Error, Kind};

/// Paces the calls of one process to one region of one account.
#[derive(Debug)]
pub struct Gate {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    account: Lane,
    apis: BTreeMap<&'static str, Api>,
    granted: BTreeMap<u64, Solo>,
    next: u64,
}

/// For which limits others wait for this call's answer.
#[derive(Debug, Clone, Copy)]
struct Solo {
    api: bool,
    account: bool,
}

#[derive(Debug)]
struct Api {
    lane: Lane,
    /// In the order in which they go.
    queue: BTreeMap<(Class, u64), Arc<Notify>>,
    /// The last refusal: its code, and the cloud's id of the request.
    last: Option<(String, String)>,
}

/// A place in the queue; leaves it when dropped.
#[derive(Debug)]
struct Place<'a> {
    gate: &'a Gate,
    action: &'static str,
    key: (Class, u64),
    notify: Arc<Notify>,
}

/// Leave for one attempt.
#[derive(Debug)]
pub struct Pass<'a> {
    gate: &'a Gate,
    action: &'static str,
    class: Class,
    window: i64,
    solo: Solo,
    answered: bool,
}

impl Gate {
    /// A gate by this clock, whose minutes are the cloud's windows.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            state: Mutex::new(State {
                account: Lane::of_account(),
                apis: BTreeMap::new(),
                granted: BTreeMap::new(),
                next: 0,
            }),
        }
    }

    /// Makes the attempt when it is its turn, and learns from the answer.
    ///
    /// # Errors
    /// The attempt's, or those of [`Gate::pass`].
    pub async fn attempt<T, F>(
        &self,
        action: &'static str,
        class: Class,
        deadline: Deadline,
        attempt: impl FnOnce() -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let pass = self.pass(action, class, deadline).await?;
        let outcome = attempt().await;
        pass.answered(outcome.as_ref().err());
        outcome
    }

    /// Waits until a call of the action may go. Whoever stops waiting gives its turn to the next.
    ///
    /// # Errors
    /// [`Kind::Throttled`], without a call, when the turn comes after the deadline: at once, where
    /// that is plain from the start.
    pub async fn pass(
        &self,
        action: &'static str,
        class: Class,
        deadline: Deadline,
    ) -> Result<Pass<'_>> {
        let place = self.join(action, class);
        loop {
            let blocked = {
                let mut state = self.lock();
                let now = self.now();
                state.dispatch(now);
                if let Some(solo) = state.granted.remove(&place.key.1) {
                    let window = state.api(action).lane.window();
                    return Ok(Pass {
                        gate: self,
                        action,
                        class,
                        window,
                        solo,
                        answered: false,
                    });
                }
                state.blocked(action, class, now)
            };
            let wait = millis(blocked.at() - self.now());
            let late = wait >= deadline.remaining() && matches!(blocked, Blocked::Until(_));
            if late || deadline.is_over() {
                return Err(self.late(action, blocked, wait));
            }
            tokio::select! {
                // In a fixed order, so that a simulation runs the same each time.
                biased;
                () = place.notify.notified() => {}
                () = tokio::time::sleep(wait.min(deadline.remaining())) => {}
            }
        }
    }

    fn join(&self, action: &'static str, class: Class) -> Place<'_> {
        let notify = Arc::new(Notify::new());
        let mut state = self.lock();
        let key = (class, state.next);
        state.next += 1;
        let queue = &mut state.api(action).queue;
        queue.insert(key, Arc::clone(&notify));
        drop(state);
        Place {
            gate: self,
            action,
            key,
            notify,
        }
    }

    /// The error of a call that was not sent.
    fn late(&self, action: &'static str, blocked: Blocked, wait: Duration) -> Error {
        let last = self.lock().api(action).last.clone();
        let seconds = wait.as_secs_f64();
        let (kind, why) = match (blocked, last) {
            (Blocked::Answer(_), _) => (
                Kind::Deadline,
                "not sent: the deadline passed in the queue for this API".to_owned(),
            ),
            (Blocked::Until(_), Some((code, request))) => (
                Kind::Throttled,
                format!(
                    "not sent: the cloud refused with {code} (RequestId {request}), and the next \
                     call may go in {seconds:.1} s, after the deadline"
                ),
            ),
            (Blocked::Until(_), None) => (
                Kind::Throttled,
                format!(
                    "not sent: the account is throttled, and the next call may go in \
                     {seconds:.1} s, after the deadline"
                ),
            ),
        };
        Error::new(kind, action)
            .with_message(why)
            .with_wait(Some(wait))
    }

    fn now(&self) -> i64 {
        self.clock.now().as_millisecond()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn api(&mut self, action: &'static str) -> &mut Api {
        self.apis.entry(action).or_insert_with(|| Api {
            lane: Lane::of_api(),
            queue: BTreeMap::new(),
            last: None,
        })
    }

    /// Lets go whoever may go now, the most urgent first.
    fn dispatch(&mut self, now: i64) {
        loop {
            let Some((key, action)) = self.next(now) else {
                return;
            };
            let urgent = key.0.is_urgent();
            let account = self.account.send(now, urgent);
            let api = self.api(action);
            let solo = Solo {
                account,
                api: api.lane.send(now, urgent),
            };
            let waiting = api.queue.remove(&key);
            self.granted.insert(key.1, solo);
            if let Some(notify) = waiting {
                notify.notify_one();
            }
        }
    }

    /// Who goes next of all, if anybody may.
    fn next(&mut self, now: i64) -> Option<((Class, u64), &'static str)> {
        let idle = self.account.ready(now, false).is_ok();
        if !idle && self.account.ready(now, true).is_err() {
            return None;
        }
        let owed = if idle && self.account.owes() {
            let fronts = self.apis.iter_mut();
            let fronts = fronts.filter_map(|(action, api)| Some((api.idle(now)?, *action)));
            fronts.min()
        } else {
            None
        };
        owed.or_else(|| {
            let fronts = self.apis.iter_mut();
            let fronts = fronts.filter_map(|(action, api)| Some((api.front(now, idle)?, *action)));
            fronts.min()
        })
    }

    /// Takes in what became of a call of this window.
    fn settle(&mut self, action: &'static str, class: Class, solo: Solo, window: i64, fate: Fate) {
        let urgent = class.is_urgent();
        let lane = &mut self.api(action).lane;
        match fate {
            Fate::Passed => {
                lane.passed(solo.api);
                self.account.passed(solo.account);
            }
            Fate::Unknown => {
                lane.lost(window);
                self.account.lost(window);
            }
            Fate::Unsent => {
                lane.unsent(window, urgent);
                self.account.unsent(window, urgent);
            }
        }
    }

    /// What keeps a call back, once all that may go have gone.
    fn blocked(&mut self, action: &'static str, class: Class, now: i64) -> Blocked {
        let urgent = class.is_urgent();
        let by_api = self.api(action).lane.ready(now, urgent).err();
        let by_account = self.account.ready(now, urgent).err();
        let later = by_api.into_iter().chain(by_account);
        // Neither: somebody before it in the queue is about to go.
        later
            .max_by_key(|blocked| blocked.at())
            .unwrap_or(Blocked::Answer(now + 1))
    }
}

impl Api {
    /// The first that is not urgent, if it may go.
    fn idle(&mut self, now: i64) -> Option<(Class, u64)> {
        let first = *self.queue.range((Class::Change, 0)..).next()?.0;
        self.lane.ready(now, false).is_ok().then_some(first)
    }

    /// Who goes next, if anybody may; one that is not urgent only where the account lets it.
    fn front(&mut self, now: i64, idle: bool) -> Option<(Class, u64)> {
        let first = *self.queue.first_key_value()?.0;
        let calm = self.queue.range((Class::Change, 0)..).next();
        let calm = calm.map(|(key, _)| *key);
        let owed = calm.filter(|_| self.lane.owes() || !first.0.is_urgent());
        let order = owed.into_iter().chain([first]).chain(calm);
        let mut order = order.filter(|key| idle || key.0.is_urgent());
        order.find(|key| self.lane.ready(now, key.0.is_urgent()).is_ok())
    }
}

impl Pass<'_> {
    /// Takes in how the attempt ended.
    fn answered(mut self, error: Option<&Error>) {
        self.answered = true;
        let now = self.gate.now();
        let mut state = self.gate.lock();
        let throttled =
            error.filter(|error| error.kind() == Kind::Throttled && !error.has_code(CONCURRENT));
        match throttled {
            None => {
                let fate = Fate::of(error);
                state.settle(self.action, self.class, self.solo, self.window, fate);
            }
            Some(error) => {
                let wait = error
                    .wait()
                    .map(|wait| i64::try_from(wait.as_millis()).unwrap_or(i64::from(u32::MAX)));
                let api = state.api(self.action);
                api.last = Some((
                    error.code().unwrap_or("HTTP 429").to_owned(),
                    error.request_id().unwrap_or("unknown").to_owned(),
                ));
                // What one limit refused, the other has let through.
                if error.has_code("Throttling.User") {
                    state.api(self.action).lane.passed(self.solo.api);
                    state.account.refuse(now, self.window, wait);
                } else {
                    state.api(self.action).lane.refuse(now, self.window, wait);
                    state.account.passed(self.solo.account);
                }
                tracing::warn!(
                    cloud.action = self.action,
                    cloud.code = error.code(),
                    cloud.request_id = error.request_id(),
                    "the cloud lets no more calls through in this minute"
                );
            }
        }
        state.dispatch(now);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let now = self.gate.now();
        let mut state = self.gate.lock();
        state.settle(
            self.action,
            self.class,
            self.solo,
            self.window,
            Fate::Unknown,
        );
        state.dispatch(now);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let now = self.gate.now();
        let mut state = self.gate.lock();
        state.api(self.action).queue.remove(&self.key);
        if let Some(solo) = state.granted.remove(&self.key.1) {
            // It has left before it knew.
            let window = state.api(self.action).lane.window();
            state.settle(self.action, self.key.0, solo, window, Fate::Unsent);
        }
        state.dispatch(now);
    }
}

fn millis(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

#[cfg(test)]
mod tests;
