//! The model: which things happen to the world, in which state they may, and what it looks like then. It knows nothing
//! of the driver; what a call must answer and do is in `verbs`.

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

use crate::verbs;
use crate::world::{
    Access, Call, Content, Device, Event, Fs, Layer, PLACES, Place, STAGINGS, Under, VOLUMES,
    Volume, World,
};

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
