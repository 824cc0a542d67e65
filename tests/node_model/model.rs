//! The model: what a node with a few volumes and a few places looks like, and what may happen to it.
//! It knows nothing of the driver; what a call must answer and do is in `verbs`.

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

use crate::verbs;

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
    fn is_mounted(&self, volume: usize) -> bool {
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

    fn goes(&mut self, gone: usize) {
        self.volumes[gone].device = Device::Absent;
        for volume in &mut self.volumes {
            if volume.device == Device::Stale(gone) {
                volume.device = Device::Absent;
            }
        }
    }

    fn is_there(&self, volume: usize) -> bool {
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

/// The reference of the state machine.
#[derive(Debug)]
pub(crate) struct Model;

fn volume() -> impl Strategy<Value = usize> {
    0..VOLUMES
}

fn staging() -> impl Strategy<Value = usize> {
    // Mostly each volume has its own.
    0..STAGINGS
}

fn target() -> impl Strategy<Value = usize> {
    STAGINGS..PLACES
}

fn place() -> impl Strategy<Value = usize> {
    0..PLACES
}

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![
        8 => Just(Access::Mount),
        1 => Just(Access::WrongMount),
        2 => Just(Access::Block),
    ]
}

fn rarely() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.2)
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        5 => (volume(), staging(), access(), rarely()).prop_map(
            |(volume, staging, access, read_only)| Call::Stage { volume, staging, access, read_only }
        ),
        6 => (volume(), staging(), target(), access(), rarely(), rarely()).prop_map(
            |(volume, staging, target, access, read_only, single)| Call::Publish {
                volume, staging, target, access, read_only, single,
            }
        ),
        4 => (volume(), target()).prop_map(|(volume, target)| Call::Unpublish { volume, target }),
        2 => (volume(), staging()).prop_map(|(volume, staging)| Call::Unstage { volume, staging }),
        1 => (volume(), place()).prop_map(|(volume, place)| Call::Expand { volume, place }),
        1 => (volume(), place()).prop_map(|(volume, place)| Call::Stats { volume, place }),
    ]
}

fn under() -> impl Strategy<Value = Under> {
    prop_oneof![
        3 => Just(Under::Missing),
        3 => Just(Under::Dir),
        1 => Just(Under::FullDir),
        2 => Just(Under::File),
        1 => Just(Under::FullFile),
        1 => Just(Under::Symlink),
    ]
}

fn event() -> BoxedStrategy<Event> {
    prop_oneof![
        40 => call().prop_map(Event::Call),
        8 => (place(), any::<u8>()).prop_map(|(place, value)| Event::Write { place, value }),
        3 => (place(), under()).prop_map(|(place, under)| Event::Put { place, under }),
        1 => place().prop_map(|place| Event::MountForeign { place }),
        2 => place().prop_map(|place| Event::Unmount { place }),
        12 => volume().prop_map(|volume| Event::Attach { volume }),
        2 => volume().prop_map(|volume| Event::Detach { volume }),
        1 => (volume(), any::<bool>()).prop_map(|(volume, unlink)| Event::TearOut { volume, unlink }),
        1 => volume().prop_map(|volume| Event::Unlink { volume }),
        6 => volume().prop_map(|volume| Event::Relink { volume }),
        1 => volume().prop_map(|volume| Event::Mislead { volume }),
        2 => volume().prop_map(|volume| Event::Grow { volume }),
        1 => (volume(), rarely()).prop_map(|(volume, foreign)| Event::Replace { volume, foreign }),
    ]
    .boxed()
}

fn kind() -> impl Strategy<Value = Fs> {
    prop_oneof![6 => Just(Fs::Ext4), 1 => Just(Fs::Xfs), 1 => Just(Fs::Btrfs)]
}

impl ReferenceStateMachine for Model {
    type State = World;
    type Transition = Event;

    fn init_state() -> BoxedStrategy<World> {
        let blank = |fs, device| Volume {
            fs,
            content: Content::Blank,
            big: false,
            device,
        };
        let attached = Device::There {
            linked: true,
            locked: false,
            leaving: false,
            staged: false,
        };
        (kind(), kind())
            .prop_map(move |(one, other)| World {
                volumes: [blank(one, attached), blank(other, Device::Absent)],
                places: [(); PLACES].map(|()| Place {
                    under: Under::Missing,
                    stack: Vec::new(),
                }),
                answer: None,
            })
            .boxed()
    }

    fn transitions(_: &World) -> BoxedStrategy<Event> {
        event()
    }

    fn preconditions(world: &World, event: &Event) -> bool {
        let device = |volume: usize| world.volumes[volume].device;
        match *event {
            Event::Call(call) => verbs::is_defined(world, call),
            Event::Write { place, .. } => {
                matches!(
                    world.top(place),
                    Some(Layer::Fs {
                        read_only: false,
                        ..
                    })
                )
            }
            Event::Put { place, under } => {
                world.places[place].stack.is_empty() && world.places[place].under != under
            }
            Event::MountForeign { place } => {
                let there = &world.places[place];
                matches!(there.under, Under::Dir | Under::FullDir)
                    && there.stack.len() < 2
                    && !matches!(world.top(place), Some(Layer::Node { .. }))
            }
            Event::Unmount { place } => world.top(place).is_some(),
            Event::Attach { volume } => device(volume) == Device::Absent,
            Event::Detach { volume } => world.is_there(volume) && !world.is_used(volume),
            Event::TearOut { volume, .. } => {
                // The node of a device alone does not keep the kernel from letting it go.
                let here = matches!(device(volume), Device::There { leaving: false, .. });
                here && world.is_mounted(volume)
            }
            Event::Unlink { volume } => match device(volume) {
                Device::There { linked, .. } => linked,
                Device::Stale(_) => true,
                Device::Absent => false,
            },
            Event::Relink { volume } => {
                matches!(device(volume), Device::There { linked: false, .. })
            }
            Event::Mislead { volume } => {
                device(volume) == Device::Absent && world.is_there(1 - volume)
            }
            Event::Grow { volume } => {
                !world.volumes[volume].big
                    && !matches!(device(volume), Device::There { leaving: true, .. })
            }
            Event::Replace { volume, .. } => device(volume) == Device::Absent,
        }
    }

    fn apply(mut world: World, event: &Event) -> World {
        world.answer = None;
        match *event {
            Event::Call(call) => {
                let answer = verbs::apply(&mut world, call);
                world.answer = Some(answer);
            }
            Event::Write { place, value } => {
                if let Some(Layer::Fs { volume, .. }) = world.top(place)
                    && let Content::Ours { mark, .. } = &mut world.volumes[volume].content
                {
                    *mark = Some(value);
                }
            }
            Event::Put { place, under } => world.places[place].under = under,
            Event::MountForeign { place } => world.places[place].stack.push(Layer::Foreign),
            Event::Unmount { place } => {
                world.places[place].stack.pop();
            }
            Event::Attach { volume } => {
                world.volumes[volume].device = Device::There {
                    linked: true,
                    locked: false,
                    leaving: false,
                    staged: false,
                };
            }
            Event::Detach { volume } => world.goes(volume),
            Event::TearOut { volume, unlink } => {
                if let Device::There {
                    linked, leaving, ..
                } = &mut world.volumes[volume].device
                {
                    *leaving = true;
                    *linked &= !unlink;
                }
            }
            Event::Unlink { volume } => match &mut world.volumes[volume].device {
                Device::There { linked, .. } => *linked = false,
                device => *device = Device::Absent,
            },
            Event::Relink { volume } => {
                if let Device::There { linked, .. } = &mut world.volumes[volume].device {
                    *linked = true;
                }
            }
            Event::Mislead { volume } => world.volumes[volume].device = Device::Stale(1 - volume),
            Event::Grow { volume } => {
                let volume = &mut world.volumes[volume];
                volume.big = true;
                if let Content::Ours { small, .. } = &mut volume.content {
                    *small = true;
                }
            }
            Event::Replace { volume, foreign } => {
                let volume = &mut world.volumes[volume];
                volume.big = false;
                volume.content = match foreign {
                    true => Content::Foreign,
                    false => Content::Blank,
                };
            }
        }
        world.let_go();
        world
    }
}
