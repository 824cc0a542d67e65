//! Types without I/O: IDs, sizes, disks, snapshots, instances, filesystem parameters, failures.

pub mod change;
mod cluster_id;
pub mod context;
pub mod driver;
pub mod failure;
pub mod filesystem;
pub mod health;
pub mod instance_types;
pub mod mount_options;
pub mod performance;
pub mod quantity;
mod size_range;
pub mod tag;
pub mod topology;
pub mod tuning;

pub use change::Change;
pub use cluster_id::ClusterId;
pub use driver::DriverName;
pub use ecs::model::{
    Bytes, Category, ClientToken, Disk, DiskHealth, DiskId, DiskKind, DiskStatus, Gib, GroupMember, HealthEvent,
    Instance, InstanceId, InstanceStatus, InstanceType, InvalidId, PerformanceLevel, RegionId, Serial, Snapshot,
    SnapshotGroup, SnapshotGroupId, SnapshotId, SnapshotStatus, Stock, Tags, Task, TaskId, TaskStatus, UnknownLevel,
    ZoneId, ZoneStock, category,
};
pub use failure::{Failure, FailureKind};
pub use filesystem::{Filesystem, UnknownFilesystem};
pub use mount_options::{InvalidMountFlag, MountFlags};
pub use performance::{Performance, Throughput};
pub use quantity::InvalidQuantity;
pub use size_range::SizeRange;
pub use tuning::{BlockSettings, Fsck, InvalidTuning, Tuning};
