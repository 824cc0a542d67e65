//! Finding by tags what an earlier call under the same name created.

use super::Provisioner;
use crate::base::Deadline;
use crate::cloud::DescribeDisks;
use crate::disk::Result;
use crate::disk::error::cloud;
use crate::disk::tag_index::readable;
use crate::model::Disk;

impl Provisioner {
    /// The disk of this CSI name; none when there is none yet, or the tag index lags.
    pub(super) async fn find_disk(&self, deadline: Deadline, name: &str) -> Result<Option<Disk>> {
        let query = DescribeDisks {
            tags: self.owner.tags_of(name),
            ..DescribeDisks::default()
        };
        let known = self.journal.disks.known();
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
}
