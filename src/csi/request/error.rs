//! Invalid request fields. `csi::status` maps them to gRPC statuses.

use std::borrow::Cow;

/// The path of a field in its message, such as `volume_capability.mount.fs_type`. Entries of maps are named by their
/// key: `parameter "type"`, `volume_context "fsType"`.
pub type Field = Cow<'static, str>;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An invalid field, with the reason. It never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0} is required")]
    Missing(Field),
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    #[error("{0} has value {1:?}; allowed: {2}")]
    Value(Field, String, String),
    #[error("unknown {0} with value {1:?}; allowed: {2}")]
    UnknownKey(Field, String, &'static str),
    /// The second text is the syntax error, with the value.
    #[error("{0}: {1}")]
    Malformed(Field, String),
    /// The field is not supported, alone or in this combination.
    #[error("{0} {1}")]
    Unsupported(Field, String),
    /// An ID or path that no resource can have. Their format is opaque to callers, so the code is `NOT_FOUND`.
    #[error("{0}: {1}")]
    NotFound(Field, String),
    /// CSI: an invalid `starting_token` is `ABORTED`.
    #[error("starting_token {0} was not issued by this driver; list again from the start")]
    Token(String),
    /// No zone is in both topology and class. CSI: `RESOURCE_EXHAUSTED`, so that the scheduler chooses another node.
    #[error("{0}: {1}")]
    NoZone(Field, String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} has {size} bytes; CSI allows at most {limit}")]
pub struct TooLarge {
    pub(super) field: Field,
    pub(super) size: usize,
    pub(super) limit: usize,
}

impl Error {
    pub(crate) fn value(field: impl Into<Field>, value: &str, allowed: impl Into<String>) -> Self {
        Self::Value(field.into(), value.to_owned(), allowed.into())
    }

    pub(crate) fn malformed(field: impl Into<Field>, cause: &impl ToString) -> Self {
        Self::Malformed(field.into(), cause.to_string())
    }

    pub(crate) fn unsupported(field: impl Into<Field>, why: impl Into<String>) -> Self {
        Self::Unsupported(field.into(), why.into())
    }
}
