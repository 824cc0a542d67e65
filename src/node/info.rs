//! What the node says about itself.

use super::Node;
use crate::model::{Category, InstanceId, ZoneId};

/// What the cluster needs to know of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Its id.
    pub id: InstanceId,
    /// Its zone: disks live in one zone.
    pub zone: ZoneId,
    /// How many volumes it takes; none leaves that to the cluster.
    pub max_volumes: Option<u32>,
    /// The categories of disks that it takes; empty where nobody says, and then any may go to it.
    pub categories: Vec<Category>,
}

impl Node {
    /// The node's id, zone, limit and categories.
    #[must_use]
    pub fn info(&self) -> Info {
        Info {
            id: self.settings.id.clone(),
            zone: self.settings.zone.clone(),
            max_volumes: self.settings.max_volumes,
            categories: self.settings.categories.clone(),
        }
    }
}
