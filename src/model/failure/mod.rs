//! Stable failure names: operators search for them, alert on them and write them into runbooks. The reference page is
//! generated from the table.

mod table;

pub use table::Failure;

/// The kind of a failure. Each maps to the gRPC code of its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    NotFound,
    /// The name belongs to another resource.
    AlreadyExists,
    /// A state must be changed before the call can succeed.
    FailedPrecondition,
    /// No capacity, stock or quota is left.
    ResourceExhausted,
    OutOfRange,
    /// The operation may have succeeded or be in progress; the caller must retry.
    Unavailable,
    /// Another operation is in progress; the caller must retry later.
    Aborted,
    /// The operation may be in progress; the caller must retry.
    DeadlineExceeded,
    PermissionDenied,
    Unauthenticated,
    /// The request can never succeed as it is.
    InvalidArgument,
    /// The operation was attempted and failed.
    Internal,
}

impl FailureKind {
    /// Whether the caller may conclude that the call had no effect. After any other failure it must repeat the call
    /// until it succeeds or fails with a final code (CSI sidecars; promise 11).
    #[must_use]
    pub fn is_final(self) -> bool {
        !matches!(
            self,
            Self::Unavailable | Self::Aborted | Self::DeadlineExceeded
        )
    }

    /// The name of the gRPC code.
    #[must_use]
    pub fn code_name(self) -> &'static str {
        match self {
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unavailable => "UNAVAILABLE",
            Self::Aborted => "ABORTED",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::Internal => "INTERNAL",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_name_is_unique_and_has_advice() {
        let mut seen = BTreeSet::new();
        for failure in Failure::ALL {
            let name = failure.name();
            assert!(seen.insert(name), "{name}");
            assert!(
                name.chars().all(|c| c.is_ascii_uppercase() || c == '_'),
                "{name}"
            );
            for text in [failure.description(), failure.advice()] {
                assert!(!text.is_empty() && !text.ends_with('.'), "{name}: {text}");
                // They end a sentence of a message, and are cells of a table.
                assert!(
                    !text.contains('\n') && !text.contains('|'),
                    "{name}: {text}"
                );
            }
        }
    }

    #[test]
    fn advice_to_retry_names_the_next_step() {
        let advice = Failure::ALL
            .iter()
            .map(|failure| (failure, failure.advice()));
        let retried = advice.filter(|(_, advice)| advice.contains("retries automatically"));
        let retried: Vec<_> = retried.collect();
        assert!(retried.len() > 15, "{retried:?}");
        for (failure, advice) in retried {
            assert!(
                advice.contains("if the error persists, "),
                "{failure:?}: {advice}"
            );
        }
    }
}
