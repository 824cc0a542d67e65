//! Errors of cloud calls, classified by their consequence for the caller.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::code;
pub use super::code::{Condition, Kind};

#[derive(Debug, Clone, thiserror::Error)]
#[error(transparent)]
pub struct Error(Box<Inner>);

#[derive(Debug, Clone, thiserror::Error)]
struct Inner {
    kind: Kind,
    condition: Condition,
    action: &'static str,
    code: Option<String>,
    status: Option<u16>,
    message: Option<String>,
    request_id: Option<String>,
    attempts: u32,
    elapsed: Duration,
    has_ambiguous_attempt: bool,
    retry_after: Option<Duration>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// An error without a response of the cloud.
    pub fn new(kind: Kind, action: &'static str) -> Self {
        Self::of(kind.condition(), action)
    }

    pub(super) fn of(condition: Condition, action: &'static str) -> Self {
        Self(Box::new(Inner {
            kind: condition.kind(),
            condition,
            action,
            code: None,
            status: None,
            message: None,
            request_id: None,
            attempts: 1,
            elapsed: Duration::ZERO,
            has_ambiguous_attempt: false,
            retry_after: None,
            source: None,
        }))
    }

    /// An error response of the cloud. The code is classified only here.
    pub fn from_response(action: &'static str, status: u16, code: &str) -> Self {
        let mut error = Self::of(code::condition(action, status, code), action);
        error.0.status = Some(status);
        error.0.code = (!code.is_empty()).then(|| code.to_owned());
        error
    }

    pub fn with_kind(mut self, kind: Kind) -> Self {
        self.0.kind = kind;
        self
    }

    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.0.message = Some(message.into()).filter(|m| !m.is_empty());
        self
    }

    pub fn with_request_id(mut self, id: impl Into<String>) -> Self {
        self.0.request_id = Some(id.into()).filter(|id| !id.is_empty());
        self
    }

    pub fn with_status(mut self, status: u16) -> Self {
        self.0.status = Some(status);
        self
    }

    pub fn with_source(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    pub fn with_attempts(mut self, attempts: u32, elapsed: Duration) -> Self {
        self.0.attempts = attempts;
        self.0.elapsed = elapsed;
        self
    }

    /// Sets whether an earlier attempt of the same call may have taken effect.
    pub fn with_ambiguous_attempt(mut self, is_ambiguous: bool) -> Self {
        self.0.has_ambiguous_attempt = is_ambiguous;
        self
    }

    /// Whether the cause has this type.
    pub(super) fn is_caused_by<T: StdError + 'static>(&self) -> bool {
        self.0.source.as_deref().is_some_and(|cause| cause.is::<T>())
    }

    /// Whether this attempt of the call, or an earlier one, may have taken effect, or may still. A used nonce may be
    /// that of a copy of this request.
    pub fn may_have_taken_effect(&self) -> bool {
        let ambiguous = [Kind::Ambiguous, Kind::OperationPending, Kind::NonceUsed, Kind::Deadline];
        self.0.has_ambiguous_attempt || ambiguous.contains(&self.0.kind)
    }

    pub fn with_retry_after(mut self, retry_after: Option<Duration>) -> Self {
        self.0.retry_after = retry_after;
        self
    }

    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    pub fn action(&self) -> &'static str {
        self.0.action
    }

    /// The cloud's code, such as `InvalidDiskId.NotFound`.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The message of the cloud or of this client. The cloud sometimes omits it.
    pub fn message(&self) -> Option<&str> {
        self.0.message.as_deref()
    }

    /// The cloud's `RequestId`, for support tickets.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    pub fn condition(&self) -> Condition {
        self.0.condition
    }

    /// Whether the region, which every call has, is unknown or does not offer disks.
    pub fn is_about_region(&self) -> bool {
        matches!(
            self.condition(),
            Condition::UnknownRegion | Condition::RegionUnsupported
        )
    }

    /// Whether the code reports an invalid value in the request other than the region.
    pub(super) fn is_about_value(&self) -> bool {
        self.code().is_some_and(code::is_about_value) && !self.is_about_region()
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed", self.action)?;
        match (&self.code, self.kind) {
            (Some(code), _) => write!(f, " with {code}")?,
            (None, Kind::Deadline) => f.write_str(" at the deadline")?,
            (None, Kind::Unreachable) => f.write_str(": cannot reach the cloud")?,
            (None, Kind::Credentials) => f.write_str(": no credentials")?,
            (None, _) => {}
        }
        if let Some(message) = &self.message {
            write!(f, ": {message}")?;
        }
        let (attempts, seconds) = (self.attempts, self.elapsed.as_secs_f64());
        let facts = [
            self.status.map(|status| format!("HTTP {status}")),
            self.request_id.as_ref().map(|id| format!("RequestId {id}")),
            (attempts > 1).then(|| format!("{attempts} attempts in {seconds:.1} s")),
        ];
        let facts: Vec<_> = facts.into_iter().flatten().collect();
        if facts.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", facts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_displays_action_code_message_status_and_request_id() {
        let error = Error::from_response("AttachDisk", 403, "InstanceDiskLimitExceeded")
            .with_message("The amount of the disk on instance in question reach its limits.")
            .with_request_id("540CFF28-407A-40B5-B6A5-74BEXAMPLE")
            .with_attempts(2, Duration::from_millis(1500));
        assert_eq!(error.kind(), Kind::Quota);
        assert_eq!(
            error.to_string(),
            "AttachDisk failed with InstanceDiskLimitExceeded: The amount of the disk on instance in \
             question reach its limits. (HTTP 403, RequestId 540CFF28-407A-40B5-B6A5-74BEXAMPLE, \
             2 attempts in 1.5 s)"
        );
    }

    #[test]
    fn the_code_takes_precedence_over_the_status() {
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
            assert_eq!(Error::from_response("X", status, code).kind(), kind, "{code}");
        }
    }

    #[test]
    fn a_region_without_disks_is_about_the_region_and_not_about_a_value() {
        for code in ["InvalidRegionId.NotFound", "InvalidRegion.NotSupport"] {
            let error = Error::from_response("DescribeDisks", 400, code);
            assert!(error.is_about_region() && !error.is_about_value(), "{code}");
        }
        assert!(Error::from_response("DescribeDisks", 400, "InvalidDiskIds.ValueNotSupported").is_about_value());
    }

    #[test]
    fn without_a_code_the_status_decides() {
        assert_eq!(Error::from_response("X", 502, "").kind(), Kind::Ambiguous);
        assert_eq!(Error::from_response("X", 429, "").kind(), Kind::Throttled);
        assert_eq!(Error::from_response("X", 400, "").kind(), Kind::Invalid);
    }
}
