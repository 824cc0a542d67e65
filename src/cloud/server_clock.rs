//! The difference between the clock of this machine and that of the cloud, from the `Date` header of its responses. The
//! cloud rejects signatures that are more than 15 minutes old.

use std::sync::{Arc, Mutex, PoisonError};

use http::HeaderMap;
use http::header::DATE;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};

/// The difference of the last response with a `Date`. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ServerClock(Arc<Mutex<Option<SignedDuration>>>);

impl ServerClock {
    /// How far the local clock is ahead; none before a response with a `Date`.
    #[must_use]
    pub fn local_ahead(&self) -> Option<SignedDuration> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn record(&self, headers: &HeaderMap, now: Timestamp) {
        if let Some(date) = date(headers) {
            let ahead = now.duration_since(date);
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(ahead);
        }
    }
}

fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let text = headers.get(DATE)?.to_str().ok()?;
    DateTimeParser::new().parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn difference_is_read_from_the_date_of_a_response() {
        let clock = ServerClock::default();
        let now: Timestamp = "2026-05-01T12:05:00Z".parse().unwrap();
        clock.record(&HeaderMap::new(), now);
        assert_eq!(clock.local_ahead(), None);
        let mut headers = HeaderMap::new();
        headers.insert(DATE, "Fri, 01 May 2026 12:00:00 GMT".parse().unwrap());
        clock.record(&headers, now);
        assert_eq!(clock.local_ahead(), Some(SignedDuration::from_mins(5)));
    }
}
