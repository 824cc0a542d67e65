//! Which disk categories the nodes report as topology.
//!
//! A PersistentVolume keeps the category of its creation in its node affinity, which is immutable. After a change of
//! the category, its pods still run only on nodes that support the old one. So the change is rejected if one of these
//! nodes does not support the new one: a pod there could not attach the disk.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use tonic::Status;

use crate::base::lock;
use crate::cluster::nodes::Nodes;
use crate::csi::status;
use crate::disk::NewDisk;
use crate::model::{Category, Disk, Failure};

/// Nodes of one instance type report the same categories.
const MAX_SETS: usize = 200;

type Sets = BTreeSet<BTreeSet<Category>>;

/// Clones share the state.
#[derive(Debug, Clone, Default)]
pub(super) struct NodeCategories {
    /// The CSINodes, if the API server is used.
    pub(super) nodes: Option<Nodes>,
    /// The categories of nodes in earlier requests, for a controller without the API server.
    requested: Arc<Mutex<Sets>>,
}

impl NodeCategories {
    pub(super) fn record(&self, new: &NewDisk) {
        let sets = new.zones.iter().filter_map(|zone| zone.supported.as_ref());
        let mut requested = lock(&self.requested);
        for set in sets {
            if requested.len() < MAX_SETS && !requested.contains(set) {
                requested.insert(set.clone());
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sets().is_empty()
    }

    /// Rejects a change after which pods could be scheduled to nodes that cannot attach the disk.
    pub(super) fn check(&self, row: &Disk, to: &Category) -> Result<(), Status> {
        let from = &row.category;
        let strands = |set: &BTreeSet<Category>| set.contains(from) && !set.contains(to);
        if !self.sets().iter().any(strands) {
            return Ok(());
        }
        let text = format!(
            "disk {} cannot become {to}: some nodes support {from} and not {to}, and the node affinity of its PersistentVolume, \
             which cannot be changed, may select them",
            row.id
        );
        Err(status::with_advice(Failure::ModifyRejected, &text))
    }

    fn sets(&self) -> Sets {
        let current = self.nodes.as_ref().and_then(Nodes::categories);
        current.unwrap_or_else(|| lock(&self.requested).clone())
    }
}
