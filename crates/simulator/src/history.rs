//! What happened in a run: a line for each event, and the times at which the controller sent requests.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::Request;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

#[derive(Debug)]
pub struct History {
    start: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    lines: Vec<String>,
    violations: Vec<Violation>,
    /// By nonce, when a process sent the request.
    sent: BTreeMap<String, Duration>,
}

/// A broken promise of the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub invariant: Invariant,
    pub text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Invariant {
    /// A successful response was true when it was given.
    TrueSuccess,
    /// A final error was true when it was given: nothing exists under the name.
    TrueFailure,
    /// Only what a caller asked for is created, attached, detached, deleted or resized.
    OnlyRequested,
    /// At most one resource exists under a name.
    NoDuplicate,
    /// In the end nothing exists that no caller wants.
    NoLeak,
    /// In the end everything exists as the last successful request says.
    NoLoss,
    /// Every request ends a while after the cloud is healthy.
    Progress,
    /// A refused order is repeated at most ten times a minute.
    Budget,
    /// No error contains the secret key.
    NoSecret,
}

impl History {
    pub(crate) fn new() -> Self {
        Self {
            start: Instant::now(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The virtual time since the start.
    pub(crate) fn now(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn record(&self, text: &str) {
        let line = format!("{:9.3} {text}", self.now().as_secs_f64());
        self.state().lines.push(line);
    }

    pub(crate) fn violation(&self, invariant: Invariant, text: String) {
        self.record(&format!("VIOLATION {invariant:?}: {text}"));
        self.state().violations.push(Violation { invariant, text });
    }

    pub(crate) fn record_sent(&self, request: &Request<String>) {
        let query = request.uri().query().unwrap_or_default();
        let mut parts = query.split('&').chain(request.body().split('&'));
        let nonce = parts.find_map(|part| part.strip_prefix("SignatureNonce="));
        let now = self.now();
        self.state().sent.insert(nonce.unwrap_or_default().to_owned(), now);
    }

    /// When the controller sent the request with this nonce; none if somebody else sent it.
    pub(crate) fn sent(&self, nonce: &str) -> Option<Duration> {
        self.state().sent.get(nonce).copied()
    }

    pub(crate) fn violations(&self) -> Vec<Violation> {
        self.state().violations.clone()
    }

    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.state().lines.clone()
    }

    /// A hash of all lines.
    #[must_use]
    pub fn digest(&self) -> String {
        let hash = Sha256::digest(self.lines().join("\n"));
        hash.iter().take(8).fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}
