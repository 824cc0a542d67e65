use std::sync::Arc;

use ecs::Client;

use super::evidence::{Nodes, Rows};
use super::journal::Journal;
use super::ownership::Owner;
use crate::base::Tasks;
use crate::model::{Disk, Snapshot};

#[derive(Debug, Clone)]
pub(super) struct Dependencies {
    pub(super) ecs: Arc<Client>,
    pub(super) disks: Arc<Rows<Disk>>,
    pub(super) snapshots: Arc<Rows<Snapshot>>,
    pub(super) owner: Owner,
    pub(super) nodes: Arc<Nodes>,
    pub(super) journal: Arc<Journal>,
    pub(super) tasks: Tasks,
}
