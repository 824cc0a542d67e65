//! The error of a text that cannot be parsed.

/// The text does not have the expected form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not {1}")]
pub struct InvalidText(pub(crate) String, pub(crate) &'static str);
