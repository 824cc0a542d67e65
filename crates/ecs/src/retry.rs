//! Retries failed attempts of a call with exponential backoff. Every attempt is signed separately.

use std::future::Future;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;

use super::error::{Condition, Error, Kind};
use crate::base::{Deadline, Elapsed};

/// Runs attempts until one succeeds, one fails permanently, or the deadline leaves no time for another.
///
/// # Errors
/// That of the last attempt, with the number of attempts and their duration.
pub async fn run<T, F>(action: &'static str, deadline: Deadline, mut attempt: impl FnMut() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let start = Instant::now();
    // Reads, deletions, and writes with a client token can be repeated after a lost response. For the others the caller
    // describes the disk instead.
    let is_repeatable = !matches!(action, "AttachDisk" | "DetachDisk");
    // After a lost response or an internal error of the cloud: most of them are isolated.
    let mut fast = pauses(50, 3.0, Duration::from_secs(5));
    // While an earlier call is still being processed.
    let mut pending = pauses(200, 1.1, Duration::from_secs(1));
    let mut attempts = 0;
    let (mut renewed, mut ambiguous) = (false, false);
    loop {
        // `Deadline::bound` polls a future once even after the deadline: that could send the request.
        let outcome = if deadline.has_passed() {
            Err(Elapsed)
        } else {
            attempts += 1;
            deadline.bound(attempt()).await
        };
        let error = match outcome {
            Ok(Ok(response)) => return Ok(response),
            Ok(Err(error)) => error.with_ambiguous_attempt(ambiguous),
            Err(Elapsed) => Error::new(Kind::Deadline, action).with_ambiguous_attempt(ambiguous),
        };
        ambiguous = error.may_have_taken_effect();
        let pause = match error.kind() {
            // A rejected nonce is replaced without a pause, once.
            Kind::NonceUsed if attempts == 1 => Some(Duration::ZERO),
            // Nothing happened, and the transport has other credentials now. A second rejection is final.
            Kind::Expired if !renewed => {
                renewed = true;
                Some(Duration::ZERO)
            }
            Kind::NonceUsed | Kind::Unreachable => fast.next(),
            Kind::Ambiguous if is_repeatable => fast.next(),
            Kind::OperationPending => pending.next(),
            Kind::Throttled if error.condition() == Condition::TooManyOperations => pending.next(),
            // The rate limiter determines when the next attempt may be sent.
            Kind::Throttled => Some(Duration::ZERO),
            _ => None,
        };
        let earliest = pause.map(|pause| pause.max(error.retry_after().unwrap_or_default()));
        let has_time = earliest.is_some_and(|earliest| earliest < deadline.remaining());
        let Some(pause) = pause.filter(|_| has_time) else {
            return Err(error.with_attempts(attempts, start.elapsed()));
        };
        tracing::debug!(
            cloud.action = action,
            cloud.code = error.code(),
            cloud.request_id = error.request_id(),
            attempt = attempts,
            pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
            "cloud call failed and will be retried"
        );
        tokio::time::sleep(pause).await;
    }
}

/// Growing pauses without a maximum number.
fn pauses(first_ms: u64, factor: f32, longest: Duration) -> ExponentialBackoff {
    ExponentialBuilder::new()
        .with_jitter()
        .without_max_times()
        .with_min_delay(Duration::from_millis(first_ms))
        .with_factor(factor)
        .with_max_delay(longest)
        .build()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    async fn fail_until(
        succeeds_at: u32,
        action: &'static str,
        error: impl Fn() -> Error + Send + Sync,
    ) -> (Result<(), Error>, u32) {
        let count = AtomicU32::new(0);
        let result = run(action, Deadline::after(Duration::from_secs(60)), || async {
            match count.fetch_add(1, Ordering::SeqCst) + 1 {
                n if n >= succeeds_at => Ok(()),
                _ => Err(error()),
            }
        })
        .await;
        (result, count.into_inner())
    }

    #[tokio::test(start_paused = true)]
    async fn an_unreachable_cloud_is_always_retried() {
        let unreached = || Error::new(Kind::Unreachable, "AttachDisk");
        assert_eq!(fail_until(3, "AttachDisk", unreached).await.1, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_response_is_retried_only_if_the_action_is_repeatable() {
        let lost = || Error::new(Kind::Ambiguous, "AttachDisk");
        let (result, attempts) = fail_until(3, "AttachDisk", lost).await;
        assert_eq!((result.unwrap_err().kind(), attempts), (Kind::Ambiguous, 1));
        assert!(fail_until(3, "DeleteDisk", lost).await.0.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn rejected_credentials_are_retried_once_for_every_action() {
        let rejected = || Error::from_response("AttachDisk", 400, "InvalidSecurityToken.Expired");
        assert!(fail_until(2, "AttachDisk", rejected).await.0.is_ok());
        let (result, attempts) = fail_until(u32::MAX, "AttachDisk", rejected).await;
        assert_eq!((result.unwrap_err().kind(), attempts), (Kind::Expired, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejection_is_final() {
        let rejected = || Error::from_response("AttachDisk", 403, "InstanceDiskLimitExceeded");
        assert_eq!(fail_until(3, "DeleteDisk", rejected).await.1, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rejection_after_a_lost_response_may_have_taken_effect() {
        for (first, open) in [("InternalError", true), ("Throttling", false)] {
            let count = AtomicU32::new(0);
            let deadline = Deadline::after(Duration::from_secs(60));
            let attempt = || async {
                let codes = [first, "Throttling", "Forbidden.RAM"];
                let nth = usize::try_from(count.fetch_add(1, Ordering::SeqCst)).unwrap();
                Err::<(), _>(Error::from_response("CreateDisk", 403, codes[nth]))
            };
            let outcome = run("CreateDisk", deadline, attempt).await;
            let error = outcome.unwrap_err();
            assert_eq!(error.code(), Some("Forbidden.RAM"), "{error}");
            assert_eq!(error.may_have_taken_effect(), open, "{first}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_used_nonce_is_replaced_without_a_pause() {
        let start = Instant::now();
        let used = || Error::from_response("AttachDisk", 400, "SignatureNonceUsed");
        assert!(fail_until(2, "AttachDisk", used).await.0.is_ok());
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_throttled_call_returns_to_the_rate_limiter_without_a_pause() {
        let start = Instant::now();
        let wait = Some(Duration::from_secs(20));
        let throttled = || Error::from_response("AttachDisk", 400, "Throttling").with_retry_after(wait);
        assert!(fail_until(2, "AttachDisk", throttled).await.0.is_ok());
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_closed_beyond_the_deadline_ends_the_call() {
        let start = Instant::now();
        let wait = Some(Duration::from_secs(61));
        let throttled = || Error::from_response("AttachDisk", 400, "Throttling").with_retry_after(wait);
        let (result, attempts) = fail_until(2, "DeleteDisk", throttled).await;
        assert_eq!((result.unwrap_err().kind(), attempts), (Kind::Throttled, 1));
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_retry_is_fast_and_later_ones_are_not() {
        let busy = || Error::from_response("CreateDisk", 503, "ServiceUnavailable");
        for (succeeds_at, least, most) in [(2, 50, 100), (3, 200, 400), (8, 10_000, 30_000)] {
            let start = Instant::now();
            let (result, _) = fail_until(succeeds_at, "DeleteDisk", busy).await;
            assert!(result.is_ok());
            let range = Duration::from_millis(least)..=Duration::from_millis(most + 10);
            assert!(range.contains(&start.elapsed()), "{:?}", start.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pending_call_is_retried_several_times_a_second_at_first() {
        let start = Instant::now();
        let pending = || Error::from_response("CreateDisk", 403, "IdempotentProcessing");
        assert!(fail_until(4, "AttachDisk", pending).await.0.is_ok());
        let range = Duration::from_millis(600)..=Duration::from_millis(1500);
        assert!(range.contains(&start.elapsed()), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_end_at_the_deadline_and_the_error_has_their_number() {
        let start = Instant::now();
        let lost = || Error::from_response("AttachDisk", 503, "ServiceUnavailable");
        let (result, attempts) = fail_until(u32::MAX, "DeleteDisk", lost).await;
        assert!(start.elapsed() <= Duration::from_secs(60));
        let text = result.unwrap_err().to_string();
        assert!(text.contains(&format!("{attempts} attempts")), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_attempt_is_made_after_the_deadline() {
        let attempt = || async { panic!("attempted") };
        let over = Deadline::after(Duration::ZERO);
        let outcome: Result<(), Error> = run("AttachDisk", over, attempt).await;
        assert_eq!(outcome.unwrap_err().kind(), Kind::Deadline);
    }

    #[tokio::test(start_paused = true)]
    async fn a_hung_attempt_ends_at_the_deadline() {
        let hang = || std::future::pending::<Result<(), Error>>();
        let deadline = Deadline::after(Duration::from_secs(3));
        let error = run("AttachDisk", deadline, hang).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Deadline);
    }
}
