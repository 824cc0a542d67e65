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

/// An attempt that is given up after so long was not answered; who gives up sooner has his own reasons.
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
    first: Instant,
    last: Instant,
    error: String,
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
        self.note(outcome.as_ref().err());
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

    fn note(&self, failure: Option<&Error>) {
        let now = Instant::now();
        let Some(error) = failure.filter(|error| error.status().is_none()) else {
            let refusal = failure.and_then(refusal);
            let mut seen = self.seen();
            seen.answered = Some(now);
            seen.refused = refusal.map(|refusal| (now, refusal));
            seen.silent = None;
            return;
        };
        // Nothing was sent: that says nothing of the cloud.
        if !is_of_credentials(error) {
            self.unanswered(chain(error));
        }
    }

    fn unanswered(&self, error: String) {
        let now = Instant::now();
        let mut seen = self.seen();
        let first = seen.silent.as_ref().map_or(now, |silent| silent.first);
        let last = now;
        seen.silent = Some(Unanswered { first, last, error });
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let waited = self.begun.elapsed();
        if !self.is_over && waited >= UNANSWERED {
            let error = format!("no answer within {:.0} s", waited.as_secs_f64());
            self.standing.unanswered(error);
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
}
