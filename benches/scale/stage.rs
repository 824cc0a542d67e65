//! A fake cloud in virtual time, and controller processes over it.

use std::collections::BTreeMap;
use std::sync::Arc;

use diskplugin::base::Tasks;
use diskplugin::csi::controller::{DriverLocation, Service};
use diskplugin::disk::DiskServices;
use fake_ecs::Cloud;
use serde_json::Value;

use super::memory_cloud::{client, start};

/// The delays and latencies of every scenario; [`super::floor`] draws from the same distributions.
const FLAGS: [&str; 6] = [
    "--latency=lognormal:60ms,0.6",
    "--create-delay=500ms..1500ms",
    "--attach-delay=2s..4s",
    "--detach-delay=2s..4s",
    "--zones=cn-beijing-a,cn-beijing-b,cn-beijing-c",
    // More than the volumes of a node in any scenario.
    "--disk-quantity=65",
];

/// A cloud with nodes in three zones.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) cloud: Cloud,
    /// IDs and zones, in a fixed order.
    pub(crate) nodes: Vec<(String, String)>,
}

/// The number of calls and of refused calls by action.
pub(crate) type Calls = BTreeMap<String, (u64, u64)>;

impl Stage {
    pub(crate) fn new(nodes: usize, flags: &[&str]) -> Self {
        let count = format!("--nodes={nodes}");
        let flags = FLAGS.iter().chain(flags).copied().chain([count.as_str()]);
        let cloud = start(flags);
        let mut nodes: Vec<_> = cloud.nodes().into_iter().collect();
        nodes.sort_by(|one, other| one.id.cmp(&other.id));
        let nodes = nodes.into_iter();
        let nodes = nodes.map(|node| (node.id.to_string(), node.zone.to_string()));
        Self {
            cloud,
            nodes: nodes.collect(),
        }
    }

    /// A controller after its start, with empty caches.
    pub(crate) fn start(&self) -> Service {
        let tasks = Tasks::default();
        let ecs = Arc::new(client(&self.cloud));
        let cluster = "scale".parse().expect("a valid id");
        let disks = DiskServices::new(ecs, cluster, &tasks);
        let location = DriverLocation {
            region: "cn-beijing".parse().expect("a valid id"),
            zone: None,
        };
        Service::new(Arc::new(disks), location, tasks)
    }

    pub(crate) fn configure(&self, patch: &Value) {
        let configured = self.cloud.configure(patch);
        configured.expect("a valid configuration");
    }

    pub(crate) fn calls(&self) -> Calls {
        let counts = self.cloud.counts().into_iter();
        counts
            .map(|(action, count)| (action, (count.calls, count.refused)))
            .collect()
    }
}
