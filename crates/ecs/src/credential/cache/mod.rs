//! Caches temporary credentials and renews them before they expire.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use tokio::sync::OwnedMutexGuard;
use tokio::time::Instant;

use super::{CredentialError, CredentialProvider, Credentials};
use crate::base::{Clock, Tasks, error_chain, lock};

/// Renewal begins when a third of the lifetime is left, but no earlier than this before the expiration.
const LEAD: Duration = Duration::from_mins(15);
/// Credentials that expire sooner are not used: the call may reach the cloud after their expiration.
const MARGIN: Duration = Duration::from_secs(1);
/// Backoff after a failed renewal, doubled with each failure up to the maximum.
const FIRST_BACKOFF: Duration = Duration::from_secs(1);
const MAX_BACKOFF: Duration = Duration::from_mins(1);
/// Credentials that are rejected sooner after their renewal are kept: others would be rejected for the same reason.
const MIN_AGE: Duration = Duration::from_secs(5);
/// Timeout of a renewal.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Minimum time between two warnings about failed renewals.
const WARN_INTERVAL: Duration = Duration::from_mins(1);

/// Caches the credentials of another provider. One renewal runs at a time, in a separate task, so that the cancellation
/// of a caller does not affect others. Callers wait for it only without valid credentials.
#[derive(Debug)]
pub struct Cache {
    shared: Arc<Shared>,
    tasks: Tasks,
}

#[derive(Debug)]
struct Shared {
    source: Arc<dyn CredentialProvider>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Locked during a renewal.
    renewal: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct State {
    cached: Option<Cached>,
    failure: Option<Arc<CredentialError>>,
    failures: u32,
    /// When the next renewal may begin.
    not_before: Option<Instant>,
    warned: Option<Instant>,
}

#[derive(Debug)]
struct Cached {
    credentials: Credentials,
    renewed: Instant,
    /// When renewal begins; never for long-lived credentials.
    due: Option<Timestamp>,
}

impl Cache {
    /// Caches the credentials of `source`; `clock` determines when they expire.
    pub fn new(source: Arc<dyn CredentialProvider>, clock: Arc<dyn Clock>) -> Self {
        Self {
            shared: Arc::new(Shared {
                source,
                clock,
                state: Mutex::default(),
                renewal: Arc::default(),
            }),
            tasks: Tasks::default(),
        }
    }
}

#[async_trait]
impl CredentialProvider for Cache {
    async fn provide(&self) -> Result<Credentials, CredentialError> {
        let shared = Arc::clone(&self.shared);
        if let Some(known) = shared.known() {
            if let Ok(renewal) = Arc::clone(&shared.renewal).try_lock_owned()
                && shared.is_due()
            {
                self.tasks.spawn(async move {
                    let _ = shared.renew(renewal).await;
                });
            }
            return known;
        }
        let renewal = Arc::clone(&shared.renewal).lock_owned().await;
        // Another caller may have renewed them meanwhile.
        match shared.known() {
            Some(known) => known,
            None => self.tasks.run(async move { shared.renew(renewal).await }).await,
        }
    }

    fn invalidate(&self, credentials: &Credentials) {
        {
            let mut state = lock(&self.shared.state);
            let same = state
                .cached
                .as_ref()
                .filter(|cached| cached.credentials.is_same_as(credentials));
            if same.is_some_and(|cached| cached.renewed.elapsed() >= MIN_AGE) {
                state.cached = None;
                // Earlier failures were of renewals ahead of time.
                state.failure = None;
            }
        }
        self.shared.source.invalidate(credentials);
    }
}

impl Shared {
    /// Valid credentials, or the failure of the last renewal until the next one may begin.
    fn known(&self) -> Option<Result<Credentials, CredentialError>> {
        let now = self.clock.now();
        let state = lock(&self.state);
        if let Some(cached) = state.cached.as_ref().filter(|cached| cached.is_valid(now)) {
            return Some(Ok(cached.credentials.clone()));
        }
        let failure = state.failure.as_ref().filter(|_| state.is_paused())?;
        Some(Err(CredentialError::Shared(Arc::clone(failure))))
    }

    fn is_due(&self) -> bool {
        let now = self.clock.now();
        let state = lock(&self.state);
        let due = state.cached.as_ref().and_then(|cached| cached.due);
        due.is_some_and(|due| due <= now) && !state.is_paused()
    }

    async fn renew(&self, _renewal: OwnedMutexGuard<()>) -> Result<Credentials, CredentialError> {
        let outcome = tokio::time::timeout(TIMEOUT, self.source.provide()).await;
        let outcome = outcome.unwrap_or(Err(CredentialError::TimedOut(TIMEOUT)));
        let now = self.clock.now();
        let outcome = outcome.and_then(|found| match found.expires {
            // Otherwise the waiting callers would begin the next renewal immediately.
            Some(at) if remaining(now, at) <= MARGIN => Err(CredentialError::Expired {
                from: found.origin.to_string(),
                at,
            }),
            _ => Ok(found),
        });
        let mut state = lock(&self.state);
        match outcome {
            Ok(credentials) => {
                state.update(credentials.clone(), now);
                Ok(credentials)
            }
            Err(error) => Err(CredentialError::Shared(state.fail(error, now))),
        }
    }
}

impl State {
    fn is_paused(&self) -> bool {
        self.not_before.is_some_and(|until| Instant::now() < until)
    }

    fn update(&mut self, credentials: Credentials, now: Timestamp) {
        let left = credentials.expires.map(|at| remaining(now, at));
        let is_same = self.cached.as_ref().is_some_and(|cached| {
            let old = &cached.credentials;
            old.is_same_as(&credentials) && old.expires == credentials.expires
        });
        if self.failures > 0 {
            tracing::info!(source = %credentials.origin, "credential renewal succeeds again");
        }
        self.failures = 0;
        self.failure = None;
        self.warned = None;
        // The metadata service renews on its own schedule.
        let pause = left.map(|left| (left / 4).clamp(FIRST_BACKOFF, MAX_BACKOFF));
        self.not_before = pause.filter(|_| is_same).map(|pause| Instant::now() + pause);
        if !is_same {
            let due = credentials.expires.zip(left).map(|(expires, left)| {
                let lead = LEAD.min(left / 3);
                expires.saturating_sub(lead).unwrap_or(expires)
            });
            let renewed = Instant::now();
            self.cached = Some(Cached {
                credentials,
                renewed,
                due,
            });
        }
    }

    fn fail(&mut self, error: CredentialError, now: Timestamp) -> Arc<CredentialError> {
        self.failures = self.failures.saturating_add(1);
        let pause = FIRST_BACKOFF.saturating_mul(1 << self.failures.min(7)) / 2;
        let pause = pause.min(MAX_BACKOFF);
        self.not_before = Some(Instant::now() + pause);
        let due_again = self.warned.is_none_or(|at| at.elapsed() >= WARN_INTERVAL);
        let valid = self.cached.as_ref().filter(|cached| cached.is_valid(now));
        if due_again {
            self.warned = Some(Instant::now());
            let error = error_chain(&error);
            match valid.and_then(|cached| cached.credentials.expires) {
                Some(expires) => tracing::warn!(
                    error,
                    valid_for_s = remaining(now, expires).as_secs(),
                    "cannot renew credentials; the current ones are still valid"
                ),
                None => tracing::warn!(error, "cannot get credentials"),
            }
        }
        Arc::clone(self.failure.insert(Arc::new(error)))
    }
}

impl Cached {
    fn is_valid(&self, now: Timestamp) -> bool {
        let expires = self.credentials.expires;
        expires.is_none_or(|at| remaining(now, at) > MARGIN)
    }
}

fn remaining(now: Timestamp, at: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

#[cfg(test)]
mod tests;
