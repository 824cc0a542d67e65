//! Volumes on the nodes of a cloud, and the controller that created them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use diskplugin::csi::controller::Service;
use tokio::task::JoinSet;

use super::memory;
use super::sidecars::{Claim, Sidecars};
use super::stage::Stage;
use super::times::Times;

#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) stage: Stage,
    pub(crate) service: Service,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) times: Times,
}

/// The category of disks that can move between zones.
pub(crate) const REGIONAL: &str = "cloud_regional_disk_auto";

/// A volume and the index of its node.
#[derive(Debug, Clone)]
pub(crate) struct Volume {
    pub(crate) claim: Claim,
    pub(crate) id: String,
    pub(crate) node: Option<usize>,
}

impl Fleet {
    /// A cloud with nodes and a controller, without volumes.
    pub(crate) fn new(nodes: usize, flags: &[&str]) -> Self {
        let stage = Stage::new(nodes, flags);
        Self {
            service: stage.start(),
            stage,
            volumes: Vec::new(),
            times: Times::default(),
        }
    }

    pub(crate) fn sidecars(&self) -> Sidecars {
        Sidecars {
            service: self.service.clone(),
            times: self.times.clone(),
        }
    }

    /// The claim of the volume with this number, for a pod on this node. Every tenth disk is regional.
    pub(crate) fn claim(&self, number: usize, node: usize) -> Claim {
        let is_regional = number % 10 == 9;
        Claim {
            name: format!("pvc-{number}"),
            category: if is_regional { REGIONAL } else { "cloud_essd" },
            zone: self.stage.nodes[node].1.clone(),
        }
    }

    /// Replaces the controller by a new process. Returns the memory of the old one in MiB.
    pub(crate) async fn restart(&mut self) -> f64 {
        let service = self.stage.start();
        let with = memory::live();
        drop(std::mem::replace(&mut self.service, service));
        // Tasks end when they run next.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        memory::mib(with, memory::live())
    }
}

/// Handles the items with this parallelism.
pub(crate) async fn each<T, O, F>(
    items: Vec<T>,
    parallel: usize,
    handle: impl Fn(T) -> F + Clone + Send + 'static,
) -> Vec<O>
where
    T: Send + 'static,
    O: Send + 'static,
    F: Future<Output = O> + Send,
{
    let items = Arc::new(Mutex::new(VecDeque::from(items)));
    let mut workers = JoinSet::new();
    for _ in 0..parallel {
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
