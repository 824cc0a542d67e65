//! The result of a check.

use serde::Serialize;

/// Names in a text before it is truncated.
const MOST_NAMES: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Ok,
    /// It could not be checked; what was found is the reason.
    Skipped,
    /// Something is limited or will fail later.
    Warning,
    /// The driver does not work.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable, such as `cloud/clock`.
    pub name: String,
    pub status: Status,
    pub found: String,
    /// What to do; empty if nothing.
    #[serde(rename = "todo")]
    pub advice: String,
}

impl Check {
    pub fn new(name: impl Into<String>, status: Status, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            status,
            found: found.into(),
            advice: advice.into(),
        }
    }

    pub fn ok(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self::new(name, Status::Ok, found, "")
    }

    pub fn skipped(name: impl Into<String>, reason: impl Into<String>) -> Self {
        Self::new(name, Status::Skipped, reason, "")
    }

    pub fn warning(name: impl Into<String>, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(name, Status::Warning, found, advice)
    }

    pub fn failed(name: impl Into<String>, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self::new(name, Status::Failed, found, advice)
    }
}

/// The first of these names, and how many more there are.
pub(super) fn first(names: &[&str]) -> String {
    let (shown, more) = names.split_at(names.len().min(MOST_NAMES));
    match more.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
