//! The cache in virtual time.

use std::sync::atomic::{AtomicU32, Ordering};

use secrecy::ExposeSecret;

use super::*;
use crate::base::TokioClock;

const START: &str = "2026-01-15T08:00:00Z";

/// Credentials that last so long, after so long; none while it is broken.
#[derive(Debug)]
struct Issuer {
    clock: TokioClock,
    life: Duration,
    takes: Duration,
    asked: AtomicU32,
    broken: Mutex<bool>,
    /// Always the same ones, as the metadata service has them until its own time comes.
    same: bool,
}

#[async_trait]
impl Provide for Issuer {
    async fn provide(&self) -> Result<Credentials, CredentialError> {
        let count = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        tokio::time::sleep(self.takes).await;
        if *self.broken.lock().unwrap() {
            return Err(CredentialError::Slow(self.takes));
        }
        let name = if self.same { 1 } else { count };
        let mut credentials = Credentials::new(format!("STS.{name}"), "s");
        let from = if self.same {
            START.parse().unwrap()
        } else {
            self.clock.now()
        };
        let expires = from.saturating_add(self.life).unwrap();
        credentials.expires = Some(expires);
        Ok(credentials)
    }
}

struct Lab {
    issuer: Arc<Issuer>,
    cache: Arc<Cache>,
}

impl Lab {
    fn new(life: u64) -> Self {
        Self::of(life, false)
    }

    fn of(life: u64, same: bool) -> Self {
        let clock = TokioClock::starting_at(START.parse().unwrap());
        let issuer = Arc::new(Issuer {
            clock,
            life: Duration::from_secs(life),
            takes: Duration::from_millis(100),
            asked: AtomicU32::new(0),
            broken: Mutex::new(false),
            same,
        });
        let cache = Arc::new(Cache::new(Arc::clone(&issuer) as _, Arc::new(clock)));
        Self { issuer, cache }
    }

    fn asked(&self) -> u32 {
        self.issuer.asked.load(Ordering::SeqCst)
    }

    fn broken(&self, broken: bool) {
        *self.issuer.broken.lock().unwrap() = broken;
    }

    async fn got(&self) -> Credentials {
        self.cache.provide().await.unwrap()
    }

    async fn name(&self) -> String {
        self.got().await.access_key_id.expose_secret().to_owned()
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn all_who_come_while_there_are_none_wait_for_the_one_renewal() {
    let lab = Lab::new(3600);
    let callers = (0..50).map(|_| {
        let cache = Arc::clone(&lab.cache);
        tokio::task::JoinSet::from_iter([async move { cache.provide().await }])
    });
    for mut caller in callers.collect::<Vec<_>>() {
        let found = caller.join_next().await.unwrap().unwrap();
        assert!(found.is_ok());
    }
    assert_eq!(lab.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_costs_nothing_until_a_quarter_of_an_hour_before_its_end() {
    let lab = Lab::new(3600);
    lab.got().await;
    pass(2690).await;
    assert_eq!((lab.name().await.as_str(), lab.asked()), ("STS.1", 1));
    pass(20).await;
    // The old ones are still good: nobody waits.
    let begun = Instant::now();
    assert_eq!(lab.name().await, "STS.1");
    assert!(begun.elapsed().is_zero());
    pass(1).await;
    assert_eq!((lab.name().await.as_str(), lab.asked()), ("STS.2", 2));
}

#[tokio::test(start_paused = true)]
async fn one_renewal_begins_however_many_callers_come_meanwhile() {
    let lab = Lab::new(60);
    lab.got().await;
    pass(45).await;
    for _ in 0..100 {
        assert_eq!(lab.name().await, "STS.1");
    }
    pass(1).await;
    assert_eq!((lab.name().await.as_str(), lab.asked()), ("STS.2", 2));
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_gives_up_ends_the_renewal_for_nobody() {
    let lab = Lab::new(3600);
    let hasty = tokio::time::timeout(Duration::from_millis(10), lab.cache.provide());
    assert!(hasty.await.is_err());
    assert_eq!((lab.name().await.as_str(), lab.asked()), ("STS.1", 1));
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_leaves_the_old_ones_in_use_and_is_tried_ever_more_rarely() {
    let lab = Lab::new(3600);
    lab.got().await;
    lab.broken(true);
    pass(2710).await;
    // 870 s are left; a caller comes every second.
    for _ in 0..860 {
        assert_eq!(lab.name().await, "STS.1");
        pass(1).await;
    }
    assert!((10..=25).contains(&lab.asked()), "{}", lab.asked());
    lab.broken(false);
    pass(60).await;
    assert_ne!(lab.name().await, "STS.1");
}

#[tokio::test(start_paused = true)]
async fn without_valid_ones_a_broken_source_fails_callers_at_once_and_is_not_hammered() {
    let lab = Lab::new(3600);
    lab.broken(true);
    for _ in 0..100 {
        let error = lab.cache.provide().await.unwrap_err();
        assert!(error.is_passing(), "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // 1, 2, 4 … seconds apart.
    assert!((3..=5).contains(&lab.asked()), "{}", lab.asked());
    lab.broken(false);
    pass(60).await;
    assert!(lab.cache.provide().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn refused_ones_are_dropped_once_for_all_who_were_refused() {
    let lab = Lab::new(3600);
    let old = lab.got().await;
    pass(10).await;
    for _ in 0..20 {
        lab.cache.refused(&old);
        assert_eq!(lab.name().await, "STS.2");
    }
    assert_eq!(lab.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn new_ones_that_are_refused_at_once_are_not_replaced_again_and_again() {
    let lab = Lab::new(3600);
    for _ in 0..50 {
        let refused = lab.got().await;
        lab.cache.refused(&refused);
    }
    assert_eq!(lab.asked(), 1);
    pass(6).await;
    lab.cache.refused(&lab.got().await);
    lab.got().await;
    assert_eq!(lab.asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_still_has_the_same_ones_is_asked_again_later() {
    let lab = Lab::of(600, true);
    lab.got().await;
    pass(420).await;
    for _ in 0..100 {
        lab.got().await;
        pass(1).await;
    }
    assert!((3..=10).contains(&lab.asked()), "{}", lab.asked());
}

#[tokio::test(start_paused = true)]
async fn credentials_that_come_expired_are_an_error_that_names_the_clock() {
    let lab = Lab::new(0);
    let error = lab.cache.provide().await.unwrap_err();
    assert!(
        error
            .to_string()
            .contains("compare the clock of this machine"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn credentials_that_come_at_their_end_begin_no_endless_renewal() {
    let lab = Lab::new(1);
    assert!(lab.cache.provide().await.is_err());
    assert_eq!(lab.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_hangs_is_given_up() {
    let clock = TokioClock::starting_at(Timestamp::UNIX_EPOCH);
    #[derive(Debug)]
    struct Hangs;
    #[async_trait]
    impl Provide for Hangs {
        async fn provide(&self) -> Result<Credentials, CredentialError> {
            std::future::pending().await
        }
    }
    let cache = Cache::new(Arc::new(Hangs), Arc::new(clock));
    let error = cache.provide().await.unwrap_err();
    assert!(error.is_passing(), "{error}");
}
