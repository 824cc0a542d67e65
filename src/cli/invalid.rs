//! Settings that are missing or invalid together.

/// All missing and invalid settings.
#[derive(Debug, thiserror::Error)]
#[error("missing or invalid settings:\n  {}", .0.join("\n  "))]
pub struct InvalidSettings(pub Vec<String>);
