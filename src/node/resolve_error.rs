//! Why the device of a disk is ambiguous.

use std::path::PathBuf;

use crate::model::Serial;

/// A contradiction that waiting does not resolve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// Several devices have the serial.
    #[error("more than one device has serial {serial}: {devices}")]
    DuplicateSerial { serial: Serial, devices: String },
    /// A link points to another disk.
    #[error("{} points to {device}, which is another disk ({identity}): the link is stale", link.display())]
    StaleLink {
        link: PathBuf,
        device: String,
        identity: String,
    },
}
