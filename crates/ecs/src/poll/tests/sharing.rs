//! Which waiters share a describe call.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::{at_least, counting, deadline, observe_all, responding, rows, sizes, source};
use crate::base::Tasks;
use crate::poll::source::Source;
use crate::poll::{PollMode, Poller};

#[tokio::test(start_paused = true)]
async fn any_number_of_waiters_costs_one_call_per_hundred_ids_and_poll() {
    let (poller, calls) = counting();
    let mut waits = JoinSet::new();
    for key in 0..250 {
        let poller = Arc::clone(&poller);
        waits.spawn(async move {
            poller
                .wait_until(&key, deadline(), PollMode::Change, at_least(4))
                .await
                .is_ok()
        });
    }
    assert!(waits.join_all().await.into_iter().all(|ok| ok));
    assert_eq!(sizes(&calls), [100, 100, 50, 100, 100, 50]);
}

#[tokio::test(start_paused = true)]
async fn calls_for_more_than_a_hundred_ids_run_in_parallel() {
    let (poller, calls) = responding(|_, keys| async move {
        sleep(Duration::from_secs(1)).await;
        Ok(rows(keys, 1))
    });
    let start = Instant::now();
    assert!(observe_all(&poller, 0..250).await.into_iter().all(|ok| ok));
    assert_eq!(start.elapsed(), Duration::from_millis(1020));
    assert_eq!(sizes(&calls).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_batch_includes_ids_requested_while_it_waits_for_the_rate_limit() {
    let (poller, calls) = counting();
    let waiting = Source {
        ready: Box::new(|_| {
            Box::pin(async {
                sleep(Duration::from_secs(5)).await;
                Some(Duration::ZERO)
            })
        }),
        ..source({
            let calls = Arc::clone(&calls);
            move |keys: Vec<u32>| {
                calls.lock().unwrap().push((Duration::ZERO, keys.clone()));
                async move { Ok(rows(keys, 1)) }
            }
        })
    };
    drop(poller);
    let poller = Poller::new(Tasks::default(), waiting);
    let late = async {
        sleep(Duration::from_secs(4)).await;
        poller.observe(&2, deadline()).await
    };
    let gone = timeout(Duration::from_secs(1), poller.observe(&3, deadline()));
    let (early, late, gone) = tokio::join!(poller.observe(&1, deadline()), late, gone);
    assert!(early.is_ok() && late.is_ok() && gone.is_err());
    assert_eq!(calls.lock().unwrap()[..], [(Duration::ZERO, vec![1, 2])]);
}

#[tokio::test(start_paused = true)]
async fn successive_single_observations_share_polls() {
    let (poller, calls) = counting();
    let mut observations = JoinSet::new();
    for key in 0..400 {
        let poller = Arc::clone(&poller);
        observations.spawn(async move {
            sleep(Duration::from_millis(25) * key).await;
            let start = Instant::now();
            poller.observe(&key, deadline()).await.unwrap();
            start.elapsed()
        });
    }
    let longest = observations.join_all().await.into_iter().max().unwrap();
    assert!(longest <= Duration::from_millis(205), "{longest:?}");
    assert!(calls.lock().unwrap().len() <= 90, "{calls:?}");
}
