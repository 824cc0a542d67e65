//! What can go wrong with a cloud call, classed by what to do next.

use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use super::code;

/// What an error means for the caller. Decided by the string `Code`; the same condition comes with
/// different HTTP statuses from different actions. The table is in `cloud/code.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The request never reached the cloud: nothing happened.
    Unreachable,
    /// It may or may not have happened: connection lost, unreadable answer, 5xx.
    Ambiguous,
    /// Too many calls; wait.
    Throttled,
    /// The resource is in another state now; read it again.
    Conflict,
    /// An earlier call under the same token is still running.
    InFlight,
    /// The token was used before, for another request.
    TokenMismatch,
    /// The resource is not there.
    NotFound,
    /// This category cannot be had in this zone now, or not as wanted: another pair may do.
    OutOfStock,
    /// A quota or limit of the account or instance is reached.
    Quota,
    /// Somebody must change something about the disk, the instance, the key or the account first.
    Precondition,
    /// No such size, performance level or number of IOPS.
    OutOfRange,
    /// The temporary credentials are expired, or the key is unknown and may have been replaced: renew
    /// them and sign again.
    Expired,
    /// The request is malformed or names what the API does not have: a mistake of this driver.
    Bug,
    /// The credentials are wrong, expired or not permitted.
    Denied,
    /// The nonce was used before: sign again.
    Resign,
    /// The request can never succeed as it is.
    Invalid,
    /// The caller's deadline came first; whether it happened is unknown.
    Deadline,
    /// No credentials could be had.
    Credentials,
}

impl Kind {
    /// Whether a call that failed like this may have taken effect, or may still.
    pub(super) fn is_ambiguous(self) -> bool {
        match self {
            // A used nonce may be that of a copy of this very request.
            Self::Ambiguous | Self::InFlight | Self::Resign | Self::Deadline => true,
            Self::Unreachable
            | Self::Throttled
            | Self::Conflict
            | Self::TokenMismatch
            | Self::NotFound
            | Self::OutOfStock
            | Self::Quota
            | Self::Precondition
            | Self::OutOfRange
            | Self::Expired
            | Self::Bug
            | Self::Denied
            | Self::Invalid
            | Self::Credentials => false,
        }
    }
}

/// A failed cloud call.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: Kind,
    action: &'static str,
    code: Option<String>,
    status: Option<u16>,
    message: Option<String>,
    request_id: Option<String>,
    attempts: u32,
    elapsed: Duration,
    after_ambiguous: bool,
    wait: Option<Duration>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error without an answer of the cloud.
    #[must_use]
    pub fn new(kind: Kind, action: &'static str) -> Self {
        Self(Box::new(Inner {
            kind,
            action,
            code: None,
            status: None,
            message: None,
            request_id: None,
            attempts: 1,
            elapsed: Duration::ZERO,
            after_ambiguous: false,
            wait: None,
            source: None,
        }))
    }

    /// An error that the cloud answered; its kind follows from the code, else from the status.
    #[must_use]
    pub fn answered(action: &'static str, status: u16, code: &str) -> Self {
        let kind = code::kind(action, status, code);
        let mut error = Self::new(kind, action);
        error.0.status = Some(status);
        error.0.code = (!code.is_empty()).then(|| code.to_owned());
        error
    }

    /// With another meaning than the code's own, where the caller knows better.
    #[must_use]
    pub fn with_kind(mut self, kind: Kind) -> Self {
        self.0.kind = kind;
        self
    }

    /// With the cloud's or our own words.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = Some(message.into()).filter(|m| !m.is_empty());
        self
    }

    /// With the cloud's id of the request.
    #[must_use]
    pub fn with_request_id(mut self, id: impl Into<String>) -> Self {
        self.0.request_id = Some(id.into()).filter(|id| !id.is_empty());
        self
    }

    /// With the HTTP status.
    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    /// With its cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// With what it took to get here.
    #[must_use]
    pub fn with_effort(mut self, attempts: u32, elapsed: Duration) -> Self {
        self.0.attempts = attempts;
        self.0.elapsed = elapsed;
        self
    }

    /// With whether an earlier attempt of the same call may have taken effect.
    #[must_use]
    pub fn after_ambiguous(mut self, after_ambiguous: bool) -> Self {
        self.0.after_ambiguous = after_ambiguous;
        self
    }

    /// Whether this attempt of the call, or an earlier one, may have taken effect.
    #[must_use]
    pub fn may_have_taken_effect(&self) -> bool {
        self.0.after_ambiguous || self.0.kind.is_ambiguous()
    }

    /// With the time that the cloud asks to wait.
    #[must_use]
    pub fn with_wait(mut self, wait: Option<Duration>) -> Self {
        self.0.wait = wait;
        self
    }

    /// The time that the cloud asks to wait before the next attempt.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.0.wait
    }

    /// What it means.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The action that failed.
    #[must_use]
    pub fn action(&self) -> &'static str {
        self.0.action
    }

    /// The cloud's code, such as `InvalidDiskId.NotFound`.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The HTTP status.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The cloud's or our own words; the cloud sometimes has none.
    #[must_use]
    pub fn message(&self) -> Option<&str> {
        self.0.message.as_deref()
    }

    /// The cloud's id of the request, for a support ticket.
    #[must_use]
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// How often it was tried.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    /// Whether the cloud answered with this code.
    #[must_use]
    pub fn has_code(&self, code: &str) -> bool {
        self.code() == Some(code)
    }

    /// Whether too many operations are in progress, which is not a matter of the call rate.
    #[must_use]
    pub fn is_concurrency_limit(&self) -> bool {
        self.has_code("Throttling.ConcurrentLimitExceeded")
    }

    /// Whether the cloud does not know the region, which every call has, or sells no disks there.
    #[must_use]
    pub fn is_of_region(&self) -> bool {
        const OTHERS: [&str; 2] = ["Invalid.RegionId", "Unavailable.Regions"];
        self.code()
            .is_some_and(|code| code.starts_with("InvalidRegion") || OTHERS.contains(&code))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0;
        write!(f, "{} failed", inner.action)?;
        match (&inner.code, inner.kind) {
            (Some(code), _) => write!(f, " with {code}")?,
            (None, Kind::Deadline) => f.write_str(" at the deadline")?,
            (None, Kind::Unreachable) => f.write_str(": the cloud was not reached")?,
            (None, Kind::Credentials) => f.write_str(": no credentials")?,
            (None, _) => {}
        }
        if let Some(message) = &inner.message {
            write!(f, ": {message}")?;
        }
        let mut facts = Vec::new();
        if let Some(status) = inner.status {
            facts.push(format!("HTTP {status}"));
        }
        if let Some(id) = &inner.request_id {
            facts.push(format!("RequestId {id}"));
        }
        if inner.attempts > 1 {
            facts.push(format!(
                "{} attempts in {:.1} s",
                inner.attempts,
                inner.elapsed.as_secs_f64()
            ));
        }
        if !facts.is_empty() {
            write!(f, " ({})", facts.join(", "))?;
        }
        Ok(())
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0
            .source
            .as_deref()
            .map(|source| source as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_tells_action_code_words_status_and_request_id() {
        let error = Error::answered("AttachDisk", 403, "InstanceDiskLimitExceeded")
            .with_message("The amount of the disk on instance in question reach its limits.")
            .with_request_id("540CFF28-407A-40B5-B6A5-74BEXAMPLE")
            .with_effort(2, Duration::from_millis(1500));
        assert_eq!(error.kind(), Kind::Quota);
        assert_eq!(
            error.to_string(),
            "AttachDisk failed with InstanceDiskLimitExceeded: The amount of the disk on instance in \
             question reach its limits. (HTTP 403, RequestId 540CFF28-407A-40B5-B6A5-74BEXAMPLE, \
             2 attempts in 1.5 s)"
        );
    }

    #[test]
    fn the_code_decides_whatever_the_status() {
        for (status, code, kind) in [
            (404, "InternalError", Kind::Ambiguous),
            (403, "Throttling", Kind::Throttled),
            (400, "Throttling.User", Kind::Throttled),
            (400, "Throttling.ConcurrentLimitExceeded", Kind::Throttled),
            (404, "InvalidDisk.InUse", Kind::Conflict),
            (404, "InvalidAccessKeyId.NotFound", Kind::Expired),
            (400, "InvalidDiskSize.NotSupported", Kind::OutOfRange),
            (403, "QuotaExceed.Tags", Kind::Invalid),
        ] {
            assert_eq!(Error::answered("X", status, code).kind(), kind, "{code}");
        }
    }

    #[test]
    fn without_a_code_the_status_decides() {
        assert_eq!(Error::answered("X", 502, "").kind(), Kind::Ambiguous);
        assert_eq!(Error::answered("X", 429, "").kind(), Kind::Throttled);
        assert_eq!(Error::answered("X", 400, "").kind(), Kind::Invalid);
    }
}
