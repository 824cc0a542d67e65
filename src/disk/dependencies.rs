//! Dependencies that the services of one cluster share.

use std::sync::Arc;

use super::journal::Journal;
use super::ownership::Owner;
use crate::base::Tasks;
use crate::cloud::EcsApi;
use crate::cloud::view::Poller;
use crate::model::{Disk, DiskId, Snapshot, SnapshotId};

#[derive(Debug, Clone)]
pub(super) struct Dependencies {
    pub(super) ecs: Arc<dyn EcsApi>,
    pub(super) disks: Arc<Poller<DiskId, Disk>>,
    pub(super) snapshots: Arc<Poller<SnapshotId, Snapshot>>,
    pub(super) owner: Owner,
    pub(super) journal: Arc<Journal>,
    pub(super) tasks: Tasks,
}
