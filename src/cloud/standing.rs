//! How the cloud has answered lately, for whoever asks whether this driver can work. Nothing is called for it: it is
//! learned from the calls that are made anyway.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use scopeguard::ScopeGuard;
use tokio::time::Instant;

use super::error::{Condition, Error};
use crate::base::chain::chain;
use crate::model::Failure;

/// What to do about a cloud that does not answer.
pub const UNREACHED: &str = "check the way from here to the cloud's API: DNS, proxy, NetworkPolicy, --network, --ecs-endpoint";

/// An exchange that is given up after so long was not answered; who gives up sooner has his own reasons. A silence of so
/// long is logged: the calls that wait for its end would tell only when they end.
const UNANSWERED: Duration = Duration::from_secs(5);
/// After so long without a call a new failure belongs to no silence before.
const FORGOTTEN: Duration = Duration::from_mins(10);

/// What was seen of the cloud. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Standing(Arc<Mutex<Report>>);

#[derive(Debug, Clone, Default)]
pub struct Report {
    /// When the cloud answered last, whatever it was; none when it never did.
    pub answered: Option<Instant>,
    /// When it refused credentials or region, and how; none when it took them since.
    pub refused: Option<(Instant, Refusal)>,
    /// That it has not answered since.
    pub silent: Option<Silence>,
}

/// A refusal that every call meets: of the credentials themselves, not of what they may do, or of the region.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub failure: Failure,
    /// The whole error, with its RequestId.
    pub error: String,
}

/// Requests without an answer, and no answer after them.
#[derive(Debug, Clone)]
pub struct Silence {
    /// When the first one was sent, or another one answered after that.
    pub since: Instant,
    /// When the last one failed.
    pub last: Instant,
    pub error: String,
    /// Whether the log has been told.
    pub is_logged: bool,
}

impl Standing {
    /// Sends a request to the host and gets its answer, and learns from what becomes of it. What comes before, such as
    /// getting credentials, says nothing of the cloud.
    pub(super) async fn wait<T>(
        &self,
        host: &str,
        exchange: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let begun = Instant::now();
        let given_up = scopeguard::guard((), |()| self.given_up(host, begun));
        let outcome = exchange.await;
        ScopeGuard::into_inner(given_up);
        match &outcome {
            Err(error) if error.status().is_none() => self.unanswered(begun, &chain(error)),
            _ => self.answered(),
        }
        outcome
    }

    /// Learns from what an answer was found to say: whether it refused credentials or region.
    pub(super) fn judge(&self, failure: Option<&Error>) {
        // That there are no other credentials is nothing that the cloud says.
        if failure.is_none_or(|error| error.status().is_some()) {
            let refusal = failure.and_then(refusal);
            self.seen().refused = refusal.map(|refusal| (Instant::now(), refusal));
        }
    }

    pub fn report(&self) -> Report {
        self.seen().clone()
    }

    fn seen(&self) -> MutexGuard<'_, Report> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self) {
        let now = Instant::now();
        let mut seen = self.seen();
        seen.answered = Some(now);
        let silent = seen.silent.take();
        // A log that is not read would hold everybody up.
        drop(seen);
        if let Some(silent) = silent.filter(|silent| silent.is_logged) {
            let silence = now.duration_since(silent.since).as_secs_f64();
            tracing::info!("the cloud answers again, after {silence:.0} s");
        }
    }

    /// Whoever waited for an answer does not any longer.
    fn given_up(&self, host: &str, begun: Instant) {
        let waited = begun.elapsed();
        if waited >= UNANSWERED {
            let waited = waited.as_secs_f64();
            self.unanswered(
                begun,
                &format!("no answer from {host} within {waited:.0} s"),
            );
        }
    }

    fn unanswered(&self, begun: Instant, error: &str) {
        let now = Instant::now();
        let mut seen = self.seen();
        // A connection can be dead beside others that are not.
        let begun = seen.answered.map_or(begun, |at| at.max(begun));
        let before = seen.silent.as_ref();
        let before = before.filter(|silent| begun.duration_since(silent.last) < FORGOTTEN);
        let since = before.map_or(begun, |silent| silent.since);
        let was_logged = before.is_some_and(|silent| silent.is_logged);
        let silence = now.duration_since(since);
        let is_logged = was_logged || silence >= UNANSWERED;
        seen.silent = Some(Silence {
            since,
            last: now,
            error: error.to_owned(),
            is_logged,
        });
        drop(seen);
        if is_logged && !was_logged {
            let silence = silence.as_secs_f64();
            tracing::warn!(
                error,
                "the cloud has not answered for {silence:.0} s, and is called again and again; if that stays, {UNREACHED}"
            );
        }
    }
}

/// The refusal of credentials or region, if this is one.
fn refusal(error: &Error) -> Option<Refusal> {
    let is_of_key = matches!(
        error.condition(),
        Condition::SignatureMismatch
            | Condition::ClockSkew
            | Condition::TokenExpired
            | Condition::TokenRefused
            | Condition::AccessKeyNotFound
            | Condition::KeyInactive
    );
    (is_of_key || error.is_of_region()).then(|| Refusal {
        failure: error.failure(),
        error: chain(error),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::heard::Heard;
    use crate::cloud::Kind;

    async fn after(standing: &Standing, outcome: Result<(), Error>) {
        let outcome = standing.wait("h", async { outcome }).await;
        standing.judge(outcome.as_ref().err());
    }

    async fn give_up_after(standing: &Standing, seconds: u64) {
        let never = standing.wait("h", std::future::pending::<Result<(), Error>>());
        let _ = tokio::time::timeout(Duration::from_secs(seconds), never).await;
    }

    async fn pass(seconds: u64) {
        tokio::time::advance(Duration::from_secs(seconds)).await;
    }

    fn lost() -> Error {
        Error::new(Kind::Unreachable, "DescribeDisks").with_message("no answer from http://h")
    }

    #[tokio::test(start_paused = true)]
    async fn silence_lasts_from_its_first_failure_to_the_next_answer() {
        let standing = Standing::default();
        after(&standing, Ok(())).await;
        for _ in 0..3 {
            pass(40).await;
            after(&standing, Err(lost())).await;
        }
        pass(1).await;
        let report = standing.report();
        let silent = report.silent.unwrap();
        let ages = [silent.since, silent.last].map(|at| at.elapsed().as_secs());
        assert_eq!(ages, [81, 1]);
        assert!(silent.error.contains("http://h"), "{}", silent.error);
        assert_eq!(report.answered.unwrap().elapsed().as_secs(), 121);
        // A server error is an answer too.
        let failure = Error::answered("X", 503, "ServiceUnavailable");
        after(&standing, Err(failure)).await;
        let report = standing.report();
        assert!(report.silent.is_none());
        assert_eq!(report.answered, Some(Instant::now()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_long_after_the_last_one_begins_a_silence_of_its_own() {
        let standing = Standing::default();
        for _ in 0..2 {
            after(&standing, Err(lost())).await;
            pass(3 * 60 * 60).await;
        }
        after(&standing, Err(lost())).await;
        assert_eq!(standing.report().silent.unwrap().since, Instant::now());
    }

    #[tokio::test(start_paused = true)]
    async fn one_dead_connection_is_no_silence_while_others_are_answered() {
        let (log, _guard) = Heard::listen();
        let standing = Standing::default();
        let others = async {
            pass(14).await;
            after(&standing, Ok(())).await;
        };
        tokio::join!(give_up_after(&standing, 15), others);
        let silent = standing.report().silent.unwrap();
        assert_eq!(silent.since.elapsed().as_secs(), 1);
        assert_eq!(log.lines(), [""; 0]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_key_stays_refused_until_the_cloud_takes_one() {
        for (status, code) in [
            (404, "InvalidAccessKeyId.NotFound"),
            (403, "InvalidAccessKeyId.Inactive"),
            (400, "SignatureDoesNotMatch"),
            (400, "InvalidTimeStamp.Expired"),
            (400, "InvalidSecurityToken.Expired"),
            (400, "InvalidRegionId.NotFound"),
        ] {
            let standing = Standing::default();
            after(&standing, Err(Error::answered("X", status, code))).await;
            pass(5).await;
            after(&standing, Err(lost())).await;
            // The cloud has refused these, and where others are from is not known.
            standing.judge(Some(&Error::new(Kind::Credentials, "X")));
            let report = standing.report();
            let (at, refusal) = report.refused.unwrap();
            assert_eq!(at.elapsed().as_secs(), 5);
            assert!(refusal.error.contains(code), "{}", refusal.error);
            after(&standing, Err(Error::answered("X", 403, "Forbidden.RAM"))).await;
            assert!(standing.report().refused.is_none(), "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_is_given_up_counts_only_when_it_has_waited() {
        for (waited, counts) in [(1, false), (9, true)] {
            let standing = Standing::default();
            give_up_after(&standing, waited).await;
            assert_eq!(standing.report().silent.is_some(), counts, "{waited}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silence_is_logged_once_and_so_is_its_end() {
        let (log, _guard) = Heard::listen();
        let standing = Standing::default();
        for is_said in [false, false, true, false, false, false] {
            after(&standing, Err(lost())).await;
            let lines = log.lines();
            let good = |line: &String| {
                line.contains("WARN") && line.contains("http://h") && line.contains("DNS")
            };
            assert_eq!(lines.len(), usize::from(is_said), "{lines:?}");
            assert!(lines.iter().all(good), "{lines:?}");
            pass(3).await;
        }
        after(&standing, Ok(())).await;
        let end = log.lines();
        assert!(
            matches!(&end[..], [line] if line.contains("answers again, after 18 s")),
            "{end:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_silence_is_not_worth_a_word_and_one_long_wait_is() {
        let (log, _guard) = Heard::listen();
        let standing = Standing::default();
        after(&standing, Err(lost())).await;
        after(&standing, Ok(())).await;
        assert_eq!(log.lines(), [""; 0]);
        give_up_after(&standing, 9).await;
        let lines = log.lines();
        assert!(
            matches!(&lines[..], [line] if line.contains("no answer from h within 9 s")),
            "{lines:?}"
        );
    }
}
