//! Detaches that hang occupy few workers of csi-attacher.

use tokio::sync::Semaphore;

use crate::verbs::kit::*;
use crate::verbs::overdue::{TIMEOUT, timed};

/// Workers of csi-attacher.
const WORKERS: usize = 100;

/// The sidecar: a fixed number of workers, and each disk again after a growing pause.
#[derive(Clone)]
struct Attacher {
    disks: Arc<DiskServices>,
    workers: Arc<Semaphore>,
}

impl Attacher {
    fn new(setup: &Setup) -> Self {
        Self {
            disks: Arc::clone(&setup.disks),
            workers: Arc::new(Semaphore::new(WORKERS)),
        }
    }

    async fn retried<T, F>(&self, call: impl Fn() -> F) -> T
    where
        F: Future<Output = Result<T, Error>>,
    {
        let mut pause = Duration::from_secs(1);
        loop {
            let worker = self.workers.acquire().await.unwrap();
            let outcome = call().await;
            drop(worker);
            if let Ok(done) = outcome {
                return done;
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(300));
        }
    }

    async fn attach(&self, disk: &DiskId, node: &InstanceId) {
        let attacher = &self.disks.attacher;
        self.retried(|| attacher.attach(seconds(TIMEOUT), disk, node)).await;
    }

    async fn detach(&self, disk: &DiskId, node: &InstanceId) {
        let detacher = &self.disks.detacher;
        self.retried(|| detacher.detach(seconds(TIMEOUT), disk, node)).await;
    }
}

/// How the detaches of a dead node hang.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hang {
    /// One is accepted, and the others are rejected.
    Serial,
    /// Up to five are accepted at the same time.
    Tagged,
    /// All are rejected because the instance neither runs nor is stopped.
    Stopping,
}

#[tokio::test(start_paused = true)]
async fn hanging_detaches_of_two_dead_nodes_do_not_delay_attaches_to_other_nodes() {
    for hang in [Hang::Serial, Hang::Tagged, Hang::Stopping] {
        let flags = ["--attach-delay=1s", "--detach-delay=1s"];
        let setup = Setup::with_nodes_of("ecs.g7se.16xlarge", 12, &flags);
        let mut dead = Vec::new();
        for number in 0..110 {
            let disk = setup.disk(&format!("dead-{number}")).await;
            let node = node(number % 2);
            setup.attach(&disk, &node).await;
            dead.push((disk, node));
        }
        sleep(10).await;
        for number in 0..2 {
            match hang {
                Hang::Serial => {}
                Hang::Tagged => {
                    let key = "supportConcurrencyDetach";
                    assert!(setup.cloud.tag_instance(node(number), key, "true"));
                }
                Hang::Stopping => {
                    setup.configure(&json!({"delays": {"power": "24h"}}));
                    setup.cloud.set_instance_power(node(number), false);
                }
            }
        }
        setup.configure(&json!({"delays": {"detach": "24h"}}));
        setup.cloud.clear_calls();
        let attacher = Attacher::new(&setup);
        let mut detaches = JoinSet::new();
        for (disk, node) in dead.clone() {
            let attacher = attacher.clone();
            detaches.spawn(async move { attacher.detach(&disk, &node).await });
        }
        // The operations become overdue.
        sleep(30).await;
        for number in 2..12 {
            let disk = setup.disk(&format!("healthy-{number}")).await;
            let ((), took) = timed(attacher.attach(&disk, &node(number))).await;
            assert!(took <= Duration::from_secs(3), "{hang:?} {number}: {took:?}");
            sleep(number as u64 * 7).await;
        }
        let busy = WORKERS - attacher.workers.available_permits();
        assert!(busy <= 10, "{hang:?}: {busy} workers wait");
        let orders = setup.calls("DetachDisk");
        assert!(orders <= 400, "{hang:?}: {orders}");
        assert!(detaches.try_join_next().is_none());
    }
}
