//! When is looked, who hears of it, and what a look that fails is to whom.

use std::time::Duration;

use super::*;

type Calls = Arc<Mutex<Vec<usize>>>;

fn rows(keys: Vec<u32>, n: usize) -> Found<u32, usize> {
    Found {
        rows: keys.into_iter().map(|key| (key, n)).collect(),
        unreadable: Vec::new(),
    }
}

/// A cloud of numbers where a key's row is the number of calls so far.
fn watch(calls: &Calls) -> Watch<u32, usize> {
    let calls = Arc::clone(calls);
    Watch::new(Tasks::default(), Pace::default(), move |keys, _| {
        let calls = Arc::clone(&calls);
        Box::pin(async move {
            let mut calls = calls.lock().unwrap();
            calls.push(keys.len());
            let n = calls.len();
            Ok(rows(keys, n))
        })
    })
}

fn at_least(n: usize) -> impl FnMut(Seen<usize>) -> Option<usize> {
    move |seen| match seen {
        Seen::Row(row) => (*row >= n).then_some(*row),
        Seen::Nothing | Seen::Failed(_) => None,
    }
}

fn deadline() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

#[tokio::test(start_paused = true)]
async fn any_number_of_waiters_costs_one_call_per_hundred_ids_and_tick() {
    let calls = Calls::default();
    let watch = Arc::new(watch(&calls));
    let mut waits = tokio::task::JoinSet::new();
    for key in 0..250 {
        let watch = Arc::clone(&watch);
        waits.spawn(async move { watch.until(&key, deadline(), at_least(4)).await.is_ok() });
    }
    assert!(waits.join_all().await.into_iter().all(|ok| ok));
    // The second tick's three calls bring everybody to 4.
    assert_eq!(*calls.lock().unwrap(), [100, 100, 50, 100, 100, 50]);
}

#[tokio::test(start_paused = true)]
async fn nobody_waiting_costs_nothing() {
    let calls = Calls::default();
    let watch = watch(&calls);
    watch.until(&1, deadline(), at_least(2)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(calls.lock().unwrap().len(), 2);
    assert!(!watch.shared.lock().polling);
}

/// When each of the first looks is, in milliseconds after the wait began.
async fn looks(n: usize, is_order: bool) -> Vec<u128> {
    let (calls, start) = (Calls::default(), Instant::now());
    let watch = watch(&calls);
    let mut seen = Vec::new();
    let note = |row| {
        seen.push(start.elapsed().as_millis());
        at_least(n)(row)
    };
    let end = if is_order {
        watch.until_done(&1, deadline(), note).await
    } else {
        watch.until(&1, deadline(), note).await
    };
    end.unwrap();
    seen
}

#[tokio::test(start_paused = true)]
async fn looks_at_an_order_are_brisk_while_it_is_young_and_others_never() {
    let brisk = (0..12).map(|n| 375 + n * 250);
    assert_eq!(
        looks(14, true).await,
        brisk.chain([3625, 4125]).collect::<Vec<_>>()
    );
    assert_eq!(looks(5, false).await, [500, 1000, 1500, 2000, 2500]);
}

#[tokio::test(start_paused = true)]
async fn a_young_order_shares_the_looks_at_an_old_one_and_does_not_hasten_them() {
    let calls = Calls::default();
    let watch = watch(&calls);
    let old = watch.until_done(&1, deadline(), at_least(16));
    let young = async {
        tokio::time::sleep(Duration::from_millis(4100)).await;
        watch.until_done(&2, deadline(), at_least(16)).await
    };
    let start = Instant::now();
    let (old, young) = tokio::join!(old, young);
    assert!(old.is_ok() && young.is_ok());
    assert_eq!(start.elapsed(), Duration::from_millis(4625));
    // At 4.125 and 4.625 s for both; between them for the young one alone.
    assert_eq!(calls.lock().unwrap()[13..], [2, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn who_may_call_the_cloud_again_at_each_look_hears_of_one_a_tick_whatever_others_do() {
    let calls = Calls::default();
    let watch = Arc::new(watch(&calls));
    let mut others = tokio::task::JoinSet::new();
    for key in 1..40_u32 {
        let watch = Arc::clone(&watch);
        others.spawn(async move {
            tokio::time::sleep(Duration::from_millis(u64::from(key) * 130)).await;
            watch.look(&key, deadline()).await.unwrap();
            watch
                .until_done(&key, deadline(), at_least(70))
                .await
                .unwrap();
        });
    }
    let start = Instant::now();
    let mut heard = Vec::new();
    let note = |_| {
        heard.push(start.elapsed().as_millis());
        (heard.len() == 16).then_some(())
    };
    watch.until(&0, deadline(), note).await.unwrap();
    others.join_all().await;
    let apart: Vec<_> = heard.windows(2).map(|pair| pair[1] - pair[0]).collect();
    // A round of others may come a little earlier than its own.
    assert!(
        apart.iter().all(|apart| (375..=500).contains(apart)),
        "{heard:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_for_one_who_has_left_holds_nobody_up() {
    let watch: Watch<u32, usize> = Watch::new(Tasks::default(), Pace::default(), |keys, _| {
        Box::pin(async move {
            if keys == [1] {
                std::future::pending::<()>().await;
            }
            Ok(rows(keys, 9))
        })
    });
    let start = Instant::now();
    let gone = async {
        let look = watch.look(&1, deadline());
        let look = tokio::time::timeout(Duration::from_millis(200), look);
        assert!(look.await.is_err());
    };
    let (waited, ()) = tokio::join!(watch.until(&2, deadline(), at_least(9)), gone);
    assert!(waited.is_ok());
    assert_eq!(start.elapsed(), Duration::from_millis(500));
}

#[tokio::test(start_paused = true)]
async fn looks_are_not_brisk_where_one_call_does_not_tell_all() {
    let calls = Calls::default();
    let watch = Arc::new(watch(&calls));
    let mut waits = tokio::task::JoinSet::new();
    for key in 0..101 {
        let watch = Arc::clone(&watch);
        waits.spawn(async move {
            watch
                .until_done(&key, deadline(), at_least(7))
                .await
                .is_ok()
        });
    }
    let start = Instant::now();
    assert!(waits.join_all().await.into_iter().all(|ok| ok));
    assert_eq!(start.elapsed(), Duration::from_millis(375 + 3 * 500));
}

#[tokio::test(start_paused = true)]
async fn looks_are_not_brisk_for_an_hour_after_the_cloud_has_refused_one() {
    let calls = Calls::default();
    let watch: Watch<u32, usize> = Watch::new(Tasks::default(), Pace::default(), {
        let calls = Arc::clone(&calls);
        move |keys, _| {
            let mut calls = calls.lock().unwrap();
            calls.push(keys.len());
            let n = calls.len();
            Box::pin(async move {
                if n == 1 {
                    return Err(Error::answered("DescribeDisks", 400, "Throttling"));
                }
                Ok(rows(keys, n))
            })
        }
    });
    // The refused one at 0.375 s, the next a second later, and then each half second.
    for (last, wanted) in [(4, 2375), (7, 1375), (10, 875)] {
        if last == 10 {
            tokio::time::sleep(Duration::from_hours(1)).await;
        }
        let start = Instant::now();
        let end = watch.until_done(&1, deadline(), at_least(last)).await;
        end.unwrap();
        assert_eq!(start.elapsed(), Duration::from_millis(wanted), "{last}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_look_does_not_wait_for_the_tick() {
    let calls = Calls::default();
    let start = Instant::now();
    assert!(watch(&calls).look(&1, deadline()).await.unwrap().is_some());
    assert!(start.elapsed() < Duration::from_millis(100));
}

#[tokio::test(start_paused = true)]
async fn each_refused_round_doubles_the_pause_once_however_many_chunks_it_has() {
    let at = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&at);
    let watch: Watch<u32, usize> = Watch::new(Tasks::default(), Pace::default(), {
        move |keys, _| {
            let mut at = log.lock().unwrap();
            at.push(Instant::now());
            let refused = at.len() <= 6;
            Box::pin(async move {
                if refused {
                    return Err(Error::answered("DescribeDisks", 400, "Throttling"));
                }
                Ok(rows(keys, 9))
            })
        }
    });
    let watch = Arc::new(watch);
    let mut waits = tokio::task::JoinSet::new();
    for key in 0..250 {
        let watch = Arc::clone(&watch);
        waits.spawn(async move { watch.look(&key, deadline()).await.is_ok() });
    }
    assert!(waits.join_all().await.into_iter().all(|ok| ok));
    let at = at.lock().unwrap();
    let pauses: Vec<u64> = at.windows(2).map(|w| (w[1] - w[0]).as_secs()).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 10, 10, 0, 0]);
}

#[tokio::test(start_paused = true)]
async fn a_row_that_makes_no_sense_fails_whoever_asks_for_it_and_nobody_else() {
    for (id, told) in [(Some("1"), [true, false]), (None, [true, true])] {
        let watch: Watch<u32, usize> =
            Watch::new(Tasks::default(), Pace::default(), move |_, _| {
                let row = Unreadable {
                    id: id.map(str::to_owned),
                    reason: "no Status".to_owned(),
                };
                let mut found = rows(vec![3], 9);
                found.unreadable.push(("DescribeDisks", row));
                Box::pin(async move { Ok(found) })
            });
        for (key, told) in [1, 2].into_iter().zip(told) {
            match watch.look(&key, deadline()).await {
                Err(WaitError::Cloud(error)) => {
                    assert!(told && error.kind() == Kind::Ambiguous, "{error}");
                }
                outcome => assert!(!told && matches!(outcome, Ok(None)), "{outcome:?}"),
            }
        }
        assert!(watch.look(&3, deadline()).await.unwrap().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_error_tells_what_was_seen_last() {
    let calls = Calls::default();
    let soon = Deadline::after(Duration::from_secs(1));
    let error = watch(&calls)
        .until(&1, soon, at_least(99))
        .await
        .unwrap_err();
    assert!(error.to_string().ends_with("last seen: 1"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_denied_description_ends_the_wait_and_a_passing_failure_does_not() {
    for (code, ends) in [("Forbidden.RAM", true), ("ServiceUnavailable", false)] {
        let watch: Watch<u32, usize> =
            Watch::new(Tasks::default(), Pace::default(), move |_, _| {
                Box::pin(async move { Err(Error::answered("DescribeDisks", 403, code)) })
            });
        let soon = Deadline::after(Duration::from_secs(5));
        let error = watch.until(&1, soon, at_least(1)).await.unwrap_err();
        assert_eq!(
            matches!(error, WaitError::Cloud(_)),
            ends,
            "{code}: {error}"
        );
    }
}
