//! An error with all its causes, in one line.

use std::error::Error;
use std::fmt::Write;

/// The error's message and those of its sources, joined by ": ". A source whose text the message
/// above it already ends in is not repeated.
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> String {
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
    fn every_cause_is_in_the_line() {
        let error = Outer(std::io::Error::other("disk on fire"));
        assert_eq!(chain(&error), "cannot read the token file: disk on fire");
    }
}
