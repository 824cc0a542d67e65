use std::sync::Arc;

use ecs::Client;
use ecs::poll::Poller;
use tokio::time::Instant;

use super::attach::{Attacher, Attachments, Detacher, Publisher};
use super::dependencies::Dependencies;
use super::evidence::{Active, Nodes, Rows};
use super::inventory::{InstanceTypeCatalog, Instances, Inventory};
use super::journal::Journal;
use super::modify::Modifier;
use super::owned::OwnedResource;
use super::ownership::Owner;
use super::provision::Provisioner;
use super::resize::Resizer;
use super::snapshot::Snapshotter;
use crate::base::Tasks;
use crate::model::{ClusterId, InstanceId};

/// The services of one cluster in one region. Each has separate state.
#[derive(Debug)]
pub struct DiskServices {
    pub provisioner: Provisioner,
    pub attacher: Attacher,
    pub detacher: Detacher,
    pub publisher: Publisher,
    pub snapshotter: Arc<Snapshotter>,
    pub resizer: Resizer,
    pub modifier: Modifier,
    pub inventory: Inventory,
    pub instances: Instances,
    pub instance_types: InstanceTypeCatalog,
    nodes: Arc<Nodes>,
}

impl DiskServices {
    /// Created resources carry the cluster's tag, and only resources with it are deleted. Call this when the process
    /// becomes the active controller: what other processes requested before is not known to it.
    pub fn new(ecs: Arc<Client>, cluster: ClusterId, tasks: &Tasks) -> Self {
        Self::active_since(Instant::now(), ecs, cluster, tasks)
    }

    /// As [`Self::new`], if no other process has sent requests since an earlier time.
    pub fn active_since(since: Instant, ecs: Arc<Client>, cluster: ClusterId, tasks: &Tasks) -> Self {
        let (owner, active) = (Owner { cluster }, Active { since });
        let nodes = Arc::<Nodes>::default();
        let disks = Poller::disks(&ecs, tasks.clone(), is_canary(&owner, &nodes));
        let snapshots = Poller::snapshots(&ecs, tasks.clone(), is_canary(&owner, &nodes));
        let groups = Poller::groups(&ecs, tasks.clone(), is_canary(&owner, &nodes));
        let disks = Rows::new(&ecs, disks, &owner, active, &nodes, None);
        let groups = Rows::new(&ecs, groups, &owner, active, &nodes, Some(&disks));
        let shared = Dependencies {
            snapshots: Rows::new(&ecs, snapshots, &owner, active, &nodes, Some(&disks)),
            disks,
            journal: Arc::new(Journal::new(active, Arc::clone(&ecs))),
            tasks: tasks.clone(),
            ecs: Arc::clone(&ecs),
            owner,
            nodes,
        };
        let instances = Poller::instances(&ecs, tasks.clone(), |_| false);
        let changes = Poller::tasks(&ecs, tasks.clone(), |_| false);
        let disk_health = Poller::health(&ecs, tasks.clone(), |_| false);
        let snapshotter = Arc::new(Snapshotter::new(&shared, groups));
        let attachments = Arc::new(Attachments::new(&shared, instances));
        Self {
            nodes: Arc::clone(&shared.nodes),
            provisioner: Provisioner::new(&shared, Arc::clone(&snapshotter)),
            attacher: Attacher(Arc::clone(&attachments)),
            detacher: Detacher(Arc::clone(&attachments)),
            publisher: Publisher(attachments),
            snapshotter,
            resizer: Resizer::new(&shared),
            modifier: Modifier::new(&shared, changes),
            inventory: Inventory::new(&shared, disk_health),
            instances: Instances(Arc::clone(&ecs)),
            instance_types: InstanceTypeCatalog::new(ecs),
        }
    }

    /// Records an instance of this cluster. Its system disk must be visible.
    pub fn record_node(&self, node: &InstanceId) {
        self.nodes.record(node);
    }
}

fn is_canary<V: OwnedResource>(owner: &Owner, nodes: &Arc<Nodes>) -> impl Fn(&V) -> bool + Send + Sync + 'static {
    let (owner, nodes) = (owner.clone(), Arc::clone(nodes));
    move |row| V::is_canary(row, &owner, &nodes)
}
