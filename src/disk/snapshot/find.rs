//! Finding by tags what an earlier call under the same name created.

use super::Snapshotter;
use crate::base::Deadline;
use crate::cloud::DescribeSnapshots;
use crate::disk::Result;
use crate::disk::error::cloud;
use crate::disk::tag_index::readable;
use crate::model::{Snapshot, Tags};

impl Snapshotter {
    /// The oldest snapshot of this name, by its tags, except the one that is gone; none if there is none yet, or the tag
    /// index lags.
    pub(in crate::disk) async fn find(
        &self,
        deadline: Deadline,
        name: &str,
        marks: &Tags,
        gone: Option<&str>,
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
            .filter(|row| !known.is_gone(&row.id) && gone != Some(row.id.as_str()))
            .min_by_key(|row| (row.created, row.id.clone())))
    }
}
