//! Hung, failed and incomplete describe calls.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::{at_least, counting, deadline, observe_all, responding, rows, seconds};
use crate::action::Unreadable;
use crate::base::{Deadline, lock};
use crate::error::{Error, Kind};
use crate::poll::{Observation, PollMode, WaitError};

#[tokio::test(start_paused = true)]
async fn a_hung_call_delays_waiters_by_at_most_two_seconds() {
    let (poller, calls) = responding(|n, keys| async move {
        if n == 1 {
            std::future::pending::<()>().await;
        }
        Ok(rows(keys, n))
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
    let (poller, _) = responding(|n, keys| async move {
        if n == 1 {
            std::future::pending::<()>().await;
        }
        Ok(rows(keys, n))
    });
    let start = Instant::now();
    poller.observe(&1, deadline()).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_millis(2020));
    assert_eq!(calls.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_late_response_is_used_without_a_newer_one() {
    let (poller, calls) = responding(|n, keys| async move {
        sleep(if n == 1 { seconds(3.0) } else { seconds(10.0) }).await;
        Ok(rows(keys, n))
    });
    let start = Instant::now();
    let row = poller.observe(&1, deadline()).await.unwrap().row().unwrap();
    assert_eq!((row.state, start.elapsed()), (1, Duration::from_millis(3020)));
    assert_eq!(calls.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_affects_only_its_ids_and_is_repeated_at_growing_intervals() {
    let (poller, calls) = responding(|_, keys| async move {
        if keys.contains(&1) {
            return Err(Error::from_response("DescribeDisks", 503, "ServiceUnavailable"));
        }
        Ok(rows(keys, 1))
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
    let pauses: Vec<u128> = at.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
    assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 8000]);
}

#[tokio::test(start_paused = true)]
async fn an_id_that_the_cloud_rejects_fails_only_its_own_caller() {
    let (poller, calls) = responding(|_, keys| async move {
        if keys.contains(&37) {
            let code = "InvalidDiskIds.ValueNotSupported";
            return Err(Error::from_response("DescribeDisks", 404, code));
        }
        Ok(rows(keys, 1))
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
        let (poller, calls) =
            responding(move |_, _| async move { Err(Error::from_response("DescribeDisks", 404, code)) });
        let observed = timeout(Duration::from_millis(200), observe_all(&poller, 0..100));
        let _ = observed.await;
        assert_eq!(calls.lock().unwrap().len(), 1, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_absence_has_a_canary_only_if_the_same_response_contains_one() {
    let hidden = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (poller, calls) = responding({
        let hidden = Arc::clone(&hidden);
        move |_, keys| {
            let is_hidden = hidden.load(std::sync::atomic::Ordering::Relaxed);
            async move {
                let keys = keys.into_iter().filter(|key| !(20..1000).contains(key) && !is_hidden);
                Ok(rows(keys, 1))
            }
        }
    });
    let has_canary = async |key| match poller.observe(&key, deadline()).await.unwrap() {
        Observation::Row(_) => panic!("a row"),
        Observation::Missing { canary } => canary,
    };
    assert!(!has_canary(21).await, "no canary was observed");
    // A row of another cluster is not one.
    poller.observe(&11, deadline()).await.unwrap();
    assert!(!has_canary(21).await);
    poller.observe(&1000, deadline()).await.unwrap();
    assert!(has_canary(21).await);
    assert_eq!(calls.lock().unwrap().last().unwrap().1, [21, 1000]);
    // A resource that the caller reports as visible is a canary, whatever its row contains.
    poller.add_canaries(&[12]);
    assert!(has_canary(21).await);
    assert_eq!(calls.lock().unwrap().last().unwrap().1, [21, 12]);
    hidden.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(
        !has_canary(21).await,
        "the account may not describe anything any longer"
    );
}

#[tokio::test(start_paused = true)]
async fn canaries_of_another_access_key_do_not_count() {
    let (poller, _) = counting();
    poller.observe(&1000, deadline()).await.unwrap();
    assert!(poller.has_canary());
    lock(&poller.shared.state).canaries.set_key(1);
    lock(&poller.shared.state).canaries.set_key(0);
    assert!(!poller.has_canary());
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
            async move { Ok(found) }
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
        assert!(poller.observe(&3, deadline()).await.unwrap().row().is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_error_contains_the_last_observation() {
    let (poller, _) = counting();
    let soon = Deadline::after(Duration::from_millis(500));
    let error = poller
        .wait_until(&1, soon, PollMode::Change, at_least(99))
        .await
        .unwrap_err();
    assert!(error.to_string().ends_with("last observed: 1"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_denied_call_ends_the_wait_and_a_transient_failure_does_not() {
    for (code, ends) in [("Forbidden.RAM", true), ("ServiceUnavailable", false)] {
        let (poller, _) = responding(move |_, _| async move { Err(Error::from_response("DescribeDisks", 403, code)) });
        let soon = Deadline::after(Duration::from_secs(5));
        let error = poller
            .wait_until(&1, soon, PollMode::Change, at_least(1))
            .await
            .unwrap_err();
        assert_eq!(matches!(error, WaitError::Cloud(_)), ends, "{code}: {error}");
    }
}
