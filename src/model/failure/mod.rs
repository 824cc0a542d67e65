//! How calls can fail, each way under a name that does not change: people search for it, alert on
//! it and write it into runbooks. The table is all there is to know of a name; the reference page is
//! made from it.

mod table;

pub use table::Failure;

/// What a failure means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Meaning {
    /// What is named does not exist.
    NotFound,
    /// The name belongs to something else.
    AlreadyExists,
    /// Somebody must change a state first.
    Precondition,
    /// There is no room, stock or quota.
    Exhausted,
    /// No such size.
    OutOfRange,
    /// It may have happened, or be under way: repeat.
    Unclear,
    /// Something else is being done to it: repeat later.
    Busy,
    /// The deadline came first; it may be under way.
    Deadline,
    /// The credentials do not permit it.
    Denied,
    /// There are no credentials.
    NoCredentials,
    /// The request can never succeed as it is.
    Refused,
    /// It was tried and failed.
    Failed,
}

impl Meaning {
    /// Whether a caller may conclude that the call had no effect. After the others it must repeat the call until one
    /// succeeds or fails for good (CSI sidecars; promise 11).
    #[must_use]
    pub fn is_final(self) -> bool {
        !matches!(self, Self::Unclear | Self::Busy | Self::Deadline)
    }

    /// The name of the gRPC code for it.
    #[must_use]
    pub fn code_name(self) -> &'static str {
        match self {
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::Precondition => "FAILED_PRECONDITION",
            Self::Exhausted => "RESOURCE_EXHAUSTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unclear => "UNAVAILABLE",
            Self::Busy => "ABORTED",
            Self::Deadline => "DEADLINE_EXCEEDED",
            Self::Denied => "PERMISSION_DENIED",
            Self::NoCredentials => "UNAUTHENTICATED",
            Self::Refused => "INVALID_ARGUMENT",
            Self::Failed => "INTERNAL",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_is_unique_upper_case_and_says_what_to_do() {
        let mut seen = BTreeSet::new();
        for failure in Failure::ALL {
            let name = failure.name();
            assert!(seen.insert(name), "{name}");
            assert!(
                name.chars().all(|c| c.is_ascii_uppercase() || c == '_'),
                "{name}"
            );
            for text in [failure.means(), failure.todo()] {
                assert!(!text.is_empty() && !text.ends_with('.'), "{name}: {text}");
                // They end a sentence in a message, and stand in a table.
                assert!(
                    !text.contains('\n') && !text.contains('|'),
                    "{name}: {text}"
                );
            }
        }
    }

    #[test]
    fn who_is_told_to_wait_is_told_what_to_do_when_that_does_not_help() {
        let mut waits = 0;
        for failure in Failure::ALL {
            let todo = failure.todo();
            if todo.starts_with("nothing") || todo.starts_with("wait:") {
                waits += 1;
                assert!(todo.contains("if it stays, "), "{}: {todo}", failure.name());
            }
        }
        assert!(waits > 15, "{waits}");
    }
}
