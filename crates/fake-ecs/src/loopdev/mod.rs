//! Loop devices as the fake cloud's disks (`--back-with loop`). Requires root.
//!
//! ```text
//! DIR/disks/SERIAL.img            the disk: a sparse file
//! DIR/snapshots/SNAPSHOT.img      the snapshot: a sparse copy
//! DIR/nodes/INSTANCE/SERIAL       while attached: a link to /dev/loopN, backed by the disk's file
//! DIR/.fake-cloud                 marker of a directory that a fake cloud may clear
//! ```
//!
//! A snapshot contains the data that has reached the disk: as in the real cloud, data that the
//! guest has not synced is not in it.

mod command;
mod device;
mod dir;
mod work;

pub use command::{CommandError, RunCommand, SystemCommands};
pub use dir::LoopError;
pub(crate) use work::{LoopDevices, Progress};
