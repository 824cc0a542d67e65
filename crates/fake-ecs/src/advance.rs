//! Executes the events that are due.

use jiff::Timestamp;

use super::effect;
use super::event_queue::Event;
use super::instance_changes;
use super::world::{InitialState, World};
use super::{attach, create, create_snapshot, delete_snapshot, detach, modify, resize};

/// The initial state, with the configured instances.
pub(crate) fn populated(mut initial_state: InitialState, now: Timestamp) -> World {
    let nodes = std::mem::take(&mut initial_state.nodes);
    let mut world = World::new(initial_state, now);
    for spec in nodes {
        instance_changes::add_running_instance(&mut world, spec);
    }
    world
}

/// Executes all events that are due at `now`. The time of the state never decreases.
pub(crate) fn advance(world: &mut World, now: Timestamp) {
    let now = now.max(world.now);
    while let Some((at, due)) = world.events.pop(now) {
        world.now = world.now.max(at);
        begin(world, due);
    }
    world.now = now;
}

/// Reports that an effect is complete.
pub(crate) fn complete(world: &mut World, now: Timestamp, effect: u64, success: bool) {
    advance(world, now);
    if let Some(due) = world.effects.end(effect) {
        finish(world, due, success);
    }
}

fn begin(world: &mut World, due: Event) {
    match effect::work_of(&world.disks, &world.snapshots, &due) {
        Some(work) if world.effects.backed() => world.effects.start(work, due),
        _ => finish(world, due, true),
    }
}

fn finish(world: &mut World, due: Event, success: bool) {
    match due {
        Event::Created { disk } => create::create_finished(world, &disk, success),
        Event::Loaded { disk } => {
            world.disks.change(world.retention(), &disk, |row| row.loading = false);
        }
        Event::Attached { disk, instance } => {
            attach::attach_finished(world, &disk, &instance, success);
        }
        Event::AttachFailed { disk, instance } => {
            attach::attach_finished(world, &disk, &instance, false);
        }
        Event::Detached { disk, instance } => detach::detach_finished(world, &disk, &instance),
        Event::Resized { disk, size, .. } => {
            resize::resize_finished(world, &disk, size, success);
        }
        Event::Modified { task, success } => modify::modify_finished(world, &task, success),
        Event::Deleted { disk, .. } => world.disks.remove(world.retention(), &disk),
        Event::Vanished { disk } => create::create_finished(world, &disk, false),
        Event::Cut { snapshot } => create_snapshot::snapshot_captured(world, &snapshot, success),
        Event::Accomplished { snapshot } => {
            create_snapshot::snapshot_accomplished(world, &snapshot);
        }
        Event::SnapshotFailed { snapshot } => create_snapshot::snapshot_failed(world, &snapshot),
        Event::SnapshotExpired { snapshot } => delete_snapshot::snapshot_expired(world, &snapshot),
        Event::SnapshotDeleted { .. } => {}
        Event::PowerState { instance, to } => instance_changes::power_changed(world, &instance, to),
    }
}
