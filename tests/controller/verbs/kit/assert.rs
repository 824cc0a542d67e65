//! Assertions on the errors of calls.

use super::*;

/// The result of a call that must succeed.
#[track_caller]
pub(crate) fn expect<T>(call: &str, outcome: Result<T, Error>) -> T {
    outcome.unwrap_or_else(|error| panic!("{call}: {}", text(&error)))
}

/// Asserts that the message of the RPC contains these parts.
#[track_caller]
pub(crate) fn assert_names(error: &Error, parts: &[&str]) {
    let text = text(error);
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Asserts the code of the RPC and parts of its message.
#[track_caller]
pub(crate) fn assert_error(error: &Error, kind: FailureKind, parts: &[&str]) {
    assert_eq!(error.failure_kind(), kind, "{}", text(error));
    assert_names(error, parts);
}

#[track_caller]
pub(crate) fn assert_failure(error: &Error, failure: Failure) {
    assert_eq!(error.failure(), failure, "{}", text(error));
}

/// Asserts that the error is `UNAVAILABLE` or `DEADLINE_EXCEEDED`.
#[track_caller]
pub(crate) fn assert_unavailable(error: &Error) {
    let codes = [FailureKind::Unavailable, FailureKind::DeadlineExceeded];
    assert!(codes.contains(&error.failure_kind()), "{}", text(error));
}

/// Asserts that the error is not final, so that the caller repeats the call.
#[track_caller]
pub(crate) fn assert_not_final(error: &Error) {
    assert!(!is_final(error), "{}", text(error));
}

/// The error message of the RPC: error name, causes and advice.
pub(crate) fn text(error: &diskplugin::disk::Error) -> String {
    let (failure, chain) = (error.failure(), diskplugin::base::error_chain(error));
    format!("{}: {chain}; {}", failure.name(), failure.advice())
}
