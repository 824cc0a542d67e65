//! Constructs the disk services.

use std::sync::Arc;

use super::attach::Attacher;
use super::dependencies::Dependencies;
use super::inventory::{InstanceTypeCatalog, Inventory};
use super::modify::Modifier;
use super::ownership::Owner;
use super::provision::Provisioner;
use super::resize::Resizer;
use super::snapshot::Snapshotter;
use crate::base::Tasks;
use crate::cloud::EcsApi;
use crate::cloud::view::Poller;
use crate::model::ClusterId;

/// The services of one cluster in one region. Each has separate state.
#[derive(Debug)]
pub struct DiskServices {
    pub provisioner: Provisioner,
    pub attacher: Attacher,
    pub snapshotter: Arc<Snapshotter>,
    pub resizer: Resizer,
    pub modifier: Modifier,
    pub inventory: Inventory,
    pub instance_types: InstanceTypeCatalog,
}

impl DiskServices {
    /// Created resources carry the cluster's tag, and only resources with it are deleted.
    pub fn new(ecs: Arc<dyn EcsApi>, cluster: ClusterId, tasks: &Tasks) -> Self {
        let shared = Dependencies {
            disks: Arc::new(Poller::disks(&ecs, tasks.clone())),
            snapshots: Arc::new(Poller::snapshots(&ecs, tasks.clone())),
            owner: Owner { cluster },
            journal: Arc::default(),
            tasks: tasks.clone(),
            ecs: Arc::clone(&ecs),
        };
        let groups = Poller::groups(&ecs, tasks.clone());
        let instances = Poller::instances(&ecs, tasks.clone());
        let changes = Poller::tasks(&ecs, tasks.clone());
        let disk_health = Poller::health(&ecs, tasks.clone());
        let snapshotter = Arc::new(Snapshotter::new(&shared, groups));
        Self {
            provisioner: Provisioner::new(&shared, Arc::clone(&snapshotter)),
            attacher: Attacher::new(&shared, instances),
            snapshotter,
            resizer: Resizer::new(&shared),
            modifier: Modifier::new(&shared, changes),
            inventory: Inventory::new(&shared, disk_health),
            instance_types: InstanceTypeCatalog::new(ecs),
        }
    }
}
