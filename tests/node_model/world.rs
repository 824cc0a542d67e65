//! What a node with a few volumes and a few places looks like, and what may happen to it: plain words, which know
//! nothing of the driver.

/// Volumes of a case.
pub(crate) const VOLUMES: usize = 2;
/// Places that are named as staging paths; the others are targets.
pub(crate) const STAGINGS: usize = 2;
/// All places.
pub(crate) const PLACES: usize = 5;

/// A filesystem.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fs {
    Ext4,
    Xfs,
    Btrfs,
}

/// What a disk holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    Blank,
    /// The filesystem of its volume.
    Ours {
        /// It does not fill the disk.
        small: bool,
        /// What a pod has written.
        mark: Option<u8>,
    },
    /// Something else.
    Foreign,
}

/// The device of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Device {
    Absent,
    /// It is not there, and its link leads to the device of that volume.
    Stale(usize),
    There {
        /// The link that marks it is there.
        linked: bool,
        /// It takes no writes.
        locked: bool,
        /// It goes with its last mount.
        leaving: bool,
        /// The volume was staged on it, and has not been unstaged since.
        staged: bool,
    },
}

/// A volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Volume {
    pub(crate) fs: Fs,
    pub(crate) content: Content,
    /// The disk has been grown.
    pub(crate) big: bool,
    pub(crate) device: Device,
}

/// What is at a path, below all mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Under {
    Missing,
    Dir,
    /// A directory with a file in it.
    FullDir,
    File,
    /// A file with something in it.
    FullFile,
    Symlink,
}

/// A mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    /// Of somebody else.
    Foreign,
    /// The filesystem of a volume.
    Fs { volume: usize, read_only: bool },
    /// The node of a volume's device.
    Node { volume: usize, read_only: bool },
}

/// A path, and what is mounted on it; the last one is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) under: Under,
    pub(crate) stack: Vec<Layer>,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct World {
    pub(crate) volumes: [Volume; VOLUMES],
    pub(crate) places: [Place; PLACES],
    /// What the last call must answer; none where it was no call.
    pub(crate) answer: Option<Answer>,
}

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Answer {
    Ok,
    /// `ALREADY_EXISTS`: it is there in another way.
    Otherwise,
    /// `FAILED_PRECONDITION`
    Refused,
    /// `NOT_FOUND`
    NotHere,
    /// `DEADLINE_EXCEEDED`
    Late,
    /// `INTERNAL`: the kernel or a tool says no.
    Failed,
}

/// How a volume is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Mount,
    /// As another filesystem than it has.
    WrongMount,
    Block,
}

/// A call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Stage {
        volume: usize,
        staging: usize,
        access: Access,
        read_only: bool,
    },
    Publish {
        volume: usize,
        staging: usize,
        target: usize,
        access: Access,
        read_only: bool,
        single: bool,
    },
    Unpublish {
        volume: usize,
        target: usize,
    },
    Unstage {
        volume: usize,
        staging: usize,
    },
    Expand {
        volume: usize,
        place: usize,
    },
    Stats {
        volume: usize,
        place: usize,
    },
}

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Call(Call),
    /// A pod writes where a filesystem is seen.
    Write {
        place: usize,
        value: u8,
    },
    /// Somebody puts this at a path where nothing is mounted.
    Put {
        place: usize,
        under: Under,
    },
    /// Somebody mounts something of his own there.
    MountForeign {
        place: usize,
    },
    /// Somebody takes the uppermost mount off.
    Unmount {
        place: usize,
    },
    /// The cloud attaches a disk.
    Attach {
        volume: usize,
    },
    /// The cloud takes a disk off that nobody uses.
    Detach {
        volume: usize,
    },
    /// The disk is torn out of a node that uses it.
    TearOut {
        volume: usize,
        unlink: bool,
    },
    /// The link that marks the device goes, or comes back.
    Unlink {
        volume: usize,
    },
    Relink {
        volume: usize,
    },
    /// The link of an absent disk leads to another one's device.
    Mislead {
        volume: usize,
    },
    /// The cloud grows the disk.
    Grow {
        volume: usize,
    },
    /// An absent disk is another one with the same name: blank, or with strange data.
    Replace {
        volume: usize,
        foreign: bool,
    },
}

impl World {
    pub(crate) fn top(&self, place: usize) -> Option<Layer> {
        self.places[place].stack.last().copied()
    }

    /// Whether a volume is mounted anywhere.
    pub(crate) fn is_used(&self, volume: usize) -> bool {
        let layers = self.places.iter().flat_map(|place| &place.stack);
        layers
            .into_iter()
            .any(|layer| layer.volume() == Some(volume))
    }

    /// Whether a volume's filesystem is mounted anywhere.
    pub(crate) fn is_mounted(&self, volume: usize) -> bool {
        let mut layers = self.places.iter().flat_map(|place| &place.stack);
        layers.any(|layer| matches!(layer, Layer::Fs { volume: v, .. } if *v == volume))
    }

    /// A device that was torn out goes when nobody uses it any more.
    pub(crate) fn let_go(&mut self) {
        for volume in 0..VOLUMES {
            let leaving = matches!(
                self.volumes[volume].device,
                Device::There { leaving: true, .. }
            );
            if leaving && !self.is_used(volume) {
                self.goes(volume);
            }
        }
    }

    pub(crate) fn goes(&mut self, gone: usize) {
        self.volumes[gone].device = Device::Absent;
        for volume in &mut self.volumes {
            if volume.device == Device::Stale(gone) {
                volume.device = Device::Absent;
            }
        }
    }

    pub(crate) fn is_there(&self, volume: usize) -> bool {
        matches!(self.volumes[volume].device, Device::There { .. })
    }
}

impl Layer {
    pub(crate) fn volume(self) -> Option<usize> {
        match self {
            Self::Foreign => None,
            Self::Fs { volume, .. } | Self::Node { volume, .. } => Some(volume),
        }
    }
}
