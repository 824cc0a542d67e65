//! Formats an error with its sources in one line.

use std::error::Error;
use std::fmt::Write;

/// The messages of the error and its sources, joined by ": ". A source is omitted if the previous
/// message already ends with its text.
#[must_use]
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            // Writing to a String cannot fail.
            let _ = write!(text, ": {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read the token file")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn every_source_is_in_the_line() {
        let error = Outer(std::io::Error::other("disk on fire"));
        assert_eq!(error_chain(&error), "cannot read the token file: disk on fire");
    }
}
