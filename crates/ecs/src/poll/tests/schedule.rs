//! When polls are sent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::{Calls, at_least, counting, deadline, rows, seconds, source, times};
use crate::base::{Deadline, Tasks, lock};
use crate::poll::source::Source;
use crate::poll::{Operation, PollMode, Poller, WaitError};

#[tokio::test(start_paused = true)]
async fn no_call_is_made_without_waiters() {
    let (poller, calls) = counting();
    poller
        .wait_until(&1, deadline(), PollMode::Change, at_least(2))
        .await
        .unwrap();
    let waited = poller.wait_until_done(&1, deadline(), Operation::Attach, at_least(5));
    waited.await.unwrap();
    sleep(Duration::from_secs(600)).await;
    assert_eq!(calls.lock().unwrap().len(), 5);
    assert!(!lock(&poller.shared.state).polling);
}

#[tokio::test(start_paused = true)]
async fn polls_for_a_change_of_unknown_duration_become_rarer_up_to_two_seconds() {
    let (poller, calls) = counting();
    poller
        .wait_until(&1, deadline(), PollMode::Change, at_least(30))
        .await
        .unwrap();
    let times = times(&calls);
    let gaps: Vec<u128> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!((times[0], gaps[0], gaps[28]), (400, 400, 2000));
    assert!(gaps.is_sorted(), "{gaps:?}");
}

#[tokio::test(start_paused = true)]
async fn polls_for_an_operation_that_takes_longer_than_any_before_become_rarer() {
    let (poller, calls) = counting();
    for _ in 0..30 {
        let already = calls.lock().unwrap().len();
        let fast = at_least(already + 1);
        poller
            .wait_until_done(&1, deadline(), Operation::Attach, fast)
            .await
            .unwrap();
    }
    let (begun, already) = (Instant::now(), calls.lock().unwrap().len());
    let mode = PollMode::Operation(Operation::Attach.into());
    let slow = poller.wait_until(&1, deadline(), mode, |_| None::<()>);
    slow.await.unwrap_err();
    let ages = times(&calls).split_off(already);
    let offset = (Instant::now() - begun).as_millis();
    assert!(offset >= 60_000);
    let start = ages[0] - 520;
    let gap_at = |age: u128| {
        let next = ages.iter().position(|time| time - start >= age).unwrap();
        ages[next] - ages[next - 1]
    };
    assert!(gap_at(8_000) <= 1500, "{ages:?}");
    assert!((1000..5000).contains(&gap_at(50_000)), "{ages:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_for_a_change_keeps_its_interval_when_others_poll_often() {
    let (poller, calls) = counting();
    let busy = Arc::clone(&poller);
    let mut others = JoinSet::new();
    others.spawn(async move {
        for key in 2..200 {
            busy.observe(&key, deadline()).await.unwrap();
        }
    });
    let (start, mut observed) = (Instant::now(), Vec::new());
    let note = |_| {
        observed.push(start.elapsed());
        (observed.len() == 6).then_some(())
    };
    poller.wait_until(&1, deadline(), PollMode::Change, note).await.unwrap();
    drop(others);
    let apart = observed.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(apart.clone().all(|apart| apart >= seconds(0.4)), "{observed:?}");
    // Each shares the call of another waiter.
    assert!(calls.lock().unwrap().iter().all(|(_, keys)| keys != &[1]));
}

#[tokio::test(start_paused = true)]
async fn a_single_observation_waits_twenty_milliseconds_for_others() {
    let (poller, calls) = counting();
    assert!(poller.observe(&1, deadline()).await.unwrap().row().is_some());
    assert_eq!(times(&calls), [20]);
}

#[tokio::test(start_paused = true)]
async fn a_poll_waits_for_the_rate_limit_with_the_earliest_deadline_of_its_waiters() {
    let (calls, deadlines) = (Calls::default(), Arc::new(Mutex::new(Vec::new())));
    let (log, seen) = (Arc::clone(&calls), Arc::clone(&deadlines));
    let start = Instant::now();
    let source = Source {
        // As the rate limiter: until the quota opens, or the deadline.
        ready: Box::new(move |deadline: Deadline| {
            seen.lock().unwrap().push(deadline);
            let open = Duration::from_secs(8).saturating_sub(start.elapsed());
            Box::pin(async move {
                deadline.bound(sleep(open)).await.ok()?;
                Some(Duration::ZERO)
            })
        }),
        ..source(move |keys: Vec<u32>| {
            log.lock().unwrap().push((start.elapsed(), keys.clone()));
            async move { Ok(rows(keys, 1)) }
        })
    };
    let poller = Poller::new(Tasks::default(), source);
    let [first, second, third] = [5, 20, 60].map(|n| Deadline::after(Duration::from_secs(n)));
    let late = async {
        sleep(Duration::from_secs(1)).await;
        poller.observe(&2, first).await
    };
    let outcomes = tokio::join!(poller.observe(&1, third), late, poller.observe(&3, second));
    assert!(outcomes.0.is_ok() && outcomes.2.is_ok());
    assert!(matches!(outcomes.1, Err(WaitError::Deadline { .. })));
    assert_eq!(*deadlines.lock().unwrap(), [second, first, second]);
    // No separate call is made for the waiter that has left.
    assert_eq!(calls.lock().unwrap()[..], [(Duration::from_secs(8), vec![1, 3])]);
}
