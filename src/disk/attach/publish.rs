//! Attaching for a use: by one node or several, writable or read-only.
//!
//! Which nodes use a disk read-only is stored on the disk, as a tag for each such node, before the disk is attached there:
//! the cloud's attachments do not say it, and memory does not outlive a restart. An attached disk without such a tag is
//! writable. The tag is removed when the disk has been detached from the node; if that fails, so does the call, and a
//! repeated call removes it.

use super::Attacher;
use super::incompatible::Incompatible;
use crate::base::Deadline;
use crate::cloud::view::Observation;
use crate::cloud::{TagResources, TagTarget, UntagResources};
use crate::disk::Result;
use crate::disk::error::{Error, cloud, wait};
use crate::disk::read::read_disk;
use crate::disk::stale_read::{LAG, StaleReadGuard};
use crate::model::{Disk, DiskId, DiskKind, InstanceId, tag};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    One,
    /// Several nodes, one of which may write.
    OneWriter,
    Many,
}

/// The use that a disk is attached for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    pub disk: DiskId,
    pub node: InstanceId,
    /// Whether the node only reads it.
    pub read_only: bool,
    pub share: Share,
    /// Whether several nodes are known to be able to hold the disk. Optional: it saves detaching the disk again where only
    /// one node may use it.
    pub shareable: bool,
}

fn read_only_tag(node: &InstanceId) -> String {
    format!("{}{node}", tag::READ_ONLY_ON)
}

fn is_read_only(row: &Disk, node: &InstanceId) -> bool {
    row.tags
        .get(&read_only_tag(node))
        .is_some_and(|value| value == SET)
}

const SET: &str = "true";

impl Attacher {
    /// Attaches the disk to the node for this use. A disk that is attached there for it already is success.
    ///
    /// # Errors
    /// As [`Attacher::attach`]; [`Error::Incompatible`] when the disk is incompatible with the use.
    pub async fn publish(&self, deadline: Deadline, wanted: &Publish) -> Result<Disk> {
        let Publish { disk, node, .. } = wanted;
        let (mut is_tagged, mut was_cleared) = (false, false);
        if wanted.read_only || wanted.shareable || wanted.share != Share::One {
            let row = read_disk(&self.disks, deadline, disk).await?;
            self.check_share(&row, wanted)?;
            let is_attached = self.is_on(&row, node) || self.journal.attached.lately(disk, node);
            is_tagged = is_read_only(&row, node);
            if wanted.read_only && !is_attached && !is_tagged {
                self.set_read_only(deadline, disk, node, true).await?;
                is_tagged = true;
            }
            if !wanted.read_only && !is_attached && is_tagged {
                // Left over. Removed only after the attachment, it could outlive a crash.
                self.set_read_only(deadline, disk, node, false).await?;
                (is_tagged, was_cleared) = (false, true);
            }
        }
        let attached = self.attach_tracked(deadline, disk, node).await?;
        if let Err(error) = self.check_use(&attached.row, wanted) {
            if attached.by_this_call {
                self.detach_tracked(deadline, disk, node).await?;
            }
            return Err(error);
        }
        let is_tagged = is_tagged || !was_cleared && is_read_only(&attached.row, node);
        if is_tagged != wanted.read_only {
            if attached.by_this_call {
                self.set_read_only(deadline, disk, node, wanted.read_only)
                    .await?;
            } else {
                self.check_read_only(deadline, wanted).await?;
            }
        }
        Ok(attached.row)
    }

    /// Refuses a use for which the disk must not be attached.
    fn check_share(&self, row: &Disk, wanted: &Publish) -> Result<()> {
        let (disk, node) = (wanted.disk.clone(), wanted.node.clone());
        if wanted.share == Share::One {
            return self.check_use(row, wanted);
        }
        if !row.multi_attach {
            return Err(Incompatible::OneNode { disk, node }.into());
        }
        let mut writers = self
            .other_holders(row, &wanted.node)
            .filter(|holder| !is_read_only(row, holder));
        match writers.next() {
            Some(holder) if wanted.share == Share::OneWriter && !wanted.read_only => {
                let holder = holder.clone();
                Err(Incompatible::SecondWriter { disk, node, holder }.into())
            }
            _ => Ok(()),
        }
    }

    /// Refuses a use that the cloud would not refuse.
    fn check_use(&self, row: &Disk, wanted: &Publish) -> Result<()> {
        let (disk, node) = (wanted.disk.clone(), wanted.node.clone());
        if row.kind == DiskKind::System {
            return Err(Incompatible::System { disk, node }.into());
        }
        let mut others = self.other_holders(row, &wanted.node).cloned();
        match others.next() {
            Some(holder) if wanted.share == Share::One && row.multi_attach => {
                Err(Error::InUseElsewhere { disk, node, holder })
            }
            _ => Ok(()),
        }
    }

    /// Refuses a use other than the one that the disk was attached for. Tags are read with the same lag as rows.
    async fn check_read_only(&self, deadline: Deadline, wanted: &Publish) -> Result<()> {
        let Publish { disk, node, .. } = wanted;
        let mut differs = StaleReadGuard::default();
        let decide = |observation: Observation<Disk>| match observation {
            Observation::Row(row) if is_read_only(&row, node) == wanted.read_only => Some(true),
            Observation::Row(_) => differs.holds(LAG).then_some(false),
            Observation::Missing { .. } => None,
        };
        let agrees = self.disks.until(disk, deadline, decide).await;
        let step = format!("read whether disk {disk} is attached to node {node} read-only");
        if agrees.map_err(wait(step))? {
            return Ok(());
        }
        let (found, wanted) = if wanted.read_only {
            ("writable", "read-only")
        } else {
            ("read-only", "writable")
        };
        Err(Incompatible::ModeConflict {
            disk: disk.clone(),
            node: node.clone(),
            found,
            wanted,
            tag: read_only_tag(node),
        }
        .into())
    }

    /// Removes the tag of a disk that has been detached from the node.
    ///
    /// # Errors
    /// When the tag cannot be removed: it would make the next writer on the node a reader.
    pub(super) async fn clear_read_only(
        &self,
        deadline: Deadline,
        row: &Disk,
        node: &InstanceId,
    ) -> Result<()> {
        if is_read_only(row, node) {
            self.set_read_only(deadline, &row.id, node, false).await?;
        }
        Ok(())
    }

    async fn set_read_only(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
        set: bool,
    ) -> Result<()> {
        let targets = TagTarget::Disks(vec![disk.clone()]);
        let tagged = if set {
            let tags = [(read_only_tag(node), SET.to_owned())].into();
            let request = TagResources { targets, tags };
            self.ecs.tag_resources(deadline, &request).await
        } else {
            let keys = vec![read_only_tag(node)];
            let request = UntagResources { targets, keys };
            self.ecs.untag_resources(deadline, &request).await
        };
        tagged.map_err(cloud(format!(
            "tag disk {disk} with whether node {node} only reads it"
        )))
    }
}
