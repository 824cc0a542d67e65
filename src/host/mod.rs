//! Linux, as the node needs it: commands, block devices, mounts, filesystems.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use async_trait::async_trait;

use crate::base::Deadline;
use crate::model::{Bytes, Filesystem};

pub mod blockdev;
pub mod device;
pub mod entry;
pub mod error;
pub mod exec;
pub mod filesystem;
pub mod linux;
pub mod mount;
pub mod mountinfo;
mod samples;
pub mod stats;

#[cfg(test)]
pub(crate) mod fake;

pub use blockdev::Content;
pub use device::{Device, Number};
pub use entry::Entry;
pub use error::{HostError, Result};
pub use exec::{Command, Exec, ExecError, Failure, Output, Processes};
pub use linux::{Linux, Roots};
pub use mount::MountDevice;
pub use mountinfo::Mount;
pub use stats::{Amount, Usage};

/// The machine: what is there, and what changes mounts. Every call returns by its deadline.
#[async_trait]
pub trait Host: Debug + Send + Sync {
    /// All whole block devices.
    async fn devices(&self, deadline: Deadline) -> Result<Vec<Device>>;

    /// What the link of this name in udev's `disk/by-id` points to; none where there is none.
    async fn device_link(&self, deadline: Deadline, name: &str) -> Result<Option<PathBuf>>;

    /// What a symlink points to, as it is written; none where there is no symlink.
    async fn link(&self, deadline: Deadline, path: &Path) -> Result<Option<PathBuf>>;

    /// The mount table, in the kernel's order.
    async fn mounts(&self, deadline: Deadline) -> Result<Vec<Mount>>;

    /// The path as the mount table spells it. Its last part is not followed.
    async fn canonical(&self, deadline: Deadline, path: &Path) -> Result<PathBuf>;

    /// What is at a path, not following a symlink.
    async fn entry(&self, deadline: Deadline, path: &Path) -> Result<Entry>;

    /// Makes a directory, and those above it.
    async fn make_directory(&self, deadline: Deadline, path: &Path) -> Result<()>;

    /// Makes an empty file, and the directories above it.
    async fn make_file(&self, deadline: Deadline, path: &Path) -> Result<()>;

    /// Removes an empty directory or an empty file; one that is not there is fine.
    async fn remove_empty(&self, deadline: Deadline, path: &Path) -> Result<()>;

    /// What a device holds that nobody uses. An unclear answer is an error.
    async fn content(&self, deadline: Deadline, device: &Device) -> Result<Content>;

    /// The size that the superblock on a device states; none where there is no such superblock.
    async fn filesystem_size(
        &self,
        deadline: Deadline,
        device: &Device,
        filesystem: Filesystem,
    ) -> Result<Option<Bytes>>;

    /// Mounts a filesystem, if the node of its device still has the number it was chosen with.
    async fn mount(&self, deadline: Deadline, request: &MountDevice) -> Result<()>;

    /// Shows a directory at another place.
    async fn bind(&self, deadline: Deadline, source: &Path, target: &Path) -> Result<()>;

    /// Shows the node of a device at another place, if it still has the number it was chosen with.
    async fn bind_device(&self, deadline: Deadline, device: &Device, target: &Path) -> Result<()>;

    /// Makes the topmost mount at a path read-only; other mounts of the filesystem stay as they are.
    async fn remount_read_only(&self, deadline: Deadline, target: &Path) -> Result<()>;

    /// Removes the topmost mount at a path.
    async fn unmount(&self, deadline: Deadline, target: &Path) -> Result<()>;

    /// How full the filesystem at a path is.
    async fn usage(&self, deadline: Deadline, path: &Path) -> Result<Usage>;

    /// Whether this process may grow a mounted ext filesystem (`CAP_SYS_RESOURCE`).
    async fn may_grow_mounted_ext(&self, deadline: Deadline) -> Result<bool>;
}
