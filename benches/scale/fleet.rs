//! Volumes are created and attached, so many at a time, and stay. Nodes are tagged for parallel attachments.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use diskplugin::csi::controller::Service;
use diskplugin::disk::READ_LAG;
use tokio::task::JoinSet;

use crate::figures::{Figures, Measurement};
use crate::sidecars::{Claim, Sidecars};
use crate::stage::Stage;
use crate::times::Times;
use crate::{floor, memory, proof};

/// Volumes a node.
pub(crate) const PER_NODE: usize = 20;
/// Volumes in the making at the same time.
const AT_ONCE: usize = 1000;

/// Volumes on the nodes of a cloud, and the controller that made them.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) stage: Stage,
    pub(crate) service: Service,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) times: Times,
}

/// A volume and the node that it is attached to, by its index.
#[derive(Debug, Clone)]
pub(crate) struct Volume {
    pub(crate) claim: Claim,
    pub(crate) id: String,
    pub(crate) node: Option<usize>,
}

/// A fleet of so many volumes, and what it took.
pub(crate) async fn build(volumes: usize) -> (Fleet, Figures) {
    let stage = Stage::new(volumes.div_ceil(PER_NODE), &["--parallel-attach"]);
    let (service, times) = (stage.start(), Times::default());
    let mut fleet = Fleet {
        stage,
        service,
        volumes: Vec::new(),
        times,
    };
    // Rows that a new process reads earlier may be older than a deletion by the previous one, and are read again.
    tokio::time::sleep(READ_LAG).await;
    let measurement = Measurement::begin(&fleet.stage, &fleet.times);
    let nodes = fleet.stage.nodes.len();
    let claims = (0..volumes).map(|n| (fleet.claim(n, n % nodes), n % nodes));
    let sidecars = fleet.sidecars();
    let make = move |(claim, node): (Claim, (usize, String))| {
        let sidecars = sidecars.clone();
        async move {
            let id = sidecars.create(&claim).await;
            sidecars.publish(&id, &node.1).await;
            let node = Some(node.0);
            Volume { claim, id, node }
        }
    };
    let claims = claims.map(|(claim, node)| (claim, (node, fleet.stage.nodes[node].0.clone())));
    let claims: Vec<_> = claims.collect();
    fleet.volumes = each(claims, AT_ONCE, make).await;
    let mut figures = measurement.end(&fleet.stage, &fleet.times, |rpc| floor::of(rpc, 1));
    figures.volumes = volumes;
    figures.scenario = format!("fleet-{volumes}");
    figures.about = format!("create and attach, {AT_ONCE} at a time");
    figures.idle_mib = Some(fleet.restart().await);
    fleet.conclude(&mut figures).await;
    (fleet, figures)
}

impl Fleet {
    pub(crate) fn sidecars(&self) -> Sidecars {
        Sidecars {
            service: self.service.clone(),
            times: self.times.clone(),
        }
    }

    /// The claim for a volume of this number with a pod on this node. Every tenth may move between zones.
    pub(crate) fn claim(&self, number: usize, node: usize) -> Claim {
        let is_regional = number % 10 == 9;
        Claim {
            name: format!("pvc-{number}"),
            category: if is_regional {
                "cloud_regional_disk_auto"
            } else {
                "cloud_essd"
            },
            zone: self.stage.nodes[node].1.clone(),
        }
    }

    /// Replaces the controller by a new process. Returns what the old one held, in MiB.
    pub(crate) async fn restart(&mut self) -> f64 {
        let service = self.stage.start();
        let with = memory::live();
        drop(std::mem::replace(&mut self.service, service));
        // Tasks end when they run next.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        memory::mib(with, memory::live())
    }

    /// Completes the figures, and compares the cloud with what callers were told.
    pub(crate) async fn conclude(&self, figures: &mut Figures) {
        figures.fleet = self.volumes.len();
        figures.wrong = proof::compare(self).await;
    }
}

/// Handles each of the items, so many at a time.
pub(crate) async fn each<T, O, F>(
    items: Vec<T>,
    at_once: usize,
    handle: impl Fn(T) -> F + Clone + Send + 'static,
) -> Vec<O>
where
    T: Send + 'static,
    O: Send + 'static,
    F: Future<Output = O> + Send,
{
    let items = Arc::new(Mutex::new(VecDeque::from(items)));
    let mut workers = JoinSet::new();
    for _ in 0..at_once {
        let (items, handle) = (Arc::clone(&items), handle.clone());
        workers.spawn(async move {
            let next = || {
                let mut items = items.lock().unwrap_or_else(PoisonError::into_inner);
                items.pop_front()
            };
            let mut done = Vec::new();
            while let Some(item) = next() {
                done.push(handle(item).await);
            }
            done
        });
    }
    workers.join_all().await.into_iter().flatten().collect()
}
