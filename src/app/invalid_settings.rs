//! Settings with which a role does not start.

/// All missing and invalid settings.
#[derive(Debug, thiserror::Error)]
#[error("missing or invalid settings:\n  {}", .0.join("\n  "))]
pub(crate) struct InvalidSettings(pub(crate) Vec<String>);
