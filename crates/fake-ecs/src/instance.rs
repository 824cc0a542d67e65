//! Instances and the changes made to them outside the API.

use std::collections::BTreeMap;
use std::str::FromStr;

use jiff::Timestamp;
use serde::Serialize;

use super::detach;
use super::distribution::after;
use super::event_queue::Event;
use super::id::is_instance;
use super::world::World;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum PowerState {
    Pending,
    Starting,
    Running,
    Stopping,
    Stopped,
}

impl PowerState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Starting => "Starting",
            Self::Running => "Running",
            Self::Stopping => "Stopping",
            Self::Stopped => "Stopped",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct InstanceRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) instance_type: String,
    pub(crate) zone: String,
    pub(crate) power: PowerState,
    /// The time from which disks can be attached.
    pub(crate) ready: Timestamp,
    pub(crate) created: Timestamp,
    pub(crate) tags: BTreeMap<String, String>,
}

/// An instance to create: `ID`, `ID=ZONE`, `ID=TYPE` or `ID=ZONE=TYPE`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeSpec {
    /// Unset, drawn from the seed.
    pub id: Option<String>,
    /// Unset, the zones take turns.
    pub zone: Option<String>,
    /// Unset, the default type.
    pub instance_type: Option<String>,
    pub tags: BTreeMap<String, String>,
}

/// The text is not a [`NodeSpec`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a node: expected i-ID, i-ID=ZONE, i-ID=ecs.TYPE or i-ID=ZONE=ecs.TYPE")]
pub struct InvalidNode(String);

impl FromStr for NodeSpec {
    type Err = InvalidNode;

    fn from_str(text: &str) -> Result<Self, InvalidNode> {
        let mut parts = text.trim().split('=');
        let id = parts.next().unwrap_or_default();
        if !is_instance(id) {
            return Err(InvalidNode(text.to_owned()));
        }
        let mut spec = Self {
            id: Some(id.to_owned()),
            ..Self::default()
        };
        for part in parts {
            let field = if part.starts_with("ecs.") {
                &mut spec.instance_type
            } else {
                &mut spec.zone
            };
            if part.is_empty() || field.replace(part.to_owned()).is_some() {
                return Err(InvalidNode(text.to_owned()));
            }
        }
        Ok(spec)
    }
}

/// The default instance type.
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
        instance_type: spec
            .instance_type
            .unwrap_or_else(|| DEFAULT_TYPE.to_owned()),
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
        if world
            .disks
            .get(&disk)
            .is_some_and(|row| row.delete_with_instance)
        {
            world.disks.remove(world.retention(), &disk);
        } else {
            detach::begin_detach(world, &disk, id, false);
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_spec_can_contain_zone_and_type() {
        let spec: NodeSpec = "i-1=cn-beijing-c=ecs.g8i.large".parse().unwrap();
        assert_eq!(spec.zone.as_deref(), Some("cn-beijing-c"));
        assert_eq!(spec.instance_type.as_deref(), Some("ecs.g8i.large"));
        assert!("node-1".parse::<NodeSpec>().is_err());
        assert!("i-1=a=b".parse::<NodeSpec>().is_err());
    }
}
