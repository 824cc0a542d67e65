//! Services for disks and snapshots.
//!
//! Each operation is idempotent. It sends the request first and reads only if the cloud rejects it, returns once the
//! requested state is observed, and never adopts, deletes or reverts the result of another call.

mod adopt;
mod attach;
mod backoff;
mod dependencies;
mod error;
mod evidence;
mod inventory;
mod journal;
mod modify;
mod observed;
mod owned;
mod ownership;
mod permissions;
mod provision;
mod read;
mod refusals;
mod resize;
mod services;
mod snapshot;
mod stale_read;

pub use crate::model::FailureKind;
pub use adopt::{adopt, import_notes, import_problems};
pub use attach::{Attacher, Detacher, NodeAccess, PublishRequest, Publisher, QueueReport};
pub use error::{Error, Result};
pub use evidence::READ_LAG;
pub use inventory::{
    Cursor, InstanceStates, InstanceTypeCatalog, Instances, InvalidCursor, Inventory, UnhealthyVolume, health_issues,
};
pub use modify::{Modifier, check_change};
pub use permissions::{Access, ActionAccess, PermissionProbe, Permissions};
pub use provision::{AllowedZone, NewDisk, Provisioner, candidates};
pub use resize::Resizer;
pub use services::DiskServices;
pub use snapshot::{GroupSnapshot, NewGroupSnapshot, NewSnapshot, SnapshotPurpose, Snapshotter};
