//! In paused time, against an API server in memory.

mod api_server;

use std::sync::{Arc, Mutex};

use http::Method;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::*;
use api_server::{ApiServer, Fault};

const NAME: &str = "disks-controller";
const LATENCY: Duration = Duration::from_millis(20);

fn config(identity: &str) -> LeaseConfig {
    LeaseConfig {
        namespace: "storage".to_owned(),
        name: NAME.to_owned(),
        identity: identity.to_owned(),
        duration: seconds(15.0),
        renew_deadline: seconds(10.0),
        retry_period: seconds(2.0),
    }
}

fn seconds(count: f64) -> Duration {
    Duration::from_secs_f64(count)
}

/// The result of a future and its duration in seconds.
async fn timed<T>(future: impl Future<Output = T>) -> (T, f64) {
    let start = Instant::now();
    (future.await, start.elapsed().as_secs_f64())
}

#[tokio::test(start_paused = true)]
async fn the_first_replica_takes_the_lease_at_once_and_renews_it() {
    let server = ApiServer::default();
    let candidate = server.candidate("a");
    let leadership = candidate.leadership();
    assert_eq!(*leadership.borrow(), Leadership::Standby(Ok(None)));
    let (mut held, elapsed) = timed(candidate.acquire()).await;
    assert!(elapsed < 0.1, "{elapsed}");
    assert_eq!(*leadership.borrow(), Leadership::Leader);
    assert!(timeout(seconds(600.0), held.hold()).await.is_err());
    let state = server.state();
    let renewals = state.calls.iter().filter(|call| **call == Method::PUT);
    assert!((290..=300).contains(&renewals.count()));
    let spec = &state.lease.as_ref().unwrap()["spec"];
    assert_eq!(spec["holderIdentity"], "a");
    assert_eq!(spec["leaseDurationSeconds"], 15);
}

#[tokio::test(start_paused = true)]
async fn a_lease_expires_by_the_local_clock_whatever_the_wall_clocks_are() {
    for renewed in ["1971-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"] {
        let server = ApiServer::default();
        server.write(&json!({
            "holderIdentity": "dead", "leaseDurationSeconds": 15, "acquireTime": renewed, "renewTime": renewed,
        }));
        let candidate = server.candidate("a");
        let leadership = candidate.leadership();
        let (_, elapsed) = timed(candidate.acquire()).await;
        assert!((15.0..15.5).contains(&elapsed), "{renewed}: {elapsed}");
        assert_eq!(*leadership.borrow(), Leadership::Leader);
        let state = server.state();
        assert_eq!(state.lease.as_ref().unwrap()["spec"]["leaseTransitions"], 1);
    }
}

#[tokio::test(start_paused = true)]
async fn the_duration_that_the_holder_stated_applies() {
    let server = ApiServer::default();
    server.write(&json!({"holderIdentity": "dead", "leaseDurationSeconds": 40}));
    let (_, elapsed) = timed(server.candidate("a").acquire()).await;
    assert!((40.0..40.5).contains(&elapsed), "{elapsed}");
}

#[tokio::test(start_paused = true)]
async fn after_a_crash_the_standby_takes_over_within_17_seconds() {
    for moment in [0.0, 0.5, 1.0, 1.5, 1.9] {
        let server = ApiServer::default();
        let mut held = server.candidate("a").acquire().await;
        let standby = server.candidate("b");
        let leadership = standby.leadership();
        let crashed = async {
            assert!(timeout(seconds(20.0 + moment), held.hold()).await.is_err());
            assert_eq!(*leadership.borrow(), Leadership::Standby(Ok(Some("a".to_owned()))));
            Instant::now()
        };
        let (crashed, _) = tokio::join!(crashed, standby.acquire());
        let elapsed = crashed.elapsed().as_secs_f64();
        assert!((13.0..17.2).contains(&elapsed), "{elapsed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_released_lease_is_taken_at_the_next_attempt() {
    let server = ApiServer::default();
    let mut held = server.candidate("a").acquire().await;
    let standby = server.candidate("b");
    let released = async {
        assert!(timeout(seconds(31.0), held.hold()).await.is_err());
        held.release().await;
        assert_eq!(server.holder().as_deref(), Some(""));
        Instant::now()
    };
    let (released, _) = tokio::join!(released, standby.acquire());
    assert!(released.elapsed() < seconds(2.2));
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_returns_before_the_renew_deadline_changes_nothing() {
    for (fault, outage) in [
        (Fault::Away, 9.0),
        // A lost response is noticed after half of the renew deadline.
        (Fault::NoResponse, 4.5),
        (Fault::Forbidden, 7.0),
    ] {
        let server = ApiServer::default();
        let mut held = server.candidate("a").acquire().await;
        let outage = async {
            sleep(seconds(20.5)).await;
            server.set(fault);
            sleep(seconds(outage)).await;
            server.set(Fault::None);
            sleep(seconds(60.0)).await;
        };
        tokio::select! {
            lost = held.hold() => panic!("{fault:?}: {lost}"),
            () = outage => {}
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_renewed_is_lost_before_another_replica_takes_it() {
    for fault in [Fault::Away, Fault::NoResponse, Fault::Forbidden] {
        let server = ApiServer::default();
        let mut held = server.candidate("a").acquire().await;
        let standby = server.candidate("b");
        let leadership = standby.leadership();
        let outage = async {
            sleep(seconds(20.5)).await;
            server.set(fault);
            sleep(seconds(60.0)).await;
            assert!(matches!(*leadership.borrow(), Leadership::Standby(Err(_))), "{fault:?}");
            server.set(Fault::None);
            Instant::now()
        };
        let hold = async {
            let (lost, elapsed) = Box::pin(timed(held.hold())).await;
            assert!((28.0..30.6).contains(&elapsed), "{fault:?}: {elapsed}");
            let lost = lost.to_string();
            assert!(lost.contains("could not be renewed for 10 s"), "{lost}");
        };
        let ((), returned, _) = tokio::join!(hold, outage, standby.acquire());
        // The standby did not observe the last renewal.
        assert!(returned.elapsed() < seconds(17.2), "{fault:?}");
        assert_eq!(server.holder().as_deref(), Some("b"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_by_others_is_adopted_and_a_new_holder_ends_the_term() {
    let server = ApiServer::default();
    let mut held = server.candidate("a").acquire().await;
    let changes = async {
        sleep(seconds(9.0)).await;
        let mut lease = server.state().lease.clone().unwrap();
        lease["metadata"]["annotations"] = json!({"by": "an operator"});
        server.state().put(lease);
        sleep(seconds(60.0)).await;
        let annotations = server.state().lease.clone().unwrap();
        assert_eq!(annotations["metadata"]["annotations"]["by"], "an operator");
        server.write(&json!({"holderIdentity": "b", "leaseDurationSeconds": 15}));
    };
    let (lost, ()) = tokio::join!(held.hold(), changes);
    assert!(lost.to_string().contains("was taken by \"b\""), "{lost}");
    held.release().await;
    assert_eq!(server.holder().as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn a_restarted_process_of_the_same_replica_continues_at_once_and_ends_the_earlier_term() {
    let server = ApiServer::default();
    let mut earlier = server.candidate("a").acquire().await;
    let (mut held, elapsed) = timed(server.candidate("a").acquire()).await;
    assert!(elapsed < 0.1, "{elapsed}");
    let (lost, elapsed) = Box::pin(timed(earlier.hold())).await;
    assert!(elapsed < 2.2, "{elapsed}");
    assert!(lost.to_string().contains("was taken"), "{lost}");
    assert!(timeout(seconds(60.0), held.hold()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_deleted_lease_ends_the_term_before_another_replica_creates_it() {
    let server = ApiServer::default();
    let mut held = server.candidate("a").acquire().await;
    let standby = server.candidate("b");
    let deleted = async {
        sleep(seconds(20.0)).await;
        server.state().lease = None;
        Instant::now()
    };
    let hold = async {
        let lost = held.hold().await;
        assert!(lost.to_string().contains("was deleted"), "{lost}");
        Instant::now()
    };
    let (deleted, lost, _) = tokio::join!(deleted, hold, standby.acquire());
    assert!(lost - deleted < seconds(2.2));
    assert!(lost.elapsed() > seconds(10.0));
}

#[tokio::test(start_paused = true)]
async fn a_standby_reports_why_it_cannot_take_the_lease() {
    let server = ApiServer::default();
    server.set(Fault::Forbidden);
    let standby = server.candidate("a");
    let leadership = standby.leadership();
    let corrected = async {
        sleep(seconds(30.0)).await;
        let Leadership::Standby(Err(error)) = leadership.borrow().clone() else {
            panic!("no error");
        };
        for part in ["cannot read the Lease storage/disks-controller", "Grant it"] {
            assert!(error.contains(part), "{error}");
        }
        server.set(Fault::None);
    };
    let ((), _) = tokio::join!(corrected, standby.acquire());
}

#[tokio::test(start_paused = true)]
async fn there_are_never_two_holders() {
    let terms = simulate(seconds(10.0)).await;
    assert_eq!(terms.most_at_once, 1, "{terms:?}");
    assert!(terms.count > 15, "{terms:?}");
}

#[tokio::test(start_paused = true)]
async fn a_renew_deadline_longer_than_the_lease_duration_would_allow_two_holders() {
    let terms = simulate(seconds(40.0)).await;
    assert!(terms.most_at_once > 1, "{terms:?}");
}

/// How often replicas were active.
#[derive(Debug, Clone, Copy, Default)]
struct Terms {
    active: u32,
    most_at_once: u32,
    count: u32,
}

/// Three replicas crash, stop, and lose the API server or its responses, each at other times, for two hours.
async fn simulate(renew_deadline: Duration) -> Terms {
    let server = ApiServer::default();
    let terms = Arc::<Mutex<Terms>>::default();
    let mut replicas = JoinSet::new();
    for (identity, seed) in [("a", 1), ("b", 2), ("c", 3)] {
        let (server, terms) = (server.another_connection(), Arc::clone(&terms));
        replicas.spawn(interrupt(server.clone(), Random(seed + 10)));
        replicas.spawn(async move {
            let mut random = Random(seed);
            loop {
                let mut candidate = server.candidate(identity);
                candidate.config.renew_deadline = renew_deadline;
                let mut held = candidate.acquire().await;
                let term = Term::start(&terms);
                let outcome = timeout(random.seconds(600), held.hold()).await;
                drop(term);
                // Lost, stopped gracefully, or killed.
                if outcome.is_err() && random.below(2) == 0 {
                    held.release().await;
                }
                sleep(random.seconds(30)).await;
            }
        });
    }
    sleep(seconds(2.0 * 3600.0)).await;
    assert!(replicas.try_join_next().is_none());
    *terms.lock().unwrap()
}

/// Interrupts the way to the API server again and again.
async fn interrupt(server: ApiServer, mut random: Random) {
    loop {
        sleep(random.seconds(120)).await;
        server.set(match random.below(3) {
            0 => Fault::Away,
            1 => Fault::NoResponse,
            _ => Fault::Forbidden,
        });
        sleep(random.seconds(60)).await;
        server.set(Fault::None);
    }
}

/// The time for which a replica is active.
struct Term(Arc<Mutex<Terms>>);

impl Term {
    fn start(terms: &Arc<Mutex<Terms>>) -> Self {
        let mut all = terms.lock().unwrap();
        all.active += 1;
        all.count += 1;
        all.most_at_once = all.most_at_once.max(all.active);
        Self(Arc::clone(terms))
    }
}

impl Drop for Term {
    fn drop(&mut self) {
        self.0.lock().unwrap().active -= 1;
    }
}

/// A linear congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }

    fn seconds(&mut self, limit: u64) -> Duration {
        Duration::from_millis(self.below(limit * 1000))
    }
}
