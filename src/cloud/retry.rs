//! When a failed attempt is worth another, and after how long. Every attempt signs anew, so the loop
//! is ours; the schedule is not.

use std::future::Future;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;

use super::error::{Condition, Error, Kind};
use crate::base::{Deadline, Elapsed};

/// Runs attempts until one succeeds, one fails for good, or the deadline leaves no room for another.
///
/// # Errors
/// The last attempt's, with how many there were and how long they took.
pub async fn run<T, F>(
    action: &'static str,
    deadline: Deadline,
    mut attempt: impl FnMut() -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let start = Instant::now();
    // Reads, deletions, and writes that carry a token, whatever became of the attempt before. After a lost answer to the
    // others the caller looks at the disk instead.
    let is_repeatable = !matches!(action, "AttachDisk" | "DetachDisk");
    // After a lost response or a failure of the cloud: most of them are single.
    let mut short = pauses(50, 3.0, Duration::from_secs(5));
    // While an earlier call is still being processed.
    let mut pending = pauses(200, 1.1, Duration::from_secs(1));
    let mut attempts = 0;
    let (mut renewed, mut ambiguous) = (false, false);
    loop {
        // A future that is due already is still polled once: that could send the request.
        let outcome = if deadline.is_over() {
            Err(Elapsed)
        } else {
            attempts += 1;
            deadline.bound(attempt()).await
        };
        let error = match outcome {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error.after_ambiguous(ambiguous),
            Err(Elapsed) => Error::new(Kind::Deadline, action).after_ambiguous(ambiguous),
        };
        ambiguous = error.may_have_taken_effect();
        let pause = match error.kind() {
            // A nonce that was seen before costs nothing but another one, once.
            Kind::Resign if attempts == 1 => Some(Duration::ZERO),
            // Nothing happened, and the transport has other credentials now. A second refusal is final.
            Kind::Expired if !renewed => {
                renewed = true;
                Some(Duration::ZERO)
            }
            Kind::Resign | Kind::Unreachable => short.next(),
            Kind::Ambiguous if is_repeatable => short.next(),
            Kind::InFlight => pending.next(),
            Kind::Throttled if error.condition() == Condition::TooManyOperations => pending.next(),
            // The rate limiter knows when the next attempt may be sent.
            Kind::Throttled => Some(Duration::ZERO),
            _ => None,
        };
        let earliest = pause.map(|pause| pause.max(error.wait().unwrap_or_default()));
        let has_time = earliest.is_some_and(|earliest| earliest < deadline.remaining());
        let Some(pause) = pause.filter(|_| has_time) else {
            return Err(error.with_effort(attempts, start.elapsed()));
        };
        tracing::debug!(
            cloud.action = action,
            cloud.code = error.code(),
            cloud.request_id = error.request_id(),
            attempt = attempts,
            pause_ms = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
            "cloud call failed and will be repeated"
        );
        tokio::time::sleep(pause).await;
    }
}

/// Growing pauses without end.
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
    async fn what_never_reached_the_cloud_is_always_repeated() {
        let unreached = || Error::new(Kind::Unreachable, "AttachDisk");
        assert_eq!(fail_until(3, "AttachDisk", unreached).await.1, 3);
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_answer_is_repeated_only_where_that_is_harmless() {
        let lost = || Error::new(Kind::Ambiguous, "AttachDisk");
        let (result, attempts) = fail_until(3, "AttachDisk", lost).await;
        assert_eq!((result.unwrap_err().kind(), attempts), (Kind::Ambiguous, 1));
        assert!(fail_until(3, "DeleteDisk", lost).await.0.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn refused_credentials_cost_one_more_attempt_whatever_the_call() {
        let refused = || Error::answered("AttachDisk", 400, "InvalidSecurityToken.Expired");
        assert!(fail_until(2, "AttachDisk", refused).await.0.is_ok());
        let (result, attempts) = fail_until(u32::MAX, "AttachDisk", refused).await;
        assert_eq!((result.unwrap_err().kind(), attempts), (Kind::Expired, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_is_final() {
        let refused = || Error::answered("AttachDisk", 403, "InstanceDiskLimitExceeded");
        assert_eq!(fail_until(3, "DeleteDisk", refused).await.1, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_after_a_lost_answer_leaves_open_whether_the_call_took_effect() {
        for (first, open) in [("InternalError", true), ("Throttling", false)] {
            let count = AtomicU32::new(0);
            let deadline = Deadline::after(Duration::from_secs(60));
            let attempt = || async {
                let codes = [first, "Throttling", "Forbidden.RAM"];
                let nth = usize::try_from(count.fetch_add(1, Ordering::SeqCst)).unwrap();
                Err::<(), _>(Error::answered("CreateDisk", 403, codes[nth]))
            };
            let outcome = run("CreateDisk", deadline, attempt).await;
            let error = outcome.unwrap_err();
            assert_eq!(error.code(), Some("Forbidden.RAM"), "{error}");
            assert_eq!(error.may_have_taken_effect(), open, "{first}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_nonce_that_was_used_is_replaced_at_once() {
        let start = Instant::now();
        let used = || Error::answered("AttachDisk", 400, "SignatureNonceUsed");
        assert!(fail_until(2, "AttachDisk", used).await.0.is_ok());
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_throttled_call_returns_to_the_rate_limiter_without_a_pause() {
        let start = Instant::now();
        let wait = Some(Duration::from_secs(20));
        let throttled = || Error::answered("AttachDisk", 400, "Throttling").with_wait(wait);
        assert!(fail_until(2, "AttachDisk", throttled).await.0.is_ok());
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_that_stays_closed_beyond_the_deadline_ends_the_call() {
        let start = Instant::now();
        let wait = Some(Duration::from_secs(61));
        let throttled = || Error::answered("AttachDisk", 400, "Throttling").with_wait(wait);
        let (result, attempts) = fail_until(2, "DeleteDisk", throttled).await;
        assert_eq!((result.unwrap_err().kind(), attempts), (Kind::Throttled, 1));
        assert_eq!(start.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_retry_is_fast_and_later_ones_are_not() {
        let busy = || Error::answered("CreateDisk", 503, "ServiceUnavailable");
        for (succeeds_at, least, most) in [(2, 50, 100), (3, 200, 400), (8, 10_000, 30_000)] {
            let start = Instant::now();
            let (result, _) = fail_until(succeeds_at, "DeleteDisk", busy).await;
            assert!(result.is_ok());
            let range = Duration::from_millis(least)..=Duration::from_millis(most + 10);
            assert!(range.contains(&start.elapsed()), "{:?}", start.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_is_still_processed_is_polled_several_times_a_second_at_first() {
        let start = Instant::now();
        let pending = || Error::answered("CreateDisk", 403, "IdempotentProcessing");
        assert!(fail_until(4, "AttachDisk", pending).await.0.is_ok());
        let range = Duration::from_millis(600)..=Duration::from_millis(1500);
        assert!(range.contains(&start.elapsed()), "{:?}", start.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn no_attempt_is_made_beyond_the_deadline_and_the_error_tells_the_effort() {
        let start = Instant::now();
        let lost = || Error::answered("AttachDisk", 503, "ServiceUnavailable");
        let (result, attempts) = fail_until(u32::MAX, "DeleteDisk", lost).await;
        assert!(start.elapsed() <= Duration::from_secs(60));
        let text = result.unwrap_err().to_string();
        assert!(text.contains(&format!("{attempts} attempts")), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn after_the_deadline_nothing_is_tried() {
        let attempt = || async { panic!("tried") };
        let over = Deadline::after(Duration::ZERO);
        let outcome: Result<(), Error> = run("AttachDisk", over, attempt).await;
        assert_eq!(outcome.unwrap_err().kind(), Kind::Deadline);
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_that_hangs_ends_at_the_deadline() {
        let hang = || std::future::pending::<Result<(), Error>>();
        let deadline = Deadline::after(Duration::from_secs(3));
        let error = run("AttachDisk", deadline, hang).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Deadline);
    }
}
