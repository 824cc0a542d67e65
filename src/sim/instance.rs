//! Instances: as the world knows them, and what can be done to them from outside the API.

use std::collections::BTreeMap;
use std::str::FromStr;

use jiff::Timestamp;
use serde::Serialize;

use super::agenda::Due;
use super::spread::after;
use super::world::World;

/// What an instance does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum Power {
    Pending,
    Starting,
    Running,
    Stopping,
    Stopped,
}

impl Power {
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

/// An instance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct InstanceRow {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) instance_type: String,
    pub(crate) zone: String,
    pub(crate) power: Power,
    /// From when on it takes disks.
    pub(crate) ready: Timestamp,
    pub(crate) created: Timestamp,
    pub(crate) tags: BTreeMap<String, String>,
}

/// An instance that shall be there: `ID`, `ID=ZONE`, `ID=TYPE` or `ID=ZONE=TYPE`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeSpec {
    /// Its id; none is one drawn from the seed.
    pub id: Option<String>,
    /// Its zone; none is the next one in turn.
    pub zone: Option<String>,
    /// Its type; none is the default type.
    pub instance_type: Option<String>,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
}

/// A text that is no [`NodeSpec`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no node: wanted i-ID, i-ID=ZONE, i-ID=ecs.TYPE or i-ID=ZONE=ecs.TYPE")]
pub struct InvalidNode(String);

impl FromStr for NodeSpec {
    type Err = InvalidNode;

    fn from_str(text: &str) -> Result<Self, InvalidNode> {
        let mut parts = text.trim().split('=');
        let id = parts.next().unwrap_or_default();
        if id.parse::<crate::model::InstanceId>().is_err() {
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

/// The type of an instance that does not say.
pub(crate) const DEFAULT_TYPE: &str = "ecs.g6.large";

impl World {
    pub(crate) fn instance(&self, id: &str) -> Option<&InstanceRow> {
        self.instances.get(id)
    }

    pub(crate) fn change_instance(&mut self, id: &str, change: impl FnOnce(&mut InstanceRow)) {
        if let Some(row) = self.instances.get_mut(id) {
            change(row);
        }
    }

    /// Adds an instance that runs already. Returns its id.
    pub(crate) fn found_instance(&mut self, spec: NodeSpec) -> String {
        let id = spec.id.unwrap_or_else(|| format!("i-{}", self.rng.body()));
        let turn = self.instances.len() % self.zones.len().max(1);
        let zone = spec.zone.or_else(|| self.zones.get(turn).cloned());
        // Who names a zone wants it to be there.
        if let Some(zone) = zone.as_ref().filter(|zone| !self.zones.contains(zone)) {
            self.zones.push(zone.clone());
        }
        let row = InstanceRow {
            id: id.clone(),
            name: format!("node-{}", self.instances.len() + 1),
            instance_type: spec
                .instance_type
                .unwrap_or_else(|| DEFAULT_TYPE.to_owned()),
            zone: zone.unwrap_or_default(),
            power: Power::Running,
            ready: self.now,
            created: self.now,
            tags: spec.tags,
        };
        self.instances.insert(id.clone(), row);
        id
    }

    /// The instance as it is described: where every instance takes disks side by side, it is tagged so.
    pub(crate) fn as_tagged(&self, row: &InstanceRow) -> InstanceRow {
        let mut row = row.clone();
        if !self.config.rules.one_at_a_time {
            for key in ["supportConcurrencyAttach", "supportConcurrencyDetach"] {
                row.tags.insert(key.to_owned(), "true".to_owned());
            }
        }
        row
    }

    /// Adds an instance that has to be made and started first. Returns its id.
    pub(crate) fn add_instance(&mut self, spec: NodeSpec) -> String {
        let id = self.found_instance(spec);
        self.change_instance(&id, |row| row.power = Power::Pending);
        let delay = self.config.delays.power.draw(&mut self.rng);
        let instance = id.clone();
        let to = Power::Running;
        self.plan(delay, Due::Power { instance, to });
        id
    }

    /// Starts or stops an instance. False when it is not there.
    pub(crate) fn switch_instance(&mut self, id: &str, on: bool) -> bool {
        if self.instance(id).is_none() {
            return false;
        }
        let (now, then) = if on {
            (Power::Starting, Power::Running)
        } else {
            (Power::Stopping, Power::Stopped)
        };
        self.change_instance(id, |row| row.power = now);
        let delay = self.config.delays.power.draw(&mut self.rng);
        let instance = id.to_owned();
        self.plan(delay, Due::Power { instance, to: then });
        true
    }

    pub(crate) fn instance_power(&mut self, id: &str, to: Power) {
        let ready = self.config.delays.ready.draw(&mut self.rng);
        let ready = after(self.now, ready);
        self.change_instance(id, |row| {
            row.power = to;
            if to == Power::Running {
                row.ready = ready;
            }
        });
    }

    /// Removes an instance; its disks come off and stay. False when it is not there.
    pub(crate) fn remove_instance(&mut self, id: &str) -> bool {
        if self.instances.remove(id).is_none() {
            return false;
        }
        let held: Vec<String> = self.held_by.of(id).cloned().collect();
        for disk in held {
            if self.disk(&disk).is_some_and(|row| row.delete_with_instance) {
                self.drop_disk(&disk);
            } else {
                self.begin_detach(&disk, id, false);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_may_name_its_zone_and_type() {
        let spec: NodeSpec = "i-1=cn-beijing-c=ecs.g8i.large".parse().unwrap();
        assert_eq!(spec.zone.as_deref(), Some("cn-beijing-c"));
        assert_eq!(spec.instance_type.as_deref(), Some("ecs.g8i.large"));
        assert!("node-1".parse::<NodeSpec>().is_err());
        assert!("i-1=a=b".parse::<NodeSpec>().is_err());
    }
}
