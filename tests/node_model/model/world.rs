//! The state of a modeled node with a few volumes and mount points, and the events that change it. Independent of the
//! driver.

pub(crate) const VOLUMES: usize = 2;
/// The number of mount points that are staging paths; the others are target paths.
pub(crate) const STAGINGS: usize = 2;
pub(crate) const MOUNT_POINTS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FsType {
    Ext4,
    Xfs,
    Btrfs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Blank,
    /// The filesystem that the driver created.
    Filesystem {
        /// The filesystem is smaller than the disk.
        undersized: bool,
        /// The last byte that a pod wrote.
        data: Option<u8>,
    },
    /// Data of another owner.
    Foreign,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Device {
    Absent,
    /// The disk is detached, and its symlink refers to the device of that volume.
    StaleLink(usize),
    Present {
        /// The symlink of the serial exists.
        linked: bool,
        /// The read-only flag of the block device is set.
        write_protected: bool,
        /// The kernel removes the device with its last mount.
        detaching: bool,
        /// The volume is staged on the device.
        staged: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Volume {
    pub(crate) fs: FsType,
    pub(crate) content: Content,
    pub(crate) resized: bool,
    pub(crate) device: Device,
}

/// The directory entry below all mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    Missing,
    Directory,
    NonEmptyDirectory,
    File,
    NonEmptyFile,
    Symlink,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mount {
    /// Not mounted by the driver.
    Foreign,
    Filesystem {
        volume: usize,
        read_only: bool,
    },
    /// A bind mount of the device node.
    DeviceNode {
        volume: usize,
        read_only: bool,
    },
}

/// A path and its stacked mounts; the last one is visible.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountPoint {
    pub(crate) entry: Entry,
    pub(crate) stack: Vec<Mount>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct World {
    pub(crate) volumes: [Volume; VOLUMES],
    pub(crate) mount_points: [MountPoint; MOUNT_POINTS],
    /// The expected outcome of the last event; `None` if it is not a call.
    pub(crate) outcome: Option<Outcome>,
}

/// The gRPC status of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Ok,
    AlreadyExists,
    FailedPrecondition,
    NotFound,
    DeadlineExceeded,
    Internal,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Mount,
    /// With another filesystem type than that of the volume.
    MountOtherType,
    Block,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stage {
    pub(crate) volume: usize,
    pub(crate) staging: usize,
    pub(crate) access: Access,
    pub(crate) read_only: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Publish {
    pub(crate) volume: usize,
    pub(crate) staging: usize,
    pub(crate) target: usize,
    pub(crate) access: Access,
    pub(crate) read_only: bool,
    pub(crate) single: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Stage(Stage),
    Publish(Publish),
    Unpublish { volume: usize, target: usize },
    Unstage { volume: usize, staging: usize },
    Expand { volume: usize, mount_point: usize },
    Stats { volume: usize, mount_point: usize },
}

/// An event at a volume or a mount point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Call(Call),
    /// A pod writes to a mounted filesystem.
    Write {
        mount_point: usize,
        value: u8,
    },
    /// An external process replaces the entry of an unmounted path.
    ReplaceEntry {
        mount_point: usize,
        entry: Entry,
    },
    /// An external process mounts a tmpfs.
    MountForeign(usize),
    /// An external process removes the topmost mount.
    Unmount(usize),
    Attach(usize),
    /// The cloud detaches an unused disk.
    Detach(usize),
    /// The cloud detaches a disk that is in use.
    ForceDetach {
        volume: usize,
        unlink: bool,
    },
    /// The symlink of the serial is removed.
    RemoveLink(usize),
    RestoreLink(usize),
    /// The symlink of a detached disk refers to the device of the other volume.
    MisdirectLink(usize),
    /// The cloud resizes the disk.
    ResizeDisk(usize),
    /// A detached disk is replaced by a disk with the same serial: blank, or with foreign data.
    ReplaceDisk {
        volume: usize,
        foreign: bool,
    },
}

impl World {
    pub(crate) fn top(&self, mount_point: usize) -> Option<Mount> {
        self.mount_points[mount_point].stack.last().copied()
    }

    /// Whether a volume is mounted anywhere.
    pub(crate) fn is_used(&self, volume: usize) -> bool {
        mounts_elsewhere(self, volume, &[]).next().is_some()
    }

    /// Whether a volume's filesystem is mounted anywhere.
    pub(crate) fn is_mounted(&self, volume: usize) -> bool {
        mounts_elsewhere(self, volume, &[]).any(Mount::is_filesystem)
    }

    /// Removes devices that were detached while in use and are no longer used.
    pub(crate) fn remove_unused_devices(&mut self) {
        for volume in 0..VOLUMES {
            let detaching = matches!(self.volumes[volume].device, Device::Present { detaching: true, .. });
            if detaching && !self.is_used(volume) {
                self.remove_device(volume);
            }
        }
    }

    pub(crate) fn remove_device(&mut self, removed: usize) {
        self.volumes[removed].device = Device::Absent;
        for volume in &mut self.volumes {
            if volume.device == Device::StaleLink(removed) {
                volume.device = Device::Absent;
            }
        }
    }

    pub(crate) fn is_present(&self, volume: usize) -> bool {
        matches!(self.volumes[volume].device, Device::Present { .. })
    }
}

impl Device {
    pub(crate) const ATTACHED: Self = Self::Present {
        linked: true,
        write_protected: false,
        detaching: false,
        staged: false,
    };
}

impl Mount {
    pub(crate) fn is_filesystem(self) -> bool {
        matches!(self, Self::Filesystem { .. })
    }

    pub(crate) fn is_node(self) -> bool {
        matches!(self, Self::DeviceNode { .. })
    }

    pub(crate) fn is_read_only(self) -> bool {
        matches!(self, Self::Filesystem { read_only, .. } | Self::DeviceNode { read_only, .. } if read_only)
    }

    pub(crate) fn volume(self) -> Option<usize> {
        match self {
            Self::Foreign => None,
            Self::Filesystem { volume, .. } | Self::DeviceNode { volume, .. } => Some(volume),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceLookup {
    Found,
    Missing,
    Ambiguous,
}

pub(crate) fn look_up_device(world: &World, volume: usize) -> DeviceLookup {
    match world.volumes[volume].device {
        Device::Absent | Device::Present { linked: false, .. } => DeviceLookup::Missing,
        Device::StaleLink(_) => DeviceLookup::Ambiguous,
        Device::Present { linked: true, .. } => DeviceLookup::Found,
    }
}

/// Mounts of the volume at other mount points.
pub(crate) fn mounts_elsewhere<'a>(
    world: &'a World,
    volume: usize,
    except: &'a [usize],
) -> impl Iterator<Item = Mount> + 'a {
    let mount_points = world.mount_points.iter().enumerate();
    mount_points
        .filter(|(mount_point, _)| !except.contains(mount_point))
        .flat_map(|(_, mount_point)| mount_point.stack.iter().copied())
        .filter(move |mount| mount.volume() == Some(volume))
}
