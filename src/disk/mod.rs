//! Services for disks and snapshots: what can be done with them, whatever state they are found in.
//!
//! Each operation is repeatable. It acts first and reads only when the cloud refuses; it answers when
//! the requested state is observed; it never takes, deletes or undoes what another call made.

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
    Ailment, Cursor, Ill, InstanceTypeCatalog, InvalidCursor, Inventory, Partly, Severity, ailments,
};
pub use modify::Modifier;
pub use provision::{NewDisk, Place, Provisioner, place};
pub use resize::Resizer;
pub use services::DiskServices;
pub use snapshot::{Group, NewGroup, NewSnapshot, Purpose, Snapshotter};
