//! Invalid request fields. `csi::status` maps them to gRPC statuses.

use crate::model::Failure;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An invalid field, with the reason. It never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}{reason}")]
pub struct Error {
    pub(crate) failure: Failure,
    /// The path of the field in its message, such as `volume_capability.mount.fs_type`. Entries of maps are named by
    /// their key: `parameter "type"`, `volume_context "fsType"`.
    field: String,
    /// Begins with a separator.
    reason: String,
}

impl Error {
    fn bad_request(field: impl Into<String>, reason: String) -> Self {
        let failure = Failure::BadRequest;
        let field = field.into();
        Self { failure, field, reason }
    }

    fn with(self, failure: Failure) -> Self {
        Self { failure, ..self }
    }

    /// The error of a field of the message in the field `outer`.
    pub(super) fn within(self, outer: impl std::fmt::Display) -> Self {
        let field = format!("{outer}.{}", self.field);
        Self { field, ..self }
    }

    pub(crate) fn missing(field: impl Into<String>) -> Self {
        Self::bad_request(field, " is required".to_owned())
    }

    pub(crate) fn value(field: impl Into<String>, value: &str, allowed: impl AsRef<str>) -> Self {
        Self::bad_request(field, format!(" has value {value:?}; allowed: {}", allowed.as_ref()))
    }

    pub(crate) fn unknown_key(field: &str, value: &str, allowed: &str) -> Self {
        let reason = format!(" with value {value:?}; allowed: {allowed}");
        Self::bad_request(format!("unknown {field}"), reason)
    }

    /// `cause` is the syntax error, with the value.
    pub(crate) fn malformed(field: impl Into<String>, cause: &impl ToString) -> Self {
        Self::bad_request(field, format!(": {}", cause.to_string()))
    }

    /// The field is not supported, alone or in this combination.
    pub(crate) fn unsupported(field: impl Into<String>, why: impl AsRef<str>) -> Self {
        Self::bad_request(field, format!(" {}", why.as_ref()))
    }

    /// An ID or path that no resource can have. Their format is opaque to callers, so the code is `NOT_FOUND`.
    pub(crate) fn not_found(field: &str, cause: &impl ToString) -> Self {
        Self::malformed(field, cause).with(Failure::NoSuchResource)
    }

    /// CSI: an invalid `starting_token` is `ABORTED`.
    pub(crate) fn token(token: &str) -> Self {
        let why = format!("{token} was not issued by this driver; list again from the start");
        Self::unsupported("starting_token", why).with(Failure::StalePageToken)
    }

    /// No zone is in both topology and class. CSI: `RESOURCE_EXHAUSTED`, so that the scheduler chooses another node.
    pub(crate) fn no_zone(field: &str, why: &str) -> Self {
        Self::malformed(field, &why).with(Failure::NoSuitableZone)
    }
}
