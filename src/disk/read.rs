//! Reading one disk.

use super::Result;
use super::error::{Error, wait};
use crate::base::Deadline;
use crate::cloud::view::{Poller, Presence};
use crate::model::{Disk, DiskId};

/// The disk as it stands.
pub(super) async fn read_disk(
    disks: &Poller<DiskId, Disk>,
    deadline: Deadline,
    disk: &DiskId,
) -> Result<Disk> {
    let found = disks.settle(disk, deadline).await;
    match found.map_err(wait(format!("look at disk {disk}")))? {
        Presence::Row(row) => Ok(Disk::clone(&row)),
        Presence::Absent(_) => Err(Error::NoSuchDisk { disk: disk.clone() }),
    }
}
