//! The health of the cloud API for the readiness check: last response, rejected credentials and outages. It is derived
//! from the calls that are made anyway.

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use scopeguard::ScopeGuard;
use tokio::time::Instant;

use super::error::{Condition, Error};
use crate::base::{error_chain, lock};

/// Advice for operators if the cloud does not respond.
pub const CONNECTIVITY_ADVICE: &str = "check the certificate if the error names one, otherwise the network path to the \
                                       cloud API: DNS, proxy, NetworkPolicy, endpoint";

/// A request that is canceled after so long counts as failed; an earlier cancellation has other reasons. An outage of
/// so long is logged: the calls that wait for its end log only when they end.
const OUTAGE_AFTER: Duration = Duration::from_secs(5);
/// How long a rejected or failed call counts if no call followed. Otherwise an idle controller would never be healthy
/// again.
pub const RECENT: Duration = Duration::from_mins(10);
/// After so long without a call a failure starts a new outage.
const OUTAGE_GAP: Duration = Duration::from_mins(10);

/// The observed health of the API. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ApiHealth(Arc<Mutex<Report>>);

#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Any response counts, including errors.
    pub last_response: Option<Instant>,
    /// The rejection of credentials or region; none once they are accepted.
    pub rejected: Option<(Instant, Rejection)>,
    pub outage: Option<Outage>,
}

/// An error that every call returns: the credentials themselves, not their permissions, or the region are rejected.
#[derive(Debug, Clone)]
pub struct Rejection {
    pub condition: Condition,
    /// The full error with its RequestId.
    pub error: String,
}

/// Failed requests without a response since.
#[derive(Debug, Clone)]
pub struct Outage {
    /// When the first failed request was sent, or a later response to another request arrived.
    pub since: Instant,
    pub last_failure: Instant,
    pub error: String,
    pub is_logged: bool,
}

impl Report {
    /// How long the outage has been observed: until its last failed request, because the time after it was
    /// not observed. Zero if none failed recently.
    #[must_use]
    pub fn outage_duration(&self) -> Duration {
        let outage = self.outage.as_ref();
        let outage = outage.filter(|outage| outage.last_failure.elapsed() < RECENT);
        outage.map_or(Duration::ZERO, |outage| {
            outage.last_failure.duration_since(outage.since)
        })
    }
}

impl ApiHealth {
    /// Runs an HTTP exchange with the host and records its outcome. Preceding steps, such as obtaining credentials, are
    /// not part of the exchange.
    pub(super) async fn track<T>(
        &self,
        host: &str,
        exchange: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let begun = Instant::now();
        let canceled = scopeguard::guard((), |()| {
            let waited = begun.elapsed();
            if waited >= OUTAGE_AFTER {
                let waited = waited.as_secs_f64();
                self.record_failure(begun, &format!("no response from {host} within {waited:.0} s"));
            }
        });
        let outcome = exchange.await;
        ScopeGuard::into_inner(canceled);
        match &outcome {
            Err(error) if error.status().is_none() => {
                self.record_failure(begun, &error_chain(error));
            }
            _ => self.record_response(),
        }
        outcome
    }

    /// Records whether the response rejects the credentials or the region.
    pub(super) fn record_result(&self, failure: Option<&Error>) {
        // An error without a status, such as missing credentials, is not from the cloud.
        if failure.is_none_or(|error| error.status().is_some()) {
            let rejection = failure.and_then(rejection);
            lock(&self.0).rejected = rejection.map(|rejection| (Instant::now(), rejection));
        }
    }

    pub fn report(&self) -> Report {
        lock(&self.0).clone()
    }

    fn record_response(&self) {
        let now = Instant::now();
        let mut report = lock(&self.0);
        report.last_response = Some(now);
        let outage = report.outage.take();
        // A blocked log must not block other calls.
        drop(report);
        if let Some(outage) = outage.filter(|outage| outage.is_logged) {
            let duration = now.duration_since(outage.since).as_secs_f64();
            tracing::info!("the cloud responds again after {duration:.0} s");
        }
    }

    fn record_failure(&self, begun: Instant, error: &str) {
        let now = Instant::now();
        let mut report = lock(&self.0);
        // A single connection can be dead while others work.
        let begun = report.last_response.map_or(begun, |at| at.max(begun));
        let previous = report.outage.as_ref();
        let previous = previous.filter(|outage| begun.duration_since(outage.last_failure) < OUTAGE_GAP);
        let since = previous.map_or(begun, |outage| outage.since);
        let was_logged = previous.is_some_and(|outage| outage.is_logged);
        let duration = now.duration_since(since);
        let is_logged = was_logged || duration >= OUTAGE_AFTER;
        report.outage = Some(Outage {
            since,
            last_failure: now,
            error: error.to_owned(),
            is_logged,
        });
        drop(report);
        if is_logged && !was_logged {
            let duration = duration.as_secs_f64();
            tracing::warn!(
                error,
                "the cloud has not responded for {duration:.0} s; calls are retried; if this persists, {CONNECTIVITY_ADVICE}"
            );
        }
    }
}

fn rejection(error: &Error) -> Option<Rejection> {
    let is_of_key = matches!(
        error.condition(),
        Condition::SignatureMismatch
            | Condition::ClockSkew
            | Condition::TokenExpired
            | Condition::TokenRefused
            | Condition::AccessKeyNotFound
            | Condition::KeyInactive
    );
    (is_of_key || error.is_about_region()).then(|| Rejection {
        condition: error.condition(),
        error: error_chain(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;
    use crate::base::log_capture::LogCapture;

    async fn after(health: &ApiHealth, outcome: Result<(), Error>) {
        let outcome = health.track("h", async { outcome }).await;
        health.record_result(outcome.as_ref().err());
    }

    async fn cancel_after(health: &ApiHealth, seconds: u64) {
        let never = health.track("h", std::future::pending::<Result<(), Error>>());
        let _ = tokio::time::timeout(Duration::from_secs(seconds), never).await;
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    fn lost() -> Error {
        Error::new(Kind::Unreachable, "DescribeDisks").with_message("no response from http://h")
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_lasts_from_its_first_failure_to_the_next_response() {
        let health = ApiHealth::default();
        after(&health, Ok(())).await;
        for _ in 0..3 {
            pass(40).await;
            after(&health, Err(lost())).await;
        }
        pass(1).await;
        let report = health.report();
        let outage = report.outage.as_ref().unwrap();
        let ages = [outage.since, outage.last_failure].map(|at| at.elapsed().as_secs());
        assert_eq!(ages, [81, 1]);
        assert_eq!(report.outage_duration().as_secs(), 80);
        assert!(outage.error.contains("http://h"), "{}", outage.error);
        assert_eq!(report.last_response.unwrap().elapsed().as_secs(), 121);
        // A server error is also a response.
        let failure = Error::from_response("X", 503, "ServiceUnavailable");
        after(&health, Err(failure)).await;
        let report = health.report();
        assert!(report.outage.is_none());
        assert_eq!(report.last_response, Some(Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_long_after_the_last_one_starts_a_new_outage() {
        let health = ApiHealth::default();
        for _ in 0..2 {
            after(&health, Err(lost())).await;
            pass(3 * 60 * 60).await;
        }
        after(&health, Err(lost())).await;
        assert_eq!(health.report().outage.unwrap().since, Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn one_dead_connection_is_not_logged_while_others_work() {
        let (log, _guard) = LogCapture::start();
        let health = ApiHealth::default();
        let others = async {
            pass(14).await;
            after(&health, Ok(())).await;
        };
        tokio::join!(cancel_after(&health, 15), others);
        let outage = health.report().outage.unwrap();
        assert_eq!(outage.since.elapsed().as_secs(), 1);
        assert_eq!(log.lines(), [""; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejected_key_stays_rejected_until_a_key_is_accepted() {
        for (status, code) in [
            (404, "InvalidAccessKeyId.NotFound"),
            (403, "InvalidAccessKeyId.Inactive"),
            (400, "SignatureDoesNotMatch"),
            (400, "InvalidTimeStamp.Expired"),
            (400, "InvalidSecurityToken.Expired"),
            (400, "InvalidRegionId.NotFound"),
        ] {
            let health = ApiHealth::default();
            after(&health, Err(Error::from_response("X", status, code))).await;
            pass(5).await;
            after(&health, Err(lost())).await;
            // Missing credentials do not replace the rejection by the cloud.
            health.record_result(Some(&Error::new(Kind::Credentials, "X")));
            let report = health.report();
            let (at, rejection) = report.rejected.unwrap();
            assert_eq!(at.elapsed().as_secs(), 5);
            assert!(rejection.error.contains(code), "{}", rejection.error);
            after(&health, Err(Error::from_response("X", 403, "Forbidden.RAM"))).await;
            assert!(health.report().rejected.is_none(), "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_canceled_request_counts_only_after_five_seconds() {
        for (waited, counts) in [(1, false), (9, true)] {
            let health = ApiHealth::default();
            cancel_after(&health, waited).await;
            assert_eq!(health.report().outage.is_some(), counts, "{waited}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_and_its_end_are_logged_once() {
        let (log, _guard) = LogCapture::start();
        let health = ApiHealth::default();
        for is_logged in [false, false, true, false, false, false] {
            after(&health, Err(lost())).await;
            let lines = log.lines();
            let good = |line: &String| line.contains("WARN") && line.contains("http://h") && line.contains("DNS");
            assert_eq!(lines.len(), usize::from(is_logged), "{lines:?}");
            assert!(lines.iter().all(good), "{lines:?}");
            pass(3).await;
        }
        after(&health, Ok(())).await;
        let end = log.lines();
        assert!(
            matches!(&end[..], [line] if line.contains("responds again after 18 s")),
            "{end:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_outage_is_not_logged_and_a_long_wait_is() {
        let (log, _guard) = LogCapture::start();
        let health = ApiHealth::default();
        after(&health, Err(lost())).await;
        after(&health, Ok(())).await;
        assert_eq!(log.lines(), [""; 0]);
        cancel_after(&health, 9).await;
        let lines = log.lines();
        assert!(
            matches!(&lines[..], [line] if line.contains("no response from h within 9 s")),
            "{lines:?}"
        );
    }
}
