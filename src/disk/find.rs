//! Finding by tags what an earlier call under the same name created.

use std::future::Future;
use std::time::Duration;

use super::error::{Error, cloud};
use super::missing::settled;
use super::{Disks, Result};
use crate::base::Deadline;
use crate::cloud::{self, DescribeDisks, DescribeSnapshots, Kind, Page};
use crate::model::{Disk, DiskId, Snapshot, Tags};

/// How often the tags are looked at before a token that was used otherwise is given up.
const LOOKS_FOR_LAGGING_TAGS: u32 = 5;

/// Looks again until the tag index has had time to catch up.
pub(super) async fn lagging<T, F>(
    deadline: Deadline,
    mut find: impl FnMut() -> F,
) -> Result<Option<T>>
where
    F: Future<Output = Result<Option<T>>>,
{
    for look in 0..LOOKS_FOR_LAGGING_TAGS {
        let found = find().await?;
        if found.is_some() {
            return Ok(found);
        }
        let pause = Duration::from_millis(500) * (look + 1);
        let _ = deadline.bound(tokio::time::sleep(pause)).await;
    }
    Ok(None)
}

/// A row that carries the tags and makes no sense is still what the name has: making another one
/// would leave this one behind.
pub(super) fn readable<T>(page: &Page<T>, action: &'static str) -> cloud::Result<()> {
    match page.unreadable.first() {
        None => Ok(()),
        Some(row) => Err(cloud::Error::new(Kind::Ambiguous, action).with_source(row.clone())),
    }
}

impl Disks {
    /// The disk of this CSI name; none when there is none yet, or the tag index lags.
    pub(super) async fn find_disk(&self, deadline: Deadline, name: &str) -> Result<Option<Disk>> {
        let query = DescribeDisks {
            tags: self.tags(name),
            ..DescribeDisks::default()
        };
        let known = self.recent.disks.known();
        let page = self.ecs.describe_disks(deadline, &query).await;
        let look = || format!("look for an earlier disk of {name:?}");
        let page = page.map_err(cloud(look()))?;
        readable(&page, "DescribeDisks").map_err(cloud(look()))?;
        if page.rows.len() > 1 {
            let ids: Vec<_> = page.rows.iter().map(|disk| disk.id.as_str()).collect();
            tracing::error!(
                volume.name = name,
                disk.ids = ids.join(","),
                "one name has several disks"
            );
        }
        // The oldest: whoever was answered first was told of that one.
        Ok(page
            .rows
            .into_iter()
            .filter(|disk| !known.is_gone(&disk.id))
            .min_by_key(|disk| (disk.created, disk.id.clone())))
    }

    /// The snapshot of this name, by its tags; none when there is none yet, or the tag index lags.
    pub(super) async fn find_snapshot(
        &self,
        deadline: Deadline,
        name: &str,
        marks: &Tags,
    ) -> Result<Option<Snapshot>> {
        let query = DescribeSnapshots {
            tags: marks.clone(),
            ..DescribeSnapshots::default()
        };
        let known = self.recent.snapshots.known();
        let page = self.ecs.describe_snapshots(deadline, &query).await;
        let look = || format!("look for an earlier snapshot of {name:?}");
        let page = page.map_err(cloud(look()))?;
        readable(&page, "DescribeSnapshots").map_err(cloud(look()))?;
        Ok(page
            .rows
            .into_iter()
            .filter(|row| !known.is_gone(&row.id))
            .min_by_key(|row| (row.created, row.id.clone())))
    }

    /// The disk as it stands.
    ///
    /// # Errors
    /// [`Error::NoSuchDisk`] once it can be believed that there is none.
    pub async fn disk(&self, deadline: Deadline, disk: &DiskId) -> Result<Disk> {
        let row = settled(&self.disks, disk, deadline).await;
        let row = row.map_err(super::error::wait(format!("look at disk {disk}")))?;
        let row = row.ok_or_else(|| Error::NoSuchDisk { disk: disk.clone() })?;
        Ok(Disk::clone(&row))
    }
}
