//! The verbs: what can be done with disks and snapshots, whatever state they are found in.
//!
//! Each verb is repeatable. It acts first and looks only when the cloud refuses; it answers when the
//! state that was asked for is seen; it never takes, deletes or undoes what another call made.

use std::sync::Arc;

use crate::base::Tasks;
use crate::cloud::Ecs;
use crate::cloud::poll::{Pace, Watch};
use crate::model::{ClusterId, Disk, DiskHealth, DiskId, Instance, InstanceId, SnapshotGroup};
use crate::model::{Snapshot, SnapshotGroupId, SnapshotId, Task, TaskId};

mod apart;
mod arrive;
mod attach;
mod buy;
mod capacity;
mod changed;
mod clone;
mod compare;
mod create;
mod delete;
mod detach;
mod discard;
mod error;
mod explain;
mod find;
mod fresh;
mod group;
mod group_delete;
mod health;
mod label;
mod left;
mod list;
mod meaning;
mod missing;
mod modify;
mod name;
mod patience;
mod place;
mod publish;
mod recent;
mod resize;
mod slots;
mod snapshot;
mod trail;
mod turn;
pub mod types;
mod unfit;
mod wanted;

pub use error::Error;
pub use group::{Group, NewGroup};
pub use health::{Ailment, Ill, Severity, ailments};
pub use list::{Cursor, InvalidCursor, Listed};
pub use meaning::Meaning;
pub use name::of_cloud as failure_of;
pub use publish::{Publish, Share};
pub use snapshot::{NewSnapshot, Purpose};
pub use unfit::Unfit;
pub use wanted::{NewDisk, Place};

/// The result of a verb.
pub type Result<T> = std::result::Result<T, Error>;

/// The disks and snapshots of one cluster in one region.
#[derive(Debug)]
pub struct Disks {
    ecs: Arc<dyn Ecs>,
    disks: Watch<DiskId, Disk>,
    snapshots: Watch<SnapshotId, Snapshot>,
    tasks: Watch<TaskId, Task>,
    healths: Watch<DiskId, DiskHealth>,
    instances: Watch<InstanceId, Instance>,
    groups: Watch<SnapshotGroupId, SnapshotGroup>,
    wide: list::Wide,
    sweep: clone::Sweep,
    slots: slots::Slots,
    trails: trail::Trails,
    market: place::Market,
    fresh: FreshNames,
    recent: recent::Recents,
    left: left::Left,
    changed: changed::Changed,
    came: left::Came,
    cluster: ClusterId,
}

/// For how long which names have been tried.
#[derive(Debug, Default)]
struct FreshNames {
    disks: fresh::Fresh,
    snapshots: fresh::Fresh,
    groups: fresh::Fresh,
}

impl Disks {
    /// The verbs over this cloud. What they create carries the cluster's tag, and nothing without it
    /// is ever deleted.
    #[must_use]
    pub fn new(ecs: Arc<dyn Ecs>, cluster: ClusterId, tasks: &Tasks, pace: Pace) -> Self {
        Self {
            disks: Watch::disks(Arc::clone(&ecs), tasks.clone(), pace),
            snapshots: Watch::snapshots(Arc::clone(&ecs), tasks.clone(), pace),
            tasks: Watch::tasks(Arc::clone(&ecs), tasks.clone(), patient(pace)),
            healths: Watch::health(Arc::clone(&ecs), tasks.clone(), pace),
            instances: Watch::instances(Arc::clone(&ecs), tasks.clone(), pace),
            groups: Watch::groups(Arc::clone(&ecs), tasks.clone(), pace),
            wide: list::Wide::default(),
            sweep: clone::Sweep::default(),
            slots: slots::Slots::default(),
            trails: trail::Trails::default(),
            market: place::Market::default(),
            fresh: FreshNames::default(),
            recent: recent::Recents::default(),
            left: left::Left::default(),
            changed: changed::Changed::default(),
            came: left::Came::default(),
            ecs,
            cluster,
        }
    }
}

/// For what takes minutes to hours.
fn patient(pace: Pace) -> Pace {
    Pace {
        tick: pace.tick * 6,
        brisk: pace.tick * 6,
        ..pace
    }
}
