//! Reading one resource.

use super::Result;
use super::error::{Error, wait};
use super::owned::Owned;
use crate::base::Deadline;
use crate::cloud::view::Poller;
use crate::model::{Disk, DiskId};

/// The resource as it stands; none if there certainly is none.
pub(super) async fn read<V: Owned>(
    rows: &Poller<V::Id, V>,
    deadline: Deadline,
    id: &V::Id,
) -> Result<Option<V>> {
    read_as(rows, deadline, id, |_| true).await
}

/// The resource in the expected state; after the lag of reads in any state, or none if there certainly is none.
pub(super) async fn read_as<V: Owned>(
    rows: &Poller<V::Id, V>,
    deadline: Deadline,
    id: &V::Id,
    is_expected: impl Fn(&V) -> bool + Send + Sync,
) -> Result<Option<V>> {
    let found = rows.confirm_state(id, deadline, is_expected).await;
    let found = found.map_err(wait(format!("read {} {id}", V::KIND)))?;
    Ok(found.row().map(|row| V::clone(&row)))
}

/// The disk as it stands, which must exist.
pub(super) async fn read_disk(
    disks: &Poller<DiskId, Disk>,
    deadline: Deadline,
    disk: &DiskId,
) -> Result<Disk> {
    let found = read(disks, deadline, disk).await?;
    found.ok_or_else(|| Error::NoSuchDisk { disk: disk.clone() })
}
