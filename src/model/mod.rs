//! The nouns of the field: ids, sizes, disks, snapshots, instances. Pure values, no I/O, no time.

pub mod category;
pub mod change;
pub mod context;
pub mod disk;
pub mod driver;
pub mod failure;
pub mod filesystem;
pub mod health;
pub mod id;
pub mod instance;
pub mod instance_types;
pub mod mount_flags;
pub mod performance;
pub mod quantity;
pub mod size;
pub mod snapshot;
pub mod snapshot_group;
pub mod stock;
pub mod tag;
pub mod task;
pub mod token;
pub mod topology;
pub mod tuning;
mod word;

pub use category::{Category, PerformanceLevel, UnknownLevel};
pub use change::Change;
pub use disk::{Disk, DiskKind, DiskStatus, Serial};
pub use driver::{DriverName, InvalidDriverName};
pub use failure::{Failure, FailureKind};
pub use filesystem::{Filesystem, UnknownFilesystem};
pub use health::{DiskHealth, HealthEvent};
pub use id::{
    ClusterId, DiskId, InstanceId, InvalidId, RegionId, SnapshotGroupId, SnapshotId, TaskId, ZoneId,
};
pub use instance::{Instance, InstanceStatus, InstanceType};
pub use mount_flags::{InvalidMountFlag, MountFlags};
pub use performance::{Performance, Throughput};
pub use quantity::InvalidQuantity;
pub use size::{Bytes, Gib, SizeRange};
pub use snapshot::{Snapshot, SnapshotStatus};
pub use snapshot_group::{GroupMember, SnapshotGroup};
pub use stock::{Stock, ZoneStock};
pub use tag::Tags;
pub use task::{Task, TaskStatus};
pub use token::ClientToken;
pub use tuning::{BlockSettings, Fsck, InvalidTuning, Tuning};
