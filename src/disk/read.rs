//! Reading one disk.

use super::Result;
use super::error::{Error, wait};
use super::stale_read::settled;
use crate::base::Deadline;
use crate::cloud::view::Poller;
use crate::model::{Disk, DiskId};

/// The disk as it stands.
///
/// # Errors
/// [`Error::NoSuchDisk`] once it can be believed that there is none.
pub(super) async fn read_disk(
    disks: &Poller<DiskId, Disk>,
    deadline: Deadline,
    disk: &DiskId,
) -> Result<Disk> {
    let row = settled(disks, disk, deadline).await;
    let row = row.map_err(wait(format!("look at disk {disk}")))?;
    let row = row.ok_or_else(|| Error::NoSuchDisk { disk: disk.clone() })?;
    Ok(Disk::clone(&row))
}
