//! Tests of the cache in virtual time.

use std::sync::atomic::{AtomicU32, Ordering};

use fake_ecs::TokioClock;
use secrecy::ExposeSecret;

use super::*;

const START: &str = "2026-01-15T08:00:00Z";

/// Issues credentials with a lifetime after a latency; fails while broken.
#[derive(Debug)]
struct Issuer {
    clock: TokioClock,
    lifetime: Duration,
    latency: Duration,
    requests: AtomicU32,
    broken: Mutex<bool>,
    /// Always the same credentials, as the metadata service until its next renewal.
    same: bool,
}

#[async_trait]
impl CredentialProvider for Issuer {
    async fn provide(&self) -> Result<Credentials, CredentialError> {
        let count = self.requests.fetch_add(1, Ordering::SeqCst) + 1;
        tokio::time::sleep(self.latency).await;
        if *self.broken.lock().unwrap() {
            return Err(CredentialError::TimedOut(self.latency));
        }
        let name = if self.same { 1 } else { count };
        let mut credentials = Credentials::new(format!("STS.{name}"), "s");
        let from = if self.same {
            START.parse().unwrap()
        } else {
            self.clock.now()
        };
        let expires = from.saturating_add(self.lifetime).unwrap();
        credentials.expires = Some(expires);
        Ok(credentials)
    }
}

struct Setup {
    issuer: Arc<Issuer>,
    cache: Arc<Cache>,
}

impl Setup {
    fn new(lifetime: u64) -> Self {
        Self::with(lifetime, false)
    }

    fn with(lifetime: u64, same: bool) -> Self {
        let clock = TokioClock::starting_at(START.parse().unwrap());
        let issuer = Arc::new(Issuer {
            clock,
            lifetime: Duration::from_secs(lifetime),
            latency: Duration::from_millis(100),
            requests: AtomicU32::new(0),
            broken: Mutex::new(false),
            same,
        });
        let cache = Arc::new(Cache::new(Arc::clone(&issuer) as _, Arc::new(clock)));
        Self { issuer, cache }
    }

    fn requests(&self) -> u32 {
        self.issuer.requests.load(Ordering::SeqCst)
    }

    fn set_broken(&self, broken: bool) {
        *self.issuer.broken.lock().unwrap() = broken;
    }

    async fn credentials(&self) -> Credentials {
        self.cache.provide().await.unwrap()
    }

    async fn name(&self) -> String {
        self.credentials().await.access_key_id.expose_secret().to_owned()
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn concurrent_callers_without_credentials_share_one_renewal() {
    let setup = Setup::new(3600);
    let callers = (0..50).map(|_| {
        let cache = Arc::clone(&setup.cache);
        tokio::task::JoinSet::from_iter([async move { cache.provide().await }])
    });
    for mut caller in callers.collect::<Vec<_>>() {
        let found = caller.join_next().await.unwrap().unwrap();
        assert!(found.is_ok());
    }
    assert_eq!(setup.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn cached_credentials_are_renewed_fifteen_minutes_before_their_expiration() {
    let setup = Setup::new(3600);
    setup.credentials().await;
    pass(2690).await;
    assert_eq!((setup.name().await.as_str(), setup.requests()), ("STS.1", 1));
    pass(20).await;
    // The current credentials are still valid: callers do not wait.
    let begun = Instant::now();
    assert_eq!(setup.name().await, "STS.1");
    assert!(begun.elapsed().is_zero());
    pass(1).await;
    assert_eq!((setup.name().await.as_str(), setup.requests()), ("STS.2", 2));
}

#[tokio::test(start_paused = true)]
async fn many_callers_start_a_single_renewal() {
    let setup = Setup::new(60);
    setup.credentials().await;
    pass(45).await;
    for _ in 0..100 {
        assert_eq!(setup.name().await, "STS.1");
    }
    pass(1).await;
    assert_eq!((setup.name().await.as_str(), setup.requests()), ("STS.2", 2));
}

#[tokio::test(start_paused = true)]
async fn canceled_callers_leave_a_single_task() {
    let setup = Setup::new(3600);
    let callers = (0..50).map(|_| {
        let cache = Arc::clone(&setup.cache);
        async move { tokio::time::timeout(Duration::from_millis(10), cache.provide()).await }
    });
    for caller in callers.collect::<tokio::task::JoinSet<_>>().join_all().await {
        assert!(caller.is_err());
    }
    assert_eq!(setup.cache.tasks.running(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_canceled_caller_does_not_cancel_the_renewal() {
    let setup = Setup::new(3600);
    let canceled = tokio::time::timeout(Duration::from_millis(10), setup.cache.provide());
    assert!(canceled.await.is_err());
    assert_eq!((setup.name().await.as_str(), setup.requests()), ("STS.1", 1));
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_keeps_valid_credentials_and_is_retried_with_backoff() {
    let setup = Setup::new(3600);
    setup.credentials().await;
    setup.set_broken(true);
    pass(2710).await;
    // 870 s are left; a caller comes every second.
    for _ in 0..860 {
        assert_eq!(setup.name().await, "STS.1");
        pass(1).await;
    }
    assert!((10..=25).contains(&setup.requests()), "{}", setup.requests());
    setup.set_broken(false);
    pass(60).await;
    assert_ne!(setup.name().await, "STS.1");
}

#[tokio::test(start_paused = true)]
async fn without_valid_credentials_a_failing_provider_is_retried_with_backoff() {
    let setup = Setup::new(3600);
    setup.set_broken(true);
    for _ in 0..100 {
        let error = setup.cache.provide().await.unwrap_err();
        assert!(error.is_transient(), "{error}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // 1, 2, 4 … seconds apart.
    assert!((3..=5).contains(&setup.requests()), "{}", setup.requests());
    setup.set_broken(false);
    pass(60).await;
    assert!(setup.cache.provide().await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn rejected_credentials_are_dropped_once() {
    let setup = Setup::new(3600);
    let old = setup.credentials().await;
    pass(10).await;
    for _ in 0..20 {
        setup.cache.invalidate(&old);
        assert_eq!(setup.name().await, "STS.2");
    }
    assert_eq!(setup.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn new_credentials_that_are_rejected_are_not_replaced_immediately() {
    let setup = Setup::new(3600);
    for _ in 0..50 {
        let rejected = setup.credentials().await;
        setup.cache.invalidate(&rejected);
    }
    assert_eq!(setup.requests(), 1);
    pass(6).await;
    setup.cache.invalidate(&setup.credentials().await);
    setup.credentials().await;
    assert_eq!(setup.requests(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_returns_the_same_credentials_is_called_again_later() {
    let setup = Setup::with(600, true);
    setup.credentials().await;
    pass(420).await;
    for _ in 0..100 {
        setup.credentials().await;
        pass(1).await;
    }
    assert!((3..=10).contains(&setup.requests()), "{}", setup.requests());
}

#[tokio::test(start_paused = true)]
async fn expired_new_credentials_are_an_error_that_names_the_clock() {
    let setup = Setup::new(0);
    let error = setup.cache.provide().await.unwrap_err();
    assert!(error.to_string().contains("check the clock of this machine"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn credentials_about_to_expire_do_not_cause_endless_renewals() {
    let setup = Setup::new(1);
    assert!(setup.cache.provide().await.is_err());
    assert_eq!(setup.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_hung_provider_times_out() {
    let clock = TokioClock::starting_at(Timestamp::UNIX_EPOCH);
    #[derive(Debug)]
    struct Hung;
    #[async_trait]
    impl CredentialProvider for Hung {
        async fn provide(&self) -> Result<Credentials, CredentialError> {
            std::future::pending().await
        }
    }
    let cache = Cache::new(Arc::new(Hung), Arc::new(clock));
    let error = cache.provide().await.unwrap_err();
    assert!(error.is_transient(), "{error}");
}
