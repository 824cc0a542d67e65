//! Assertions on the output of processes and on responses.

use crate::common::process::Ended;

#[track_caller]
pub(crate) fn assert_has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?}: {text}");
    }
}

#[track_caller]
pub(crate) fn assert_lacks(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(!text.contains(part), "{part:?} is in: {text}");
    }
}

/// Asserts the exit code, and that stderr has these parts.
#[track_caller]
pub(crate) fn assert_failed(ended: &Ended, code: i32, parts: &[&str]) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert_has(&ended.stderr, parts);
}

/// Asserts the exit code 0 and an empty stderr.
#[track_caller]
pub(crate) fn assert_succeeded(ended: &Ended) {
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{}", ended.stdout);
}
