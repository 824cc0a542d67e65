//! Linux, as the node needs it: commands, block devices, mounts, filesystems.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;

use crate::base::Deadline;
use crate::model::{MountFlags, Serial};

mod blocking;
mod btrfs;
pub mod capability;
pub mod content;
pub mod device;
pub mod device_changes;
pub mod device_lock;
pub mod device_sequence;
pub mod entry;
pub mod error;
mod exclusive;
pub mod exec;
pub mod filesystem;
pub mod flush;
pub mod holder;
mod io_progress;
mod listen;
pub mod machine;
pub mod memory;
pub mod mount;
pub mod mountinfo;
pub mod record;
mod samples;
pub mod search;
mod serial;
pub mod standard_error;
mod superblock;
mod sysfs;
mod uevent;
pub mod vitals;
mod walk;
mod wipe;

#[cfg(test)]
pub(crate) mod fake;
#[cfg(fuzzing)]
pub mod fuzzing;

pub(crate) use blocking::MAX_THREADS;
pub use capability::{Capabilities, Capability};
pub use content::Content;
pub use device::{Device, DeviceNumber, Partition, Roots};
pub use device_changes::DeviceChanges;
pub use device_lock::DeviceLock;
pub use device_sequence::{DeviceIncarnation, DeviceSequence};
pub use entry::Entry;
pub use error::{HostError, Result};
pub use exec::{Command, Exec, ExecError, ExecFailure, Output, ProcessExec};
pub use flush::FlushOutcome;
pub use holder::HolderQuery;
pub use io_progress::IoStatistics;
pub use listen::listen;
pub use machine::Linux;
pub use mount::MountRequest;
pub use mountinfo::Mount;
pub use record::Records;
pub use search::{Candidates, Link};
pub use superblock::Superblocks;
pub use vitals::{Amount, Usage, Vitals};

/// Devices, mounts and filesystems of the machine. Every call returns by its deadline.
#[async_trait]
pub trait Host: Debug + Send + Sync {
    /// All whole block devices.
    async fn devices(&self, deadline: Deadline) -> Result<Vec<Device>>;

    /// The whole block device with this name; `None` if it does not exist.
    async fn device(&self, deadline: Deadline, name: &str) -> Result<Option<Device>>;

    /// The devices that may be the disk with this serial. The directory may contain a link named after the serial.
    async fn search(&self, deadline: Deadline, serial: &Serial, directory: Option<&Path>) -> Result<Candidates>;

    /// Subscribes to devices that are added, removed or resized, which are polled if the fake cloud links them in a
    /// directory.
    fn changes(&self, polls_directory: bool) -> DeviceChanges;

    /// The mount table, in the kernel's order.
    async fn mounts(&self, deadline: Deadline) -> Result<Vec<Mount>>;

    /// The directory with all symlinks resolved; unchanged if it does not exist.
    async fn real(&self, deadline: Deadline, path: &Path) -> Result<PathBuf>;

    /// The type of the file at a path. This and the following methods reject paths that lead through a symlink.
    async fn entry(&self, deadline: Deadline, path: &Path) -> Result<Entry>;

    /// Creates a directory and its missing parents.
    async fn make_directory(&self, deadline: Deadline, path: &Path) -> Result<()>;

    /// Creates an empty file and its missing parent directories.
    async fn make_file(&self, deadline: Deadline, path: &Path) -> Result<()>;

    /// Removes an empty directory or an empty file if it exists.
    async fn remove_empty(&self, deadline: Deadline, path: &Path) -> Result<()>;

    /// The content of an unused device. An unclear result is an error.
    async fn content(&self, deadline: Deadline, device: &Device) -> Result<Content>;

    /// Locks a device until the lock is dropped and every command that inherited it has exited. Waits for the current
    /// holder, such as a mkfs of an earlier process, or udev.
    async fn lock_device(&self, deadline: Deadline, device: &Device) -> Result<DeviceLock>;

    /// Locks a device without waiting if its superblock area is zero; `None` if it is not, or if the device is locked.
    /// This does not prove that the device is blank.
    async fn lock_if_blank(&self, deadline: Deadline, device: &Device) -> Result<Option<DeviceLock>>;

    /// Zeroes an unused device where [`Host::content`] reads it. The driver itself writes to devices only here: callers
    /// must have proven that the content can be discarded.
    async fn wipe(&self, deadline: Deadline, device: &Device) -> Result<()>;

    /// The superblocks on a device, which may be mounted.
    async fn superblocks(&self, deadline: Deadline, device: &Device) -> Result<Superblocks>;

    /// Mounts a filesystem, if the node still belongs to the chosen device.
    async fn mount(&self, deadline: Deadline, device: &Device, request: &MountRequest) -> Result<()>;

    /// Whether the device is part of a mounted btrfs, whatever name the mount table shows.
    async fn is_btrfs_mounted(&self, deadline: Deadline, device: &Device) -> Result<bool>;

    /// The names of the devices of a mounted btrfs that has the UUID of the one on this device, which is a copy of it.
    async fn btrfs_devices_with_same_uuid(&self, deadline: Deadline, device: &Device) -> Result<Vec<String>>;

    async fn bind(&self, deadline: Deadline, source: &Path, target: &Path) -> Result<()>;

    /// Bind-mounts the node of a device, if it still belongs to the chosen device.
    async fn bind_device(&self, deadline: Deadline, device: &Device, target: &Path) -> Result<()>;

    /// Adds options, such as `ro`, to the topmost mount at a path; other mounts of the filesystem stay as they are.
    async fn restrict(&self, deadline: Deadline, target: &Path, flags: &MountFlags) -> Result<()>;

    /// Removes the topmost mount at a path.
    async fn unmount(&self, deadline: Deadline, target: &Path) -> Result<()>;

    /// Detaches the topmost mount at a path lazily (`MNT_DETACH`), even if it is in use.
    async fn detach(&self, deadline: Deadline, target: &Path) -> Result<()>;

    /// Waits until a mount in this namespace has changed since the call, or until the deadline.
    async fn mounts_change(&self, deadline: Deadline) -> Result<()>;

    /// The devices, mounts of this namespace and swap areas that use a mount or a device.
    async fn users(&self, deadline: Deadline, query: &HolderQuery) -> Result<Vec<String>>;

    /// Flushes a device, and reports whether it was removed.
    async fn flush(&self, deadline: Deadline, device: &Device) -> Result<FlushOutcome>;

    /// The same, unless a filesystem in any mount namespace or another device uses it.
    async fn flush_if_free(&self, deadline: Deadline, device: &Device) -> Result<FlushOutcome>;

    /// The value of a setting below `/sys/block/NAME`; `None` if the kernel does not have it.
    async fn block_setting(&self, deadline: Deadline, device: &Device, name: &str) -> Result<Option<String>>;

    /// `None` if the device was removed.
    async fn io_statistics(&self, deadline: Deadline, device: &Device) -> Result<Option<IoStatistics>> {
        let text = self.block_setting(deadline, device, IoStatistics::FILE).await?;
        Ok(text.and_then(|text| IoStatistics::parse(&text)))
    }

    /// Changes a setting below `/sys/block/NAME`.
    async fn set_block_setting(&self, deadline: Deadline, device: &Device, name: &str, value: &str) -> Result<()>;

    /// The state of the mounted filesystem of this device. While a call that timed out has not returned, others of the
    /// filesystem fail immediately with [`HostError::StillRunning`].
    async fn vitals(&self, deadline: Deadline, device: &Device, mount: &Mount) -> Result<Vitals>;

    async fn age(&self, deadline: Deadline, device: &Device) -> Result<Duration>;

    /// The text of a file, if it exists.
    async fn text(&self, deadline: Deadline, path: &Path) -> Result<Option<String>>;

    async fn boot_id(&self, deadline: Deadline) -> Result<String>;

    async fn capabilities(&self, deadline: Deadline) -> Result<Capabilities>;
}
