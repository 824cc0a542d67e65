//! Instances.

use std::collections::BTreeMap;
use std::str::FromStr;

use jiff::Timestamp;
use serde::Serialize;

use super::id::is_instance;

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
