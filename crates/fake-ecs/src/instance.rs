//! Instances.

use std::collections::BTreeMap;
use std::str::FromStr;

use jiff::Timestamp;
use serde::Serialize;

use super::id::is_instance;
use super::invalid_text::InvalidText;

const EXPECTED: &str = "a node: expected i-ID, i-ID=ZONE, i-ID=ecs.TYPE or i-ID=ZONE=ecs.TYPE";

/// The names are those of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) enum PowerState {
    Pending,
    Starting,
    Running,
    Stopping,
    Stopped,
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
    /// Unset, zones are assigned in rotation.
    pub zone: Option<String>,
    /// Unset, the default type.
    pub instance_type: Option<String>,
    pub tags: BTreeMap<String, String>,
}

impl FromStr for NodeSpec {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, InvalidText> {
        let mut parts = text.trim().split('=');
        let id = parts.next().unwrap_or_default();
        if !is_instance(id) {
            return Err(InvalidText(text.to_owned(), EXPECTED));
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
                return Err(InvalidText(text.to_owned(), EXPECTED));
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
