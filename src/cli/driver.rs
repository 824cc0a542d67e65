//! The name of the driver, and the cluster that owns its disks.

use clap::Args;

use super::Location;
use crate::model::driver::DRIVER;
use crate::model::{ClusterId, DriverName};

#[derive(Debug, Args)]
pub struct DriverArgs {
    /// Name under which the driver is registered. Two drivers in one cluster need different names
    /// and different cluster IDs.
    #[arg(long, env = "DISKPLUGIN_DRIVER_NAME", default_value = DRIVER)]
    pub driver_name: DriverName,
}

#[derive(Debug, Args)]
pub struct OwnerArgs {
    /// ID of this cluster, unique in the account. Disks and snapshots are tagged with it; the driver lists and
    /// deletes only those with this tag.
    #[arg(long, env = "DISKPLUGIN_CLUSTER_ID")]
    pub cluster_id: Option<ClusterId>,
}

impl OwnerArgs {
    /// The cluster ID, which has no default: two clusters with the same ID would own each other's disks.
    pub fn id(self, problems: &mut Location<'_>) -> Option<ClusterId> {
        if self.cluster_id.is_none() {
            problems.problem(
                "--cluster-id is not set: set an ID that is unique in the account; the disks of this cluster are \
                 tagged with it",
            );
        }
        self.cluster_id
    }
}
