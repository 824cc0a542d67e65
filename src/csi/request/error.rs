//! A field of a request that is refused. `csi::status` makes the gRPC status of it.

use std::borrow::Cow;

/// The path of a field in its message, such as `volume_capability.mount.fs_type`. An entry of a map has its key:
/// `parameter "type"`, `volume_context "fsType"`.
pub type Field = Cow<'static, str>;

/// Which field is refused, and why. Never holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The field is empty or absent.
    #[error("{0} is required")]
    Missing(Field),
    /// The field is larger than CSI allows.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The value is not one of those allowed.
    #[error("{0} has value {1:?}; allowed: {2}")]
    Value(Field, String, String),
    /// The map has a key that is not allowed.
    #[error("unknown {0} with value {1:?}; allowed are {2}")]
    UnknownKey(Field, String, &'static str),
    /// The number is negative.
    #[error("{0} {1} is negative")]
    Negative(Field, i64),
    /// The text does not have the form that it must have; the second text repeats it.
    #[error("{0}: {1}")]
    Malformed(Field, String),
    /// The field is not supported, or not together with other fields.
    #[error("{0} {1}")]
    Unsupported(Field, String),
    /// An id or a path that nothing can have. The caller cannot know their form, so it is `NOT_FOUND`.
    #[error("{0}: {1}")]
    NotFound(Field, String),
    /// CSI: a `starting_token` that is not valid is `ABORTED`.
    #[error("starting_token {0} was not given out by this driver; list again from the start")]
    Token(String),
    /// No zone satisfies topology and class. CSI: `RESOURCE_EXHAUSTED`, so that the scheduler chooses another node.
    #[error("{0}: {1}")]
    NoZone(Field, String),
}

/// A field that is larger than CSI allows.
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
