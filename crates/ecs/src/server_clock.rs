//! The clock of the cloud, by which requests are signed: it rejects signatures that are more than 15 minutes old or in
//! the future.
//!
//! The local clock is used until the cloud rejects the time of a request, or issues credentials that have expired by
//! it. Then the `Date` of this response becomes the time, until the cloud rejects that too. No other response changes
//! it, so a wrong `Date` of a proxy cannot break a clock that the cloud accepts, and a local clock that is corrected
//! later costs one rejected request.

use std::future::Future;
use std::sync::{Arc, Mutex};

use http::HeaderMap;
use http::header::DATE;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::{SignedDuration, Timestamp};

use super::error::Error;
use super::response::Response;
use super::sign::SignedRequest;
use crate::base::clock::{Clock, describe_difference};
use crate::base::lock;

/// A smaller difference is not the cause of a rejection.
const MIN_DIFFERENCE: SignedDuration = SignedDuration::from_secs(60);

/// Clones share the time.
#[derive(Debug, Clone)]
pub struct ServerClock {
    /// The clock of this machine.
    pub(super) local: Arc<dyn Clock>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// How far the local clock was ahead at the last response with a `Date`.
    local_ahead: Option<SignedDuration>,
    /// The part of it that is corrected.
    corrected: SignedDuration,
}

impl Clock for ServerClock {
    fn now(&self) -> Timestamp {
        let now = self.local.now();
        now.saturating_sub(lock(&self.state).corrected).unwrap_or(now)
    }
}

impl ServerClock {
    pub fn new(local: Arc<dyn Clock>) -> Self {
        let state = Arc::default();
        Self { local, state }
    }

    /// How far the local clock is ahead; none before a response with a `Date`.
    #[must_use]
    pub fn local_ahead(&self) -> Option<SignedDuration> {
        lock(&self.state).local_ahead
    }

    /// The cloud's time, or up to about a second earlier: that of the last `Date`, which has whole seconds and is older
    /// than its response, plus the time since then. None before the first response.
    pub fn server_time(&self) -> Option<Timestamp> {
        let ahead = self.local_ahead()?;
        self.local.now().checked_sub(ahead).ok()
    }

    pub(super) fn record(&self, headers: &HeaderMap) {
        if let Some(date) = date(headers) {
            lock(&self.state).local_ahead = Some(self.local.now().duration_since(date));
        }
    }

    /// Sends the request that `sign` makes for a time, and once more if the cloud rejects this time: then it had no
    /// effect. Returns the time of the last request, what `sign` returned with it, and its response.
    pub(super) async fn exchange<S, F>(
        &self,
        sign: impl Fn(Timestamp) -> (SignedRequest, S),
        send: impl Fn(SignedRequest) -> F,
    ) -> Result<(Timestamp, S, Response), Error>
    where
        F: Future<Output = Result<Response, Error>>,
    {
        let mut is_repeated = false;
        loop {
            let time = self.now();
            let (signed, secrets) = sign(time);
            let response = send(signed).await?;
            self.record(response.0.headers());
            // A rejection of the second request corrects the clock for the next call.
            let is_corrected = response.rejects_time() && self.correct(time, response.0.headers());
            if !is_corrected || is_repeated {
                return Ok((time, secrets, response));
            }
            is_repeated = true;
        }
    }

    /// After the cloud has rejected the time of a request: adopts the `Date` of its response. Returns whether the
    /// request is worth repeating.
    pub(super) fn correct(&self, signed: Timestamp, response: &HeaderMap) -> bool {
        let Some(date) = date(response) else {
            return false;
        };
        if signed.duration_since(date).abs() < MIN_DIFFERENCE {
            return false;
        }
        let ahead = self.local.now().duration_since(date);
        let mut state = lock(&self.state);
        let is_news = (ahead - state.corrected).abs() >= MIN_DIFFERENCE;
        state.corrected = ahead;
        drop(state);
        // Requests that ran concurrently were rejected for the same reason.
        if is_news && ahead.abs() < MIN_DIFFERENCE {
            tracing::info!("the local clock agrees with that of the cloud again and signs requests");
        } else if is_news {
            tracing::warn!(
                local_ahead_s = ahead.as_secs(),
                "{}; requests are signed with the time of the cloud; synchronize the clock of this machine",
                describe_difference(ahead)
            );
        }
        true
    }
}

fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let text = headers.get(DATE)?.to_str().ok()?;
    DateTimeParser::new().parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed(Timestamp);

    impl Clock for Fixed {
        fn now(&self) -> Timestamp {
            self.0
        }
    }

    fn dated(date: &str) -> HeaderMap {
        HeaderMap::from_iter([(DATE, date.parse().unwrap())])
    }

    const NOON: &str = "Fri, 01 May 2026 12:00:00 GMT";

    /// A local clock at five past twelve.
    fn clock() -> (ServerClock, Timestamp) {
        let now = "2026-05-01T12:05:00Z".parse().unwrap();
        (ServerClock::new(Arc::new(Fixed(now))), now)
    }

    #[test]
    fn the_difference_is_read_from_every_response_and_not_applied() {
        let (clock, now) = clock();
        clock.record(&HeaderMap::new());
        assert_eq!((clock.local_ahead(), clock.server_time()), (None, None));
        clock.record(&dated(NOON));
        assert_eq!(clock.local_ahead(), Some(SignedDuration::from_mins(5)));
        assert_eq!(clock.server_time(), "2026-05-01T12:00:00Z".parse().ok());
        assert_eq!(clock.now(), now);
    }

    #[test]
    fn the_date_of_a_rejection_becomes_the_time_until_it_is_rejected() {
        let (clock, now) = clock();
        assert!(clock.correct(now, &dated(NOON)));
        let noon: Timestamp = "2026-05-01T12:00:00Z".parse().unwrap();
        assert_eq!(clock.now(), noon);
        // The local clock was right, and the rejection came from a cache.
        assert!(clock.correct(noon, &dated("Fri, 01 May 2026 12:05:01 GMT")));
        assert_eq!(clock.now(), "2026-05-01T12:05:01Z".parse().unwrap());
    }

    #[tokio::test]
    async fn a_request_is_signed_with_the_time_of_the_clock() {
        let (clock, now) = clock();
        let sign = |time: Timestamp| {
            let (query, signature) = (String::new(), String::new());
            let headers = Vec::new();
            (
                SignedRequest {
                    query,
                    headers,
                    signature,
                },
                time,
            )
        };
        let send = |_| async { Ok(Response(http::Response::default())) };
        let (_, signed, _) = clock.exchange(sign, send).await.unwrap();
        assert_eq!(signed, now);
    }

    #[test]
    fn a_rejection_that_its_date_does_not_explain_changes_nothing() {
        let (clock, now) = clock();
        assert!(!clock.correct(now, &HeaderMap::new()));
        assert!(!clock.correct(now, &dated("Fri, 01 May 2026 12:05:59 GMT")));
        assert_eq!(clock.now(), now);
    }
}
