//! Temporary credentials, kept until shortly before they end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{CredentialError, Credentials, Provide};
use crate::base::chain::chain;
use crate::base::{Clock, Tasks};

/// Renewal begins when a third of the life is left, but no earlier than this before its end.
const LEAD: Duration = Duration::from_mins(15);
/// Credentials that end sooner are not signed with: the call may reach the cloud after their end.
const MARGIN: Duration = Duration::from_secs(1);
/// After a failed renewal no other one begins for so long, doubled with each failure, up to the limit.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(1);
/// Refused sooner after their coming, credentials stay: others would be refused for the same reason.
const PROBATION: Duration = Duration::from_secs(5);
/// A source that has not answered by then never will.
const PATIENCE: Duration = Duration::from_secs(30);
/// Least time between two warnings about failed renewals.
const WARN_EVERY: Duration = Duration::from_mins(1);

/// Keeps what another source provides. One renewal runs at a time, on a task of its own, so that no
/// caller who gives up ends it for the others. While there are valid credentials nobody waits for it.
#[derive(Debug)]
pub struct Cache {
    shared: Arc<Shared>,
    tasks: Tasks,
}

#[derive(Debug)]
struct Shared {
    source: Arc<dyn Provide>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: Option<Kept>,
    /// The renewal that runs: its sender goes when it ends, however it ends.
    running: Option<watch::Receiver<()>>,
    failure: Option<Arc<CredentialError>>,
    failures: u32,
    /// No renewal begins before.
    not_before: Option<Instant>,
    warned: Option<Instant>,
}

#[derive(Debug)]
struct Kept {
    credentials: Credentials,
    came: Instant,
    /// When renewal begins; never for those without an end.
    due: Option<Timestamp>,
}

/// What a caller does next.
enum Step {
    Use(Credentials),
    Wait(watch::Receiver<()>),
    Fail(Arc<CredentialError>),
}

impl Cache {
    /// Keeps what the source provides; the clock judges when it ends.
    pub fn new(source: Arc<dyn Provide>, clock: Arc<dyn Clock>) -> Self {
        Self {
            shared: Arc::new(Shared {
                source,
                clock,
                state: Mutex::default(),
            }),
            tasks: Tasks::default(),
        }
    }

    fn step(&self) -> Step {
        let now = self.shared.clock.now();
        let mut state = self.shared.state();
        let may_begin = state.may_begin();
        let valid = state.kept.as_ref().filter(|kept| kept.is_valid(now));
        if let Some(kept) = valid {
            let credentials = kept.credentials.clone();
            if kept.due.is_some_and(|due| due <= now) && may_begin {
                self.begin(&mut state);
            }
            return Step::Use(credentials);
        }
        if let Some(running) = state.running() {
            return Step::Wait(running);
        }
        match &state.failure {
            Some(failure) if !may_begin => Step::Fail(Arc::clone(failure)),
            _ => Step::Wait(self.begin(&mut state)),
        }
    }

    /// Begins a renewal, which none is.
    fn begin(&self, state: &mut State) -> watch::Receiver<()> {
        let (ends, running) = watch::channel(());
        state.running = Some(running.clone());
        let shared = Arc::clone(&self.shared);
        self.tasks.start(async move {
            let outcome = tokio::time::timeout(PATIENCE, shared.source.provide()).await;
            let outcome = outcome.unwrap_or(Err(CredentialError::Slow(PATIENCE)));
            shared.settle(outcome);
            drop(ends);
        });
        running
    }
}

#[async_trait]
impl Provide for Cache {
    async fn provide(&self) -> Result<Credentials, CredentialError> {
        loop {
            match self.step() {
                Step::Use(credentials) => return Ok(credentials),
                Step::Fail(failure) => return Err(CredentialError::Shared(failure)),
                // It never changes: an error says that the renewal has ended.
                Step::Wait(mut running) => while running.changed().await.is_ok() {},
            }
        }
    }

    fn refused(&self, credentials: &Credentials) {
        {
            let mut state = self.shared.state();
            let same = state
                .kept
                .as_ref()
                .filter(|kept| kept.credentials.same_as(credentials));
            if same.is_some_and(|kept| kept.came.elapsed() >= PROBATION) {
                state.kept = None;
                // What failed before was about renewing in time. Now it is needed.
                state.failure = None;
            }
        }
        self.shared.source.refused(credentials);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes up what a renewal brought.
    fn settle(&self, outcome: Result<Credentials, CredentialError>) {
        let now = self.clock.now();
        let outcome = outcome.and_then(|found| match found.expires {
            // Else whoever waits for them would begin the next renewal, and so on.
            Some(at) if left(now, at) <= MARGIN => Err(CredentialError::Stale {
                from: found.origin.to_string(),
                at,
            }),
            _ => Ok(found),
        });
        let mut state = self.state();
        state.running = None;
        match outcome {
            Ok(credentials) => state.take(credentials, now),
            Err(error) => state.fail(error, now),
        }
    }
}

impl State {
    /// The renewal that runs, if one does: also a task that died has dropped its sender.
    fn running(&self) -> Option<watch::Receiver<()>> {
        let running = self.running.as_ref()?;
        running.has_changed().is_ok().then(|| running.clone())
    }

    fn may_begin(&self) -> bool {
        let paused = self.not_before.is_some_and(|until| Instant::now() < until);
        !paused && self.running().is_none()
    }

    fn take(&mut self, credentials: Credentials, now: Timestamp) {
        let left = credentials.expires.map(|at| left(now, at));
        let same = self.kept.as_ref().is_some_and(|kept| {
            let old = &kept.credentials;
            old.same_as(&credentials) && old.expires == credentials.expires
        });
        if self.failures > 0 {
            tracing::info!(source = %credentials.origin, "credentials are renewed again");
        }
        self.failures = 0;
        self.failure = None;
        self.warned = None;
        // The metadata service has the next ones only in its own time.
        let pause = left.map(|left| (left / 4).clamp(PAUSE, LONGEST_PAUSE));
        self.not_before = pause.filter(|_| same).map(|pause| Instant::now() + pause);
        let due = credentials.expires.zip(left).map(|(expires, left)| {
            let lead = LEAD.min(left / 3);
            expires.saturating_sub(lead).unwrap_or(expires)
        });
        let kept = self.kept.take().filter(|_| same);
        self.kept = Some(Kept {
            credentials,
            came: kept.as_ref().map_or_else(Instant::now, |kept| kept.came),
            due: kept.map_or(due, |kept| kept.due),
        });
    }

    fn fail(&mut self, error: CredentialError, now: Timestamp) {
        self.failures = self.failures.saturating_add(1);
        let pause = PAUSE.saturating_mul(1 << self.failures.min(7)) / 2;
        let pause = pause.min(LONGEST_PAUSE);
        self.not_before = Some(Instant::now() + pause);
        let due_again = self.warned.is_none_or(|at| at.elapsed() >= WARN_EVERY);
        let valid = self.kept.as_ref().filter(|kept| kept.is_valid(now));
        if due_again {
            self.warned = Some(Instant::now());
            let error = chain(&error);
            match valid.and_then(|kept| kept.credentials.expires) {
                Some(expires) => tracing::warn!(
                    error,
                    valid_for_s = left(now, expires).as_secs(),
                    "credentials cannot be renewed; the old ones are still valid and in use"
                ),
                None => tracing::warn!(error, "no credentials can be had"),
            }
        }
        self.failure = Some(Arc::new(error));
    }
}

impl Kept {
    fn is_valid(&self, now: Timestamp) -> bool {
        let expires = self.credentials.expires;
        expires.is_none_or(|at| left(now, at) > MARGIN)
    }
}

fn left(now: Timestamp, at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
