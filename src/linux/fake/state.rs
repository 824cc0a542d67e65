//! The state of the fake host.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Weak;
use std::time::Duration;

use tokio::time::Instant;

use crate::linux::device_lock::LockedFile;
use crate::linux::{Capabilities, Content, Device, Entry, Link, Mount};
use crate::model::Bytes;

/// The state of the host, and the recorded calls.
#[derive(Debug, Default)]
pub(crate) struct FakeState {
    pub(crate) devices: Vec<Device>,
    pub(crate) by_id_links: Vec<Link>,
    pub(crate) mounts: Vec<Mount>,
    pub(crate) entries: HashMap<PathBuf, Entry>,
    pub(crate) content: Option<Content>,
    /// Number of reads of the content.
    pub(crate) content_reads: usize,
    /// The content after the first read, if it changes.
    pub(crate) next_content: Option<Content>,
    /// Whether devices have no node in `/dev`.
    pub(crate) lacks_nodes: bool,
    /// The lock of a device that this process holds.
    pub(crate) lock: Weak<LockedFile>,
    /// The time until which another process locks the devices.
    pub(crate) locked_until: Option<Instant>,
    /// The devices after the first read of the content, if they change.
    pub(crate) next_devices: Option<Vec<Device>>,
    pub(crate) stated_size: Option<Bytes>,
    pub(crate) has_errors: bool,
    pub(crate) capabilities: Capabilities,
    /// Whether calls on filesystems hang.
    pub(crate) hangs: bool,
    /// The errno with which a query of a filesystem fails.
    pub(crate) errno: Option<i32>,
    /// The errors recorded in filesystems.
    pub(crate) errors: Option<String>,
    /// Whether filesystems reject writes after an error.
    pub(crate) rejects_writes: bool,
    /// Ages of device nodes; unlimited if not set.
    pub(crate) ages: HashMap<String, Duration>,
    pub(crate) files: HashMap<PathBuf, String>,
    /// Mount points that are in use.
    pub(crate) busy: HashSet<PathBuf>,
    /// Whether the kernel uses the devices.
    pub(crate) in_use: bool,
    /// The directory whose removal ends the kernel's use of the devices.
    pub(crate) in_use_until_removed: Option<PathBuf>,
    /// Settings of the block devices, by their names.
    pub(crate) block_settings: HashMap<String, String>,
    /// Whether the kernel mounts the filesystem of another device.
    pub(crate) mounts_another_device: bool,
    /// The devices of the mounted btrfs with the same UUID.
    pub(crate) same_uuid: Vec<String>,
    /// The errno with which mounting fails.
    pub(crate) mount_errno: Option<i32>,
    /// Whether the superblock shows a log of btrfs.
    pub(crate) has_btrfs_log: bool,
    /// Number of mounts that fail with `EEXIST`.
    pub(crate) duplicate_mounts: u32,
    /// Number of waits after which mounts and devices are free; never if not set.
    pub(crate) free_after: Option<u32>,
    /// Number of waits so far.
    pub(crate) waits: u32,
    /// The call that fails, by its name in [`FakeState::calls`].
    pub(crate) failing_call: Option<&'static str>,
    /// Exit codes of commands or programs; 0 if not set.
    pub(crate) exit_codes: HashMap<&'static str, i32>,
    /// The memory and the time that each command could have used.
    pub(crate) tool_limits: Vec<(Option<Bytes>, Duration)>,
    /// The program that a signal terminates.
    pub(crate) killed_program: Option<&'static str>,
    /// The state directory of the node.
    pub(crate) state_dir: Option<tempfile::TempDir>,
    /// All mutating calls, in order.
    pub(crate) calls: Vec<String>,
    /// Number of searches for a disk.
    pub(crate) searches: usize,
}
