//! How the cloud has answered lately, for whoever asks whether this driver can work. Nothing is called for it: it is
//! learned from the calls that are made anyway.

use std::error::Error as StdError;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::credential::CredentialError;
use super::error::Error;
use crate::base::chain::chain;

/// An attempt that is given up after so long was not answered; who gives up sooner has his own reasons. A silence of so
/// long is logged: the calls that wait for its end would tell only when they end.
const UNANSWERED: Duration = Duration::from_secs(5);

/// What was seen of the cloud. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Standing(Arc<Mutex<Seen>>);

#[derive(Debug, Default)]
struct Seen {
    answered: Option<Instant>,
    refused: Option<(Instant, Refusal)>,
    silent: Option<Unanswered>,
}

#[derive(Debug)]
struct Unanswered {
    /// When the first attempt was begun.
    begun: Instant,
    /// When it failed.
    first: Instant,
    last: Instant,
    error: String,
    is_logged: bool,
}

/// What is known now.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// How long ago the cloud answered last, whatever it was; none when it never did.
    pub answered: Option<Duration>,
    /// How long ago it refused credentials or region, and how; none when it took them since.
    pub refused: Option<(Duration, Refusal)>,
    /// That it has not answered since.
    pub silent: Option<Silence>,
}

/// A refusal that every call meets: of the credentials themselves, not of what they may do, or of the region.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// The cloud's code.
    pub code: String,
    /// The whole error, with its RequestId.
    pub error: String,
}

/// Attempts without an answer, and no answer after them.
#[derive(Debug, Clone)]
pub struct Silence {
    /// How long ago the first one failed.
    pub first: Duration,
    /// How long ago the last one did.
    pub last: Duration,
    /// How the last one failed.
    pub error: String,
}

/// An attempt under way.
#[derive(Debug)]
struct Waiting<'a> {
    standing: &'a Standing,
    begun: Instant,
    is_over: bool,
}

impl Standing {
    /// Makes the attempt, and learns from what becomes of it.
    pub(super) async fn watch<T>(
        &self,
        attempt: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut waiting = Waiting {
            standing: self,
            begun: Instant::now(),
            is_over: false,
        };
        let outcome = attempt.await;
        waiting.is_over = true;
        self.note(waiting.begun, outcome.as_ref().err());
        outcome
    }

    /// What is known now.
    #[must_use]
    pub fn report(&self) -> Report {
        let seen = self.seen();
        let refused = seen.refused.as_ref();
        Report {
            answered: seen.answered.map(|at| at.elapsed()),
            refused: refused.map(|(at, refusal)| (at.elapsed(), refusal.clone())),
            silent: seen.silent.as_ref().map(|silent| Silence {
                first: silent.first.elapsed(),
                last: silent.last.elapsed(),
                error: silent.error.clone(),
            }),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, begun: Instant, failure: Option<&Error>) {
        let now = Instant::now();
        let Some(error) = failure.filter(|error| error.status().is_none()) else {
            let refusal = failure.and_then(refusal);
            let mut seen = self.seen();
            seen.answered = Some(now);
            seen.refused = refusal.map(|refusal| (now, refusal));
            let silent = seen.silent.take();
            drop(seen);
            if let Some(silent) = silent.filter(|silent| silent.is_logged) {
                let silence = now.duration_since(silent.begun);
                tracing::info!(
                    "the cloud answers again, after {:.0} s",
                    silence.as_secs_f64()
                );
            }
            return;
        };
        // Nothing was sent: that says nothing of the cloud.
        if !is_of_credentials(error) {
            self.unanswered(begun, chain(error));
        }
    }

    fn unanswered(&self, begun: Instant, error: String) {
        let now = Instant::now();
        let mut seen = self.seen();
        let before = seen.silent.as_ref();
        let begun = before.map_or(begun, |silent| silent.begun);
        let was_logged = before.is_some_and(|silent| silent.is_logged);
        let is_long = now.duration_since(begun) >= UNANSWERED;
        if is_long && !was_logged {
            tracing::warn!(
                error,
                "the cloud does not answer; calls are repeated until it does or their time is over"
            );
        }
        seen.silent = Some(Unanswered {
            begun,
            first: before.map_or(now, |silent| silent.first),
            last: now,
            error,
            is_logged: is_long,
        });
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let waited = self.begun.elapsed();
        if !self.is_over && waited >= UNANSWERED {
            let error = format!("no answer within {:.0} s", waited.as_secs_f64());
            self.standing.unanswered(self.begun, error);
        }
    }
}

/// The refusal of credentials or region, if this is one.
fn refusal(error: &Error) -> Option<Refusal> {
    const CODES: [&str; 3] = [
        "SignatureDoesNotMatch",
        "InvalidTimeStamp.Expired",
        "MissingSecurityToken",
    ];
    const FAMILIES: [&str; 2] = ["InvalidAccessKeyId", "InvalidSecurityToken"];
    let code = error.code()?;
    let is_one = CODES.contains(&code) || FAMILIES.iter().any(|family| code.starts_with(family));
    (is_one || error.is_of_region()).then(|| Refusal {
        code: code.to_owned(),
        error: chain(error),
    })
}

/// Whether there were no credentials to sign with.
fn is_of_credentials(error: &Error) -> bool {
    let source = error.source();
    error.kind() == super::Kind::Credentials
        || source.is_some_and(|source| source.is::<CredentialError>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::heard::Heard;
    use crate::cloud::Kind;

    async fn after(standing: &Standing, outcome: Result<(), Error>) {
        let _ = standing.watch(async { outcome }).await;
    }

    fn lost() -> Error {
        Error::new(Kind::Unreachable, "DescribeDisks").with_message("no answer from http://h")
    }

    #[tokio::test(start_paused = true)]
    async fn silence_lasts_from_its_first_failure_to_the_next_answer() {
        let standing = Standing::default();
        after(&standing, Ok(())).await;
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(40)).await;
            after(&standing, Err(lost())).await;
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        let report = standing.report();
        let silent = report.silent.unwrap();
        assert_eq!((silent.first.as_secs(), silent.last.as_secs()), (81, 1));
        assert!(silent.error.contains("http://h"), "{}", silent.error);
        assert_eq!(report.answered, Some(Duration::from_secs(121)));
        // A server error is an answer too.
        after(
            &standing,
            Err(Error::answered("X", 503, "ServiceUnavailable")),
        )
        .await;
        let report = standing.report();
        assert!(report.silent.is_none());
        assert_eq!(report.answered, Some(Duration::ZERO));
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
            tokio::time::advance(Duration::from_secs(5)).await;
            after(&standing, Err(lost())).await;
            let report = standing.report();
            let (ago, refusal) = report.refused.unwrap();
            assert_eq!((ago.as_secs(), refusal.code.as_str()), (5, code));
            after(&standing, Err(Error::answered("X", 403, "Forbidden.RAM"))).await;
            assert!(standing.report().refused.is_none(), "{code}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_reached_the_wire_says_nothing_of_the_cloud() {
        let standing = Standing::default();
        after(&standing, Err(Error::new(Kind::Credentials, "X"))).await;
        let missing = CredentialError::Missing("nowhere".to_owned());
        after(
            &standing,
            Err(Error::new(Kind::Unreachable, "X").with_source(missing)),
        )
        .await;
        let report = standing.report();
        assert!(report.silent.is_none() && report.answered.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_is_given_up_counts_only_when_it_has_waited() {
        for (waited, counts) in [(1, false), (9, true)] {
            let standing = Standing::default();
            let never = standing.watch(std::future::pending::<Result<(), Error>>());
            let _ = tokio::time::timeout(Duration::from_secs(waited), never).await;
            assert_eq!(standing.report().silent.is_some(), counts, "{waited}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silence_is_logged_once_and_so_is_its_end() {
        let (log, _guard) = Heard::listen();
        let standing = Standing::default();
        for said in ["", "", "WARN", "", "", ""] {
            after(&standing, Err(lost())).await;
            let lines = log.lines();
            assert_eq!(lines.is_empty(), said.is_empty(), "{lines:?}");
            assert!(
                lines
                    .iter()
                    .all(|line| line.contains(said) && line.contains("http://h")),
                "{lines:?}"
            );
            tokio::time::advance(Duration::from_secs(3)).await;
        }
        after(&standing, Ok(())).await;
        let end = log.lines();
        assert!(
            matches!(&end[..], [line] if line.contains("answers again, after 18 s")),
            "{end:?}"
        );
        // A short one is not worth a word, and neither is its end.
        after(&standing, Err(lost())).await;
        after(&standing, Ok(())).await;
        assert!(log.lines().is_empty());
        // One attempt that was long enough without an answer is.
        let never = standing.watch(std::future::pending::<Result<(), Error>>());
        let _ = tokio::time::timeout(Duration::from_secs(9), never).await;
        assert_eq!(log.lines().len(), 1);
    }
}
