//! Loop devices behind the fake cloud's disks (`--back-with loop`), for which root is needed.
//!
//! ```text
//! DIR/disks/SERIAL.img            the disk: a sparse file
//! DIR/snapshots/SNAPSHOT.img      the snapshot: a sparse copy
//! DIR/nodes/INSTANCE/SERIAL       attached: a link to /dev/loopN, which is backed by the disk's file
//! DIR/.fake-cloud                 the mark of a directory that a fake cloud may clear
//! ```
//!
//! A snapshot holds what has reached the disk: what a guest has not synced is not in it, as in the
//! real cloud.

mod device;
mod dir;
mod work;

pub use dir::LoopError;
pub(crate) use work::{Loops, Progress};
