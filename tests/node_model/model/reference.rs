//! The reference model: generates events, their preconditions and their effects. Those of calls are in `preconditions`
//! and `verbs`.

use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

use crate::model::preconditions;
use crate::model::verbs;
use crate::model::world::{
    Access, Call, Content, Device, Entry, Event, FsType, MOUNT_POINTS, Mount, MountPoint, Publish, STAGINGS, Stage,
    VOLUMES, Volume, World,
};

#[derive(Debug)]
pub(crate) struct Model;

fn volume() -> impl Strategy<Value = usize> {
    0..VOLUMES
}

fn staging() -> impl Strategy<Value = usize> {
    0..STAGINGS
}

fn target() -> impl Strategy<Value = usize> {
    STAGINGS..MOUNT_POINTS
}

fn mount_point() -> impl Strategy<Value = usize> {
    0..MOUNT_POINTS
}

fn access() -> impl Strategy<Value = Access> {
    prop_oneof![
        8 => Just(Access::Mount),
        1 => Just(Access::MountOtherType),
        2 => Just(Access::Block),
    ]
}

fn rare_bool() -> impl Strategy<Value = bool> {
    prop::bool::weighted(0.2)
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        5 => (volume(), staging(), access(), rare_bool()).prop_map(
            |(volume, staging, access, read_only)| Call::Stage(Stage { volume, staging, access, read_only })
        ),
        6 => (volume(), staging(), target(), access(), rare_bool(), rare_bool()).prop_map(
            |(volume, staging, target, access, read_only, single)| Call::Publish(Publish {
                volume, staging, target, access, read_only, single,
            })
        ),
        4 => (volume(), target()).prop_map(|(volume, target)| Call::Unpublish { volume, target }),
        2 => (volume(), staging()).prop_map(|(volume, staging)| Call::Unstage { volume, staging }),
        1 => (volume(), mount_point()).prop_map(|(volume, mount_point)| Call::Expand { volume, mount_point }),
        1 => (volume(), mount_point()).prop_map(|(volume, mount_point)| Call::Stats { volume, mount_point }),
    ]
}

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![
        3 => Just(Entry::Missing),
        3 => Just(Entry::Directory),
        1 => Just(Entry::NonEmptyDirectory),
        2 => Just(Entry::File),
        1 => Just(Entry::NonEmptyFile),
        1 => Just(Entry::Symlink),
    ]
}

fn event() -> BoxedStrategy<Event> {
    prop_oneof![
        40 => call().prop_map(Event::Call),
        8 => (mount_point(), any::<u8>()).prop_map(|(mount_point, value)| Event::Write { mount_point, value }),
        3 => (mount_point(), entry()).prop_map(|(mount_point, entry)| Event::ReplaceEntry { mount_point, entry }),
        1 => mount_point().prop_map(Event::MountForeign),
        2 => mount_point().prop_map(Event::Unmount),
        12 => volume().prop_map(Event::Attach),
        2 => volume().prop_map(Event::Detach),
        1 => (volume(), any::<bool>()).prop_map(|(volume, unlink)| Event::ForceDetach { volume, unlink }),
        1 => volume().prop_map(Event::RemoveLink),
        6 => volume().prop_map(Event::RestoreLink),
        1 => volume().prop_map(Event::MisdirectLink),
        2 => volume().prop_map(Event::ResizeDisk),
        1 => (volume(), rare_bool()).prop_map(|(volume, foreign)| Event::ReplaceDisk { volume, foreign }),
    ]
    .boxed()
}

fn kind() -> impl Strategy<Value = FsType> {
    prop_oneof![6 => Just(FsType::Ext4), 1 => Just(FsType::Xfs), 1 => Just(FsType::Btrfs)]
}

impl ReferenceStateMachine for Model {
    type State = World;
    type Transition = Event;

    fn init_state() -> BoxedStrategy<World> {
        let blank = |fs, device| Volume {
            fs,
            content: Content::Blank,
            resized: false,
            device,
        };
        (kind(), kind())
            .prop_map(move |(one, other)| World {
                volumes: [blank(one, Device::ATTACHED), blank(other, Device::Absent)],
                mount_points: [(); MOUNT_POINTS].map(|()| MountPoint {
                    entry: Entry::Missing,
                    stack: Vec::new(),
                }),
                outcome: None,
            })
            .boxed()
    }

    fn transitions(_: &World) -> BoxedStrategy<Event> {
        event()
    }

    fn preconditions(world: &World, event: &Event) -> bool {
        let device = |volume: usize| world.volumes[volume].device;
        match *event {
            Event::Call(call) => preconditions::is_defined(world, call),
            Event::Write { mount_point, .. } => {
                matches!(world.top(mount_point), Some(Mount::Filesystem { read_only: false, .. }))
            }
            Event::ReplaceEntry { mount_point, entry } => {
                world.mount_points[mount_point].stack.is_empty() && world.mount_points[mount_point].entry != entry
            }
            Event::MountForeign(mount_point) => {
                let target = &world.mount_points[mount_point];
                matches!(target.entry, Entry::Directory | Entry::NonEmptyDirectory)
                    && target.stack.len() < 2
                    && !matches!(world.top(mount_point), Some(Mount::DeviceNode { .. }))
            }
            Event::Unmount(mount_point) => world.top(mount_point).is_some(),
            Event::Attach(volume) => device(volume) == Device::Absent,
            Event::Detach(volume) => world.is_present(volume) && !world.is_used(volume),
            Event::ForceDetach { volume, .. } => {
                // A bind mount of the device node alone does not keep the device.
                let is_attached = matches!(device(volume), Device::Present { detaching: false, .. });
                is_attached && world.is_mounted(volume)
            }
            Event::RemoveLink(volume) => match device(volume) {
                Device::Present { linked, .. } => linked,
                Device::StaleLink(_) => true,
                Device::Absent => false,
            },
            Event::RestoreLink(volume) => {
                matches!(device(volume), Device::Present { linked: false, .. })
            }
            Event::MisdirectLink(volume) => device(volume) == Device::Absent && world.is_present(1 - volume),
            Event::ResizeDisk(volume) => {
                !world.volumes[volume].resized && !matches!(device(volume), Device::Present { detaching: true, .. })
            }
            Event::ReplaceDisk { volume, .. } => device(volume) == Device::Absent,
        }
    }

    fn apply(mut world: World, event: &Event) -> World {
        world.outcome = None;
        match *event {
            Event::Call(call) => {
                let outcome = verbs::apply(&mut world, call);
                world.outcome = Some(outcome);
            }
            Event::Write { mount_point, value } => {
                if let Some(Mount::Filesystem { volume, .. }) = world.top(mount_point)
                    && let Content::Filesystem { data, .. } = &mut world.volumes[volume].content
                {
                    *data = Some(value);
                }
            }
            Event::ReplaceEntry { mount_point, entry } => {
                world.mount_points[mount_point].entry = entry;
            }
            Event::MountForeign(mount_point) => {
                world.mount_points[mount_point].stack.push(Mount::Foreign);
            }
            Event::Unmount(mount_point) => {
                world.mount_points[mount_point].stack.pop();
            }
            Event::Attach(volume) => world.volumes[volume].device = Device::ATTACHED,
            Event::Detach(volume) => world.remove_device(volume),
            Event::ForceDetach { volume, unlink } => {
                if let Device::Present { linked, detaching, .. } = &mut world.volumes[volume].device {
                    *detaching = true;
                    *linked &= !unlink;
                }
            }
            Event::RemoveLink(volume) => match &mut world.volumes[volume].device {
                Device::Present { linked, .. } => *linked = false,
                device => *device = Device::Absent,
            },
            Event::RestoreLink(volume) => {
                if let Device::Present { linked, .. } = &mut world.volumes[volume].device {
                    *linked = true;
                }
            }
            Event::MisdirectLink(volume) => {
                world.volumes[volume].device = Device::StaleLink(1 - volume);
            }
            Event::ResizeDisk(volume) => {
                let volume = &mut world.volumes[volume];
                volume.resized = true;
                if let Content::Filesystem { undersized, .. } = &mut volume.content {
                    *undersized = true;
                }
            }
            Event::ReplaceDisk { volume, foreign } => {
                let volume = &mut world.volumes[volume];
                volume.resized = false;
                volume.content = match foreign {
                    true => Content::Foreign,
                    false => Content::Blank,
                };
            }
        }
        world.remove_unused_devices();
        world
    }
}
