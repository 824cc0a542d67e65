//! The data types of the API: IDs, sizes, and described resources.

pub mod category;
pub mod disk;
pub mod health;
pub mod id;
pub mod instance;
pub(crate) mod read;
pub mod size;
pub mod snapshot;
pub mod snapshot_group;
pub mod stock;
pub mod tag;
pub mod task;
pub mod token;
mod word;

pub use category::{Category, PerformanceLevel, UnknownLevel};
pub use disk::{Disk, DiskKind, DiskStatus, Serial};
pub use health::{DiskHealth, HealthEvent};
pub use id::{DiskId, InstanceId, InvalidId, RegionId, SnapshotGroupId, SnapshotId, TaskId, ZoneId};
pub use instance::{Instance, InstanceStatus, InstanceType};
pub use size::{Bytes, Gib};
pub use snapshot::{Snapshot, SnapshotStatus};
pub use snapshot_group::{GroupMember, SnapshotGroup};
pub use stock::{Stock, ZoneStock};
pub use tag::Tags;
pub use task::{Task, TaskStatus};
pub use token::ClientToken;
