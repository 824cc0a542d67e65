//! Services for disks and snapshots: what can be done with them, whatever state they are found in.
//!
//! Each operation is repeatable. It acts first and reads only when the cloud refuses; it answers when
//! the requested state is observed; it never takes, deletes or undoes what another call made.

use std::sync::Arc;

use crate::base::Tasks;
use crate::cloud::Ecs;
use crate::cloud::view::{PollSettings, Poller};
use crate::model::ClusterId;

mod attach;
mod attempts;
mod back_off;
mod created;
mod error;
mod inventory;
mod journal;
mod modify;
mod ownership;
mod ownership_listing;
mod pauses;
mod provision;
mod read;
mod resize;
mod snapshot;
mod stale_read;
mod tag_index;

pub use crate::model::Meaning;
pub use attach::{Attacher, Incompatible, Publish, Share};
pub use error::Error;
pub use inventory::{
    Ailment, Cursor, Ill, InstanceTypeCatalog, InvalidCursor, Inventory, Partly, Severity, ailments,
};
pub use modify::Modifier;
pub use provision::{NewDisk, Place, Provisioner, place};
pub use resize::Resizer;
pub use snapshot::{Group, NewGroup, NewSnapshot, Purpose, Snapshotter};

pub type Result<T> = std::result::Result<T, Error>;

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
        let owner = ownership::Owner::new(cluster);
        let journal = Arc::new(journal::Journal::default());
        let disks = Arc::new(Poller::disks(Arc::clone(&ecs), tasks.clone(), settings));
        let snapshots = Arc::new(Poller::snapshots(Arc::clone(&ecs), tasks.clone(), settings));
        let groups = Poller::groups(Arc::clone(&ecs), tasks.clone(), settings);
        let instances = Poller::instances(Arc::clone(&ecs), tasks.clone(), settings);
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
                Poller::tasks(Arc::clone(&ecs), tasks.clone(), patient(settings)),
                Arc::clone(&journal),
            ),
            inventory: Inventory::new(
                Arc::clone(&ecs),
                disks,
                Poller::health(Arc::clone(&ecs), tasks.clone(), settings),
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
