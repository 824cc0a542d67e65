use super::Result;
use super::error::{Error, wait};
use super::evidence::Rows;
use super::owned::OwnedResource;
use crate::base::Deadline;
use crate::model::{Disk, DiskId};

/// The current resource; `None` if it certainly does not exist.
pub(super) async fn read<V: OwnedResource>(rows: &Rows<V>, deadline: Deadline, id: &V::Id) -> Result<Option<V>> {
    read_in_state(rows, deadline, id, |_| true).await
}

/// The resource in the expected state, or after the lag of reads in any state; `None` if it certainly does not exist.
pub(super) async fn read_in_state<V: OwnedResource>(
    rows: &Rows<V>,
    deadline: Deadline,
    id: &V::Id,
    is_expected: impl Fn(&V) -> bool + Send + Sync,
) -> Result<Option<V>> {
    let found = rows.confirm_state(deadline, id, is_expected).await;
    let found = found.map_err(wait(format!("read {} {id}", V::KIND)))?;
    Ok(found.map(|row| V::clone(&row)))
}

/// The current disk, or [`Error::NoSuchDisk`].
pub(super) async fn read_disk(disks: &Rows<Disk>, deadline: Deadline, disk: &DiskId) -> Result<Disk> {
    let found = read(disks, deadline, disk).await?;
    found.ok_or_else(|| Error::NoSuchDisk { disk: disk.clone() })
}
