//! Linux, as the node needs it: commands, block devices, mounts, filesystems.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;

use crate::base::Deadline;
use crate::model::{Bytes, MountFlags, Serial};

mod block_attribute;
mod blocking;
mod btrfs;
pub mod capability;
pub mod content;
pub mod device;
pub mod device_changes;
pub mod device_incarnation;
pub mod device_lock;
pub mod entry;
pub mod error;
mod exclusive;
pub mod exec;
pub mod filesystem;
pub mod flush;
pub mod holder;
mod host_info;
mod io_progress;
pub mod linux;
pub mod memory;
pub mod mount;
pub mod mountinfo;
pub mod partition_table;
pub mod record;
mod samples;
pub mod search;
mod serial;
pub mod standard_error;
mod superblock;
mod uevent;
pub mod vitals;
mod walk;
mod wipe;

#[cfg(test)]
pub(crate) mod fake;

pub use capability::{Capabilities, Capability};
pub use content::Content;
pub use device::{Device, DeviceNumber, Partition};
pub use device_changes::DeviceChanges;
pub use device_incarnation::{DeviceIncarnation, DeviceSequence};
pub use device_lock::DeviceLock;
pub use entry::Entry;
pub use error::{HostError, Result};
pub use exec::{Command, Exec, ExecError, ExecFailure, Output, ProcessExec};
pub use flush::FlushOutcome;
pub use holder::Sought;
pub use io_progress::IoCounts;
pub use linux::{Linux, Roots};
pub use mount::MountDevice;
pub use mountinfo::Mount;
pub use record::Records;
pub use search::{Candidates, Link};
pub use superblock::Superblocks;
pub use vitals::{Amount, Usage, Vitals};

/// The machine: what is there, and what changes mounts. Every call returns by its deadline.
#[async_trait]
pub trait Host: Debug + Send + Sync {
    /// All whole block devices.
    async fn devices(&self, deadline: Deadline) -> Result<Vec<Device>>;

    /// The whole block device that has this name now; none where no device has it.
    async fn device(&self, deadline: Deadline, name: &str) -> Result<Option<Device>>;

    /// The devices that may be the disk with this serial. The directory may have a link of its name.
    async fn search(
        &self,
        deadline: Deadline,
        serial: &Serial,
        directory: Option<&Path>,
    ) -> Result<Candidates>;

    /// udev's links of disks that lead nowhere.
    async fn dangling_links(&self, deadline: Deadline) -> Result<Vec<Link>>;

    /// Subscribes to devices that are added, removed or resized, which are polled if the fake cloud links them in a directory.
    fn changes(&self, polls_directory: bool) -> DeviceChanges;

    /// The mount table, in the kernel's order.
    async fn mounts(&self, deadline: Deadline) -> Result<Vec<Mount>>;

    /// A directory with every symlink resolved; as it is given where it is not there.
    async fn real(&self, deadline: Deadline, path: &Path) -> Result<PathBuf>;

    /// What is at a path. Here and below, no path is taken that leads through a symlink.
    async fn entry(&self, deadline: Deadline, path: &Path) -> Result<Entry>;

    /// Makes a directory, and those above it.
    async fn make_directory(&self, deadline: Deadline, path: &Path) -> Result<()>;

    /// Makes an empty file, and the directories above it.
    async fn make_file(&self, deadline: Deadline, path: &Path) -> Result<()>;

    /// Removes an empty directory or an empty file; one that is not there is fine.
    async fn remove_empty(&self, deadline: Deadline, path: &Path) -> Result<()>;

    /// What a device holds that nobody uses. An unclear answer is an error.
    async fn content(&self, deadline: Deadline, device: &Device) -> Result<Content>;

    /// Locks a device until the lock is dropped and every command that inherited it has exited. Waits for the current
    /// holder, such as a mkfs of an earlier process, or udev.
    async fn lock_device(&self, deadline: Deadline, device: &Device) -> Result<DeviceLock>;

    /// Locks a device without waiting if its superblock area is zero; `None` if it is not, or if the device is locked. This
    /// does not prove that the device is blank.
    async fn lock_if_blank(
        &self,
        deadline: Deadline,
        device: &Device,
    ) -> Result<Option<DeviceLock>>;

    /// Zeroes what was found on a device that nobody uses, where [`Host::content`] looks. The only write
    /// of the driver itself to a device: whoever calls it must know whose the content is.
    async fn wipe(&self, deadline: Deadline, device: &Device) -> Result<()>;

    /// Waits until everything written to a device is on the disk.
    async fn flush_device(&self, deadline: Deadline, device: &Device) -> Result<()>;

    /// The superblocks on a device, which may be mounted.
    async fn superblocks(&self, deadline: Deadline, device: &Device) -> Result<Superblocks>;

    /// Mounts a filesystem, if the node of its device still has the number it was chosen with.
    async fn mount(&self, deadline: Deadline, request: &MountDevice) -> Result<()>;

    /// Whether the device is part of a mounted btrfs, whatever name the mount table shows.
    async fn is_btrfs_mounted(&self, deadline: Deadline, device: &Device) -> Result<bool>;

    /// The names of the devices of a mounted btrfs that has the UUID of the one on this device, which is a copy of it.
    async fn btrfs_devices_with_same_uuid(
        &self,
        deadline: Deadline,
        device: &Device,
    ) -> Result<Vec<String>>;

    /// Shows a directory at another place.
    async fn bind(&self, deadline: Deadline, source: &Path, target: &Path) -> Result<()>;

    /// Shows the node of a device at another place, if it still has the number it was chosen with.
    async fn bind_device(&self, deadline: Deadline, device: &Device, target: &Path) -> Result<()>;

    /// Makes the topmost mount at a path read-only; other mounts of the filesystem stay as they are.
    async fn remount_read_only(&self, deadline: Deadline, target: &Path) -> Result<()>;

    /// Adds options of one mount to those that the topmost one at a path has.
    async fn restrict(&self, deadline: Deadline, target: &Path, flags: &MountFlags) -> Result<()>;

    /// Removes the topmost mount at a path.
    async fn unmount(&self, deadline: Deadline, target: &Path) -> Result<()>;

    /// Removes the topmost mount at a path from sight, also if it is in use.
    async fn detach(&self, deadline: Deadline, target: &Path) -> Result<()>;

    /// Waits until a mount has come or gone since the call, or until the deadline.
    async fn mounts_change(&self, deadline: Deadline) -> Result<()>;

    /// The devices, mounts of this namespace and swap areas that use a mount or a device.
    async fn users(&self, deadline: Deadline, sought: &Sought) -> Result<Vec<String>>;

    /// Writes what the kernel holds for a device.
    async fn flush(&self, deadline: Deadline, device: &Device) -> Result<FlushOutcome>;

    /// The same, unless a filesystem or another device uses it, in whatever mount namespace.
    async fn flush_if_free(&self, deadline: Deadline, device: &Device) -> Result<FlushOutcome>;

    /// The value of a setting below `/sys/block/NAME`; `None` if the kernel does not have it.
    async fn block_setting(
        &self,
        deadline: Deadline,
        device: &Device,
        name: &str,
    ) -> Result<Option<String>>;

    /// Changes a setting below `/sys/block/NAME`.
    async fn set_block_setting(
        &self,
        deadline: Deadline,
        device: &Device,
        name: &str,
        value: &str,
    ) -> Result<()>;

    /// How the filesystem of this device is that is mounted there. A filesystem that once did not
    /// answer by the deadline is not asked again until it does: that is [`HostError::StillRunning`], at once.
    async fn vitals(&self, deadline: Deadline, device: &Device, mount: &Mount) -> Result<Vitals>;

    /// The size of the filesystem of this device that is mounted there; `None` if it has no superblock of its kind.
    async fn mounted_size(
        &self,
        deadline: Deadline,
        device: &Device,
        mount: &Mount,
    ) -> Result<Option<Bytes>>;

    /// For how long the node of this device has been there.
    async fn age(&self, deadline: Deadline, device: &Device) -> Result<Duration>;

    /// The text of a file; none where there is no such file.
    async fn text(&self, deadline: Deadline, path: &Path) -> Result<Option<String>>;

    /// The kernel's id of the machine's current start.
    async fn boot_id(&self, deadline: Deadline) -> Result<String>;

    /// The capabilities of this process.
    async fn capabilities(&self, deadline: Deadline) -> Result<Capabilities>;
}
