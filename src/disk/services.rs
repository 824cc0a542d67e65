//! The services, wired to one cloud.

use std::sync::Arc;

use super::attach::Attacher;
use super::inventory::{InstanceTypeCatalog, Inventory};
use super::journal::Journal;
use super::modify::Modifier;
use super::ownership::Owner;
use super::provision::Provisioner;
use super::resize::Resizer;
use super::snapshot::Snapshotter;
use crate::base::Tasks;
use crate::cloud::Ecs;
use crate::cloud::view::{PollSettings, Poller};
use crate::model::ClusterId;

/// The services of one cluster in one region, each with only its own state.
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
    /// Wires the services to this cloud. What they create carries the cluster's tag, and nothing
    /// without it is ever deleted.
    pub fn new(
        ecs: Arc<dyn Ecs>,
        cluster: ClusterId,
        tasks: &Tasks,
        settings: PollSettings,
    ) -> Self {
        let owner = Owner::new(cluster);
        let journal = Arc::new(Journal::default());
        let disks = Arc::new(Poller::disks(&ecs, tasks.clone(), settings));
        let snapshots = Arc::new(Poller::snapshots(&ecs, tasks.clone(), settings));
        let groups = Poller::groups(&ecs, tasks.clone(), settings);
        let instances = Poller::instances(&ecs, tasks.clone(), settings);
        let snapshotter = Arc::new(Snapshotter::new(
            Arc::clone(&ecs),
            Arc::clone(&disks),
            Arc::clone(&snapshots),
            groups,
            owner.clone(),
            Arc::clone(&journal),
            tasks,
        ));
        Self {
            provisioner: Provisioner::new(
                Arc::clone(&ecs),
                Arc::clone(&disks),
                Arc::clone(&snapshotter),
                owner.clone(),
                Arc::clone(&journal),
                tasks.clone(),
            ),
            attacher: Attacher::new(
                Arc::clone(&ecs),
                Arc::clone(&disks),
                instances,
                Arc::clone(&journal),
            ),
            snapshotter,
            resizer: Resizer::new(Arc::clone(&ecs), Arc::clone(&disks)),
            modifier: Modifier::new(
                Arc::clone(&ecs),
                Arc::clone(&disks),
                Poller::tasks(&ecs, tasks.clone(), patient(settings)),
                Arc::clone(&journal),
            ),
            inventory: Inventory::new(
                Arc::clone(&ecs),
                disks,
                Poller::health(&ecs, tasks.clone(), settings),
                snapshots,
                owner,
                journal,
            ),
            instance_types: InstanceTypeCatalog::new(ecs),
        }
    }
}

/// For what takes minutes to hours.
fn patient(settings: PollSettings) -> PollSettings {
    PollSettings {
        shortest: settings.shortest * 15,
        longest: settings.longest * 5,
        ..settings
    }
}
