//! Finding by tags what an earlier call under the same name created.

use super::Snapshotter;
use crate::base::Deadline;
use crate::cloud::DescribeSnapshots;
use crate::disk::Result;
use crate::disk::error::cloud;
use crate::disk::tag_index::readable;
use crate::model::{Snapshot, Tags};

impl Snapshotter {
    /// The snapshot of this name, by its tags; none when there is none yet, or the tag index lags.
    pub(in crate::disk) async fn find(
        &self,
        deadline: Deadline,
        name: &str,
        marks: &Tags,
    ) -> Result<Option<Snapshot>> {
        let query = DescribeSnapshots {
            tags: marks.clone(),
            ..DescribeSnapshots::default()
        };
        let known = self.journal.snapshots.known();
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
}
