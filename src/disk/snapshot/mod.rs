use std::sync::Arc;

use super::dependencies::Dependencies;
use super::evidence::{Creator, Rows};
use crate::model::{Snapshot, SnapshotGroup};

mod create;
mod delete;
mod group;
mod group_delete;

pub(super) use create::failed;
pub use create::{NewSnapshot, SnapshotPurpose};
pub use group::{GroupSnapshot, NewGroupSnapshot};

#[derive(Debug)]
pub struct Snapshotter {
    shared: Dependencies,
    pub(super) creator: Creator<Snapshot>,
    groups: Creator<SnapshotGroup>,
}

impl Snapshotter {
    pub(super) fn new(shared: &Dependencies, rows: Arc<Rows<SnapshotGroup>>) -> Self {
        Self {
            creator: Creator::new(shared, Arc::clone(&shared.snapshots)),
            groups: Creator::new(shared, rows),
            shared: shared.clone(),
        }
    }
}
