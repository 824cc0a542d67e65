//! Tests of the schedule, of the sharing of polls, and of failures.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::source::{BoxFuture, INTERVAL, Source};
use super::*;
use crate::base::{Deadline, Tasks};
use crate::cloud::action::{Page, Unreadable};
use crate::cloud::error::{Error, Kind};

mod simulation;

type Response = crate::cloud::Result<Page<Row<usize>>>;

#[derive(Debug)]
struct Row<T> {
    id: u32,
    state: T,
}

impl<T: std::fmt::Display> std::fmt::Display for Row<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.state.fmt(f)
    }
}

/// The describe calls so far: when, and the ids.
type Calls = Arc<Mutex<Vec<(Duration, Vec<u32>)>>>;

fn deadline() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

fn rows<T: Copy>(keys: impl IntoIterator<Item = u32>, state: T) -> Page<Row<T>> {
    let rows = keys.into_iter().map(|id| Row { id, state });
    Page::new(rows.collect(), None)
}

/// A source whose `page` gets no ids for an unfiltered page.
fn source<T: 'static>(
    page: impl Fn(Vec<u32>) -> BoxFuture<crate::cloud::Result<Page<Row<T>>>> + Send + Sync + 'static,
) -> Source<u32, Row<T>> {
    Source {
        action: "DescribeDisks",
        max_ids: MAX_IDS_PER_CALL,
        interval: INTERVAL,
        id: |row| row.id,
        ready: Box::new(|_| Box::pin(async { Some(Duration::ZERO) })),
        page: Box::new(move |keys, _| page(keys.unwrap_or_default())),
        find_missing: None,
    }
}

/// A poller of a cloud that responds to the n-th call with `respond(n, ids)`.
fn responding(
    respond: impl Fn(usize, Vec<u32>) -> BoxFuture<Response> + Send + Sync + 'static,
) -> (Arc<Poller<u32, Row<usize>>>, Calls) {
    let (calls, start) = (Calls::default(), Instant::now());
    let log = Arc::clone(&calls);
    let source = source(move |keys| {
        let mut log = log.lock().unwrap();
        log.push((start.elapsed(), keys.clone()));
        respond(log.len(), keys)
    });
    let poller = Poller::new(Tasks::default(), source);
    (Arc::new(poller), calls)
}

/// A poller of a cloud in which the state of every row is the number of calls so far.
fn counting() -> (Arc<Poller<u32, Row<usize>>>, Calls) {
    responding(|n, keys| Box::pin(async move { Ok(rows(keys, n)) }))
}

fn at_least(n: usize) -> impl FnMut(Observation<Row<usize>>) -> Option<usize> {
    move |observation| match observation {
        Observation::Row(row) => (row.state >= n).then_some(row.state),
        Observation::Missing { .. } => None,
    }
}

fn sizes(calls: &Calls) -> Vec<usize> {
    calls
        .lock()
        .unwrap()
        .iter()
        .map(|(_, keys)| keys.len())
        .collect()
}

fn times(calls: &Calls) -> Vec<u128> {
    let calls = calls.lock().unwrap();
    calls.iter().map(|(at, _)| at.as_millis()).collect()
}

async fn observe_all(
    poller: &Arc<Poller<u32, Row<usize>>>,
    keys: std::ops::Range<u32>,
) -> Vec<bool> {
    let mut observations = JoinSet::new();
    for key in keys {
        let poller = Arc::clone(poller);
        observations.spawn(async move { poller.observe(&key, deadline()).await.is_ok() });
    }
    observations.join_all().await
}

#[tokio::test(start_paused = true)]
async fn any_number_of_waiters_costs_one_call_per_hundred_ids_and_poll() {
    let (poller, calls) = counting();
    let mut waits = JoinSet::new();
    for key in 0..250 {
        let poller = Arc::clone(&poller);
        waits.spawn(async move {
            poller
                .wait_until(&key, deadline(), at_least(4))
                .await
                .is_ok()
        });
    }
    assert!(waits.join_all().await.into_iter().all(|ok| ok));
    assert_eq!(sizes(&calls), [100, 100, 50, 100, 100, 50]);
}

#[tokio::test(start_paused = true)]
async fn no_call_is_made_without_waiters() {
    let (poller, calls) = counting();
    poller
        .wait_until(&1, deadline(), at_least(2))
        .await
        .unwrap();
    let waited = poller.wait_until_done(&1, deadline(), Operation::Attach, at_least(5));
    waited.await.unwrap();
    sleep(Duration::from_secs(600)).await;
    assert_eq!(calls.lock().unwrap().len(), 5);
    assert!(!poller.shared.lock().polling);
}

#[tokio::test(start_paused = true)]
async fn polls_for_a_change_of_unknown_duration_become_rarer_up_to_two_seconds() {
    let (poller, calls) = counting();
    poller
        .wait_until(&1, deadline(), at_least(30))
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
    let slow = poller.wait_until_done(&1, deadline(), Operation::Attach, |_| None::<()>);
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
    poller.wait_until(&1, deadline(), note).await.unwrap();
    drop(others);
    let apart = observed.windows(2).map(|pair| pair[1] - pair[0]);
    assert!(
        apart.clone().all(|apart| apart >= seconds(0.4)),
        "{observed:?}"
    );
    // Each shares the call of another waiter.
    assert!(calls.lock().unwrap().iter().all(|(_, keys)| keys != &[1]));
}

#[tokio::test(start_paused = true)]
async fn a_single_observation_waits_twenty_milliseconds_for_others() {
    let (poller, calls) = counting();
    assert!(
        poller
            .observe(&1, deadline())
            .await
            .unwrap()
            .row()
            .is_some()
    );
    assert_eq!(times(&calls), [20]);
}

#[tokio::test(start_paused = true)]
async fn a_hung_call_delays_waiters_by_at_most_two_seconds() {
    let (poller, calls) = responding(|n, keys| {
        Box::pin(async move {
            if n == 1 {
                std::future::pending::<()>().await;
            }
            Ok(rows(keys, n))
        })
    });
    let start = Instant::now();
    let others = async {
        sleep(Duration::from_millis(100)).await;
        poller.observe(&2, deadline()).await.unwrap();
        start.elapsed()
    };
    let (first, others) = tokio::join!(poller.observe(&1, deadline()), others);
    assert!(first.is_ok());
    assert_eq!(others, Duration::from_millis(120));
    // The first shared that call.
    assert_eq!(start.elapsed(), Duration::from_millis(120));
    let (poller, _) = responding(|n, keys| {
        Box::pin(async move {
            if n == 1 {
                std::future::pending::<()>().await;
            }
            Ok(rows(keys, n))
        })
    });
    let start = Instant::now();
    poller.observe(&1, deadline()).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(2020));
    assert_eq!(calls.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_late_response_is_used_without_a_newer_one() {
    let (poller, calls) = responding(|n, keys| {
        Box::pin(async move {
            sleep(if n == 1 { seconds(3.0) } else { seconds(10.0) }).await;
            Ok(rows(keys, n))
        })
    });
    let start = Instant::now();
    let row = poller.observe(&1, deadline()).await.unwrap().row().unwrap();
    assert_eq!(
        (row.state, start.elapsed()),
        (1, Duration::from_millis(3020))
    );
    assert_eq!(calls.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn calls_for_more_than_a_hundred_ids_run_in_parallel() {
    let (poller, calls) = responding(|_, keys| {
        Box::pin(async move {
            sleep(Duration::from_secs(1)).await;
            Ok(rows(keys, 1))
        })
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
                Box::pin(async move { Ok(rows(keys, 1)) })
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
async fn a_failed_call_affects_only_its_ids_and_is_repeated_at_growing_intervals() {
    let (poller, calls) = responding(|_, keys| {
        Box::pin(async move {
            if keys.contains(&1) {
                return Err(Error::from_response(
                    "DescribeDisks",
                    503,
                    "ServiceUnavailable",
                ));
            }
            Ok(rows(keys, 1))
        })
    });
    let soon = Deadline::after(Duration::from_secs(20));
    let (failing, rest) = tokio::join!(poller.observe(&1, soon), async {
        sleep(Duration::from_millis(30)).await;
        observe_all(&poller, 100..200).await
    });
    assert!(matches!(failing, Err(WaitError::Deadline { .. })));
    assert!(rest.into_iter().all(|ok| ok));
    let calls = calls.lock().unwrap();
    let failed = calls.iter().filter(|(_, keys)| keys.contains(&1));
    let at: Vec<Duration> = failed.map(|(at, _)| *at).collect();
    let pauses: Vec<u128> = at
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_millis())
        .collect();
    assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 8000]);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_the_cloud_rejects_fails_only_its_own_caller() {
    let (poller, calls) = responding(|_, keys| {
        Box::pin(async move {
            if keys.contains(&37) {
                let code = "InvalidDiskIds.ValueNotSupported";
                return Err(Error::from_response("DescribeDisks", 404, code));
            }
            Ok(rows(keys, 1))
        })
    });
    let outcomes = observe_all(&poller, 0..100).await;
    assert_eq!(outcomes.iter().filter(|ok| !**ok).count(), 1);
    assert!(poller.observe(&37, deadline()).await.is_err());
    assert!(calls.lock().unwrap().len() <= 16);
}

#[tokio::test(start_paused = true)]
async fn a_code_that_no_id_causes_does_not_split_the_batch() {
    for code in [
        "Forbidden.RAM",
        "InvalidRegionId.NotFound",
        "InvalidAccessKeyId.NotFound",
    ] {
        let (poller, calls) = responding(move |_, _| {
            Box::pin(async move { Err(Error::from_response("DescribeDisks", 404, code)) })
        });
        let observed = timeout(Duration::from_millis(200), observe_all(&poller, 0..100));
        let _ = observed.await;
        assert_eq!(calls.lock().unwrap().len(), 1, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_absence_is_witnessed_by_another_row_of_the_same_response() {
    let hidden = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (poller, calls) = responding({
        let hidden = Arc::clone(&hidden);
        move |_, keys| {
            let is_hidden = hidden.load(std::sync::atomic::Ordering::Relaxed);
            Box::pin(async move {
                let keys = keys.into_iter().filter(|key| *key < 10 && !is_hidden);
                Ok(rows(keys, 1))
            })
        }
    });
    let witnessed = async |key| match poller.observe(&key, deadline()).await.unwrap() {
        Observation::Row(_) => panic!("a row"),
        Observation::Missing { witnessed } => witnessed,
    };
    assert!(!witnessed(11).await, "nothing was ever returned");
    poller.shared.lock().witnesses.insert(&1);
    assert!(witnessed(11).await);
    assert_eq!(calls.lock().unwrap()[1].1, [11, 1]);
    assert!(
        poller
            .observe(&1, deadline())
            .await
            .unwrap()
            .row()
            .is_some()
    );
    assert_eq!(calls.lock().unwrap()[2].1, [1], "it needs no witness");
    poller.shared.lock().witnesses.remove(&1);
    assert!(!witnessed(12).await);
    poller.observe(&2, deadline()).await.unwrap();
    hidden.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(
        !witnessed(13).await,
        "the account may not describe anything any longer"
    );
}

#[tokio::test(start_paused = true)]
async fn a_row_that_cannot_be_parsed_fails_its_own_caller() {
    for (id, failed) in [(Some("1"), [true, false]), (None, [true, true])] {
        let (poller, _) = responding(move |_, _| {
            let row = Unreadable {
                id: id.map(str::to_owned),
                reason: "no Status".to_owned(),
            };
            let mut found = rows([3], 9);
            found.unreadable.push(row);
            Box::pin(async move { Ok(found) })
        });
        for (key, failed) in [1, 2].into_iter().zip(failed) {
            match poller.observe(&key, deadline()).await {
                Err(WaitError::Cloud(error)) => {
                    assert!(failed && error.kind() == Kind::Ambiguous, "{error}");
                }
                outcome => assert!(
                    !failed && matches!(outcome, Ok(Observation::Missing { .. })),
                    "{outcome:?}"
                ),
            }
        }
        assert!(
            poller
                .observe(&3, deadline())
                .await
                .unwrap()
                .row()
                .is_some()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_error_contains_the_last_observation() {
    let (poller, _) = counting();
    let soon = Deadline::after(Duration::from_millis(500));
    let error = poller.wait_until(&1, soon, at_least(99)).await.unwrap_err();
    assert!(error.to_string().ends_with("last observed: 1"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_denied_call_ends_the_wait_and_a_transient_failure_does_not() {
    for (code, ends) in [("Forbidden.RAM", true), ("ServiceUnavailable", false)] {
        let (poller, _) = responding(move |_, _| {
            Box::pin(async move { Err(Error::from_response("DescribeDisks", 403, code)) })
        });
        let soon = Deadline::after(Duration::from_secs(5));
        let error = poller.wait_until(&1, soon, at_least(1)).await.unwrap_err();
        assert_eq!(
            matches!(error, WaitError::Cloud(_)),
            ends,
            "{code}: {error}"
        );
    }
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
            Box::pin(async move { Ok(rows(keys, 1)) })
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
    assert_eq!(
        calls.lock().unwrap()[..],
        [(Duration::from_secs(8), vec![1, 3])]
    );
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
