//! Changes made to instances outside the API.

use super::detach;
use super::distribution::after;
use super::event_queue::Event;
use super::instance::{InstanceRow, NodeSpec, PowerState};
use super::world::World;

pub(crate) const DEFAULT_TYPE: &str = "ecs.g6.large";

fn change(world: &mut World, id: &str, change: impl FnOnce(&mut InstanceRow)) {
    if let Some(row) = world.instances.get_mut(id) {
        change(row);
    }
}

/// Adds a running instance and returns its ID.
pub(crate) fn add_running_instance(world: &mut World, spec: NodeSpec) -> String {
    let id = spec.id.unwrap_or_else(|| format!("i-{}", world.rng.body()));
    let turn = world.instances.len() % world.zones.len().max(1);
    let zone = spec.zone.or_else(|| world.zones.get(turn).cloned());
    // A zone named here is added.
    if let Some(zone) = zone.as_ref().filter(|zone| !world.zones.contains(zone)) {
        world.zones.push(zone.clone());
    }
    let row = InstanceRow {
        id: id.clone(),
        name: format!("node-{}", world.instances.len() + 1),
        instance_type: spec.instance_type.unwrap_or_else(|| DEFAULT_TYPE.to_owned()),
        zone: zone.unwrap_or_default(),
        power: PowerState::Running,
        ready: world.now,
        created: world.now,
        tags: spec.tags,
    };
    world.instances.insert(id.clone(), row);
    id
}

/// The instance in descriptions, with the concurrency tags if all instances attach in parallel.
pub(crate) fn described(world: &World, row: &InstanceRow) -> InstanceRow {
    let mut row = row.clone();
    if !world.config.rules.serial_attach_detach {
        for key in ["supportConcurrencyAttach", "supportConcurrencyDetach"] {
            row.tags.insert(key.to_owned(), "true".to_owned());
        }
    }
    row
}

/// Adds an instance that has to start first, and returns its ID.
pub(crate) fn launch(world: &mut World, spec: NodeSpec) -> String {
    let id = add_running_instance(world, spec);
    change(world, &id, |row| row.power = PowerState::Pending);
    let delay = world.config.delays.power.draw(&mut world.rng);
    let instance = id.clone();
    let to = PowerState::Running;
    world.schedule(delay, Event::PowerState { instance, to });
    id
}

/// Starts or stops an instance. False if it does not exist.
pub(crate) fn set_instance_power(world: &mut World, id: &str, on: bool) -> bool {
    if !world.instances.contains_key(id) {
        return false;
    }
    let (now, then) = if on {
        (PowerState::Starting, PowerState::Running)
    } else {
        (PowerState::Stopping, PowerState::Stopped)
    };
    change(world, id, |row| row.power = now);
    let delay = world.config.delays.power.draw(&mut world.rng);
    let instance = id.to_owned();
    world.schedule(delay, Event::PowerState { instance, to: then });
    true
}

pub(crate) fn power_changed(world: &mut World, id: &str, to: PowerState) {
    let ready = world.config.delays.ready.draw(&mut world.rng);
    let ready = after(world.now, ready);
    change(world, id, |row| {
        row.power = to;
        if to == PowerState::Running {
            row.ready = ready;
        }
    });
}

/// Removes an instance and detaches its disks. False if it does not exist.
pub(crate) fn remove_instance(world: &mut World, id: &str) -> bool {
    if world.instances.remove(id).is_none() {
        return false;
    }
    let held: Vec<String> = world.disks.ids_on(id).cloned().collect();
    for disk in held {
        if world.disks.get(&disk).is_some_and(|row| row.delete_with_instance) {
            world.disks.remove(world.retention(), &disk);
        } else {
            detach::begin_detach(world, &disk, id, false);
        }
    }
    true
}
