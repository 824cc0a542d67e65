//! Volumes that are created, attached, detached and deleted, with one shared poller.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::Instant;

use diskplugin::base::Deadline;
use ecs::rate_limit::{Priority, RateLimiter};
use ecs::retry::run;

use crate::rate_limit::server::{Config, Server};

const PARALLEL: usize = 50;

/// Figures of a run.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) seconds: f64,
    pub(crate) throttled: usize,
    pub(crate) calls: usize,
    pub(crate) by_action: BTreeMap<&'static str, (usize, usize)>,
}

#[derive(Debug)]
struct World {
    server: Arc<Server>,
    /// None: a client that ignores throttling.
    limiter: Option<RateLimiter>,
    waiting: Mutex<Vec<(Instant, oneshot::Sender<()>)>>,
    work: tokio::sync::Notify,
}

impl World {
    async fn call(&self, action: &'static str, class: Priority) {
        let deadline = Deadline::after(Duration::from_secs(600));
        let outcome = match &self.limiter {
            Some(limiter) => {
                let attempt = || limiter.run(action, class, deadline, || self.server.call(action));
                run(action, deadline, attempt).await
            }
            None => loop {
                if self.server.call(action).await.is_ok() {
                    break Ok(());
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            },
        };
        outcome.unwrap();
    }

    /// Waits until a poll shows that an operation of this length has ended.
    async fn wait(&self, delay: Duration) {
        let (sender, receiver) = oneshot::channel();
        let end = Instant::now() + delay;
        self.waiting.lock().unwrap().push((end, sender));
        self.work.notify_one();
        receiver.await.unwrap();
    }

    async fn poll(&self) {
        loop {
            let next = {
                let waiting = self.waiting.lock().unwrap();
                waiting.iter().map(|(end, _)| *end).min()
            };
            let Some(next) = next else {
                self.work.notified().await;
                continue;
            };
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = self.work.notified() => continue,
            }
            if let Some(limiter) = &self.limiter {
                let deadline = Deadline::after(Duration::from_secs(600));
                limiter.ready("DescribeDisks", Priority::Poll, deadline).await;
            }
            let now = Instant::now();
            let ended: Vec<_> = {
                let mut waiting = self.waiting.lock().unwrap();
                waiting.extract_if(.., |(end, _)| *end <= now).collect()
            };
            self.call("DescribeDisks", Priority::Poll).await;
            for (_, sender) in ended {
                let _ = sender.send(());
            }
            tokio::time::sleep(Duration::from_millis(self.server.config.poll_gap_ms)).await;
        }
    }

    async fn live(&self) {
        self.call("CreateDisk", Priority::Write).await;
        self.wait(Duration::from_millis(500)).await;
        self.call("AttachDisk", Priority::Attach).await;
        self.wait(Duration::from_secs(2)).await;
        self.call("DetachDisk", Priority::Detach).await;
        self.wait(Duration::from_secs(2)).await;
        self.call("DeleteDisk", Priority::Write).await;
    }
}

/// Runs so many volumes, 50 in parallel, against the server.
pub(crate) async fn volumes(name: &str, count: usize, config: Config) -> Report {
    pipeline(name, count, Server::new(config), true).await
}

pub(crate) async fn pipeline(name: &str, count: usize, server: Arc<Server>, is_limited: bool) -> Report {
    let limiter = is_limited.then(|| RateLimiter::new(server.clock()));
    let world = Arc::new(World {
        server: Arc::clone(&server),
        limiter,
        waiting: Mutex::default(),
        work: tokio::sync::Notify::new(),
    });
    let begun = Instant::now();
    let slots = Arc::new(Semaphore::new(PARALLEL));
    let poller = Arc::clone(&world);
    let (mut polling, mut lives) = (JoinSet::new(), JoinSet::new());
    polling.spawn(async move { poller.poll().await });
    for _ in 0..count {
        let (world, slots) = (Arc::clone(&world), Arc::clone(&slots));
        lives.spawn(async move {
            let _slot = slots.acquire().await.unwrap();
            world.live().await;
        });
    }
    lives.join_all().await;
    polling.shutdown().await;
    let mut by_action = BTreeMap::<_, (usize, usize)>::new();
    for entry in server.log() {
        let counts = by_action.entry(entry.action).or_default();
        counts.0 += 1;
        counts.1 += usize::from(entry.throttled);
    }
    let report = Report {
        seconds: begun.elapsed().as_secs_f64(),
        throttled: server.throttled(),
        calls: server.log().len(),
        by_action,
    };
    println!(
        "{name}: {count} volumes in {:.1} s, {} calls, {} throttled {}",
        report.seconds,
        report.calls,
        report.throttled,
        {
            let each = report.by_action.iter();
            let each = each.map(|(action, (calls, bad))| format!("{} {calls}/{bad}", &action[..3]));
            each.collect::<Vec<_>>().join(", ")
        }
    );
    report
}
