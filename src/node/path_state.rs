//! The directory entry and the mount at a path.

use std::path::PathBuf;

use crate::linux::{Entry, Mount};

#[derive(Debug, Clone)]
pub(super) struct PathState {
    /// The path as in the mount table.
    pub(super) path: PathBuf,
    /// The directory entry. Under a mount that does not respond, it is reported as missing.
    pub(super) entry: Entry,
    pub(super) mount: Option<Mount>,
    /// Whether reading the path fails with `EIO`.
    pub(super) dead: bool,
}

impl PathState {
    /// Whether the mounted filesystem has shut down, or all I/O of its device fails.
    pub(super) fn is_shut_down(&self) -> bool {
        self.dead || self.mount.as_ref().is_some_and(Mount::shows_shutdown)
    }
}
