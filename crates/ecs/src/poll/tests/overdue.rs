//! Operations that take longer than usual.

use tokio::time::sleep;

use super::*;

fn never(_: Observation<Row<usize>>) -> Option<()> {
    None
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_once_its_operation_is_overdue_and_later_ones_after_one_observation() {
    let (poller, calls) = counting();
    let begun = Instant::now();
    for expected in [25, 25, 35, 95] {
        let called = calls.lock().unwrap().len();
        if called > 0 {
            sleep(Duration::from_secs(expected).saturating_sub(begun.elapsed())).await;
        }
        let begun_call = Instant::now();
        let outcome = poller.wait_until_done(&1, deadline(), Operation::Detach, never).await;
        assert!(
            matches!(&outcome, Err(WaitError::Overdue { running, .. }) if running.as_secs() == expected),
            "{outcome:?}"
        );
        if called > 0 {
            assert_eq!(calls.lock().unwrap().len(), called + 1);
            assert!(begun_call.elapsed() < seconds(0.5));
        }
    }
    // Another operation on the resource, and the next one of this kind.
    let attach = poller.wait_until_done(&1, deadline(), Operation::Attach, at_least(2));
    attach.await.unwrap();
    let done = poller.wait_until_done(&1, deadline(), Operation::Detach, at_least(2));
    done.await.unwrap();
    let begun = Instant::now();
    let next = poller.wait_until_done(&1, deadline(), Operation::Detach, never);
    next.await.unwrap_err();
    assert_eq!(begun.elapsed().as_secs(), 25);
}

#[tokio::test(start_paused = true)]
async fn a_wait_for_the_rate_limit_is_not_an_overdue_operation() {
    let start = Instant::now();
    let source = Source {
        ready: Box::new(move |deadline: Deadline| {
            let open = Duration::from_secs(50).saturating_sub(start.elapsed());
            Box::pin(async move {
                deadline.bound(sleep(open)).await.ok()?;
                Some(Duration::ZERO)
            })
        }),
        ..source(|keys: Vec<u32>| async move { Ok(rows(keys, 1)) })
    };
    let poller = Poller::new(Tasks::default(), source);
    let outcome = poller
        .wait_until_done(&1, deadline(), Operation::Create, at_least(1))
        .await;
    assert_eq!((outcome.unwrap(), start.elapsed().as_secs()), (1, 50));
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_is_missing_is_not_known_to_be_in_progress() {
    let (poller, _) = responding(|_, _| async { Ok(rows([], 0)) });
    for _ in 0..2 {
        let begun = Instant::now();
        let outcome = poller.wait_until_done(&1, deadline(), Operation::Create, never).await;
        assert!(matches!(outcome, Err(WaitError::Overdue { .. })));
        assert_eq!(begun.elapsed().as_secs(), 25);
    }
}
