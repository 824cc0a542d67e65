//! Services for disks and snapshots.
//!
//! Each operation is idempotent. It acts first and reads only if the cloud rejects the request; it returns when the
//! requested state is observed; it never supported over, deletes or reverts the result of another call.

mod attach;
mod attempts;
mod create_once;
mod created;
mod dependencies;
mod error;
mod inventory;
mod journal;
mod modify;
mod owned;
mod ownership;
mod ownership_listing;
mod pauses;
mod provision;
mod read;
mod resize;
mod services;
mod snapshot;
mod stale_read;

pub use crate::model::FailureKind;
pub use attach::{Attacher, Publish, Share};
pub use error::{Error, Result};
pub use inventory::{
    Cursor, HealthIssue, InstanceTypeCatalog, InvalidCursor, Inventory, Partial, Severity,
    UnhealthyVolume, health_issues,
};
pub use modify::Modifier;
pub use provision::{NewDisk, Place, Provisioner, place};
pub use resize::Resizer;
pub use services::DiskServices;
pub use snapshot::{Group, NewGroup, NewSnapshot, Purpose, Snapshotter};
