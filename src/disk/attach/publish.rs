//! Attaching for a use: by one node or by several, to write or only to read.
//!
//! Which nodes only read a disk is written on the disk itself, as a tag for each such node, before the
//! disk is attached there. The cloud's own attachments do not say it, and memory would not outlive a
//! restart. A disk that is attached and has no such tag can be written to. The tag is taken off when
//! the disk has left the node; should that fail, so does the call, and its repetition takes it off.

use super::Attacher;
use super::incompatible::Incompatible;
use crate::base::Deadline;
use crate::cloud::view::Seen;
use crate::cloud::{TagResources, TagTarget, UntagResources};
use crate::disk::Result;
use crate::disk::error::{Error, cloud, wait};
use crate::disk::read::read_disk;
use crate::disk::stale_read::{LAG, StaleReadGuard};
use crate::model::{Disk, DiskId, DiskKind, InstanceId, tag};

/// How many nodes use the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// One.
    One,
    /// Several, one of which may write.
    OneWriter,
    /// Several.
    Many,
}

/// A disk that is wanted on a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    /// The disk.
    pub disk: DiskId,
    /// The node.
    pub node: InstanceId,
    /// Whether the node only reads it.
    pub read_only: bool,
    /// How many nodes use it.
    pub share: Share,
    /// Whether it is known that several nodes could hold it. Not needed, but it saves taking the disk off
    /// again where only one shall.
    pub shareable: bool,
}

/// The tag of a disk that the node only reads.
fn mark(node: &InstanceId) -> String {
    format!("{}{node}", tag::READ_ONLY_ON)
}

fn is_marked(row: &Disk, node: &InstanceId) -> bool {
    row.tags.get(&mark(node)).is_some_and(|value| value == SET)
}

const SET: &str = "true";

impl Attacher {
    /// Attaches the disk to the node for this use, or finds it attached there for it.
    ///
    /// # Errors
    /// As [`Attacher::attach`]; [`Error::Incompatible`] when disk and use do not go together.
    pub async fn publish(&self, deadline: Deadline, wanted: &Publish) -> Result<Disk> {
        let Publish { disk, node, .. } = wanted;
        let (mut marked, mut cleared) = (false, false);
        if wanted.read_only || wanted.shareable || wanted.share != Share::One {
            let row = read_disk(&self.disks, deadline, disk).await?;
            self.may_share(&row, wanted)?;
            let there = self.is_on(&row, node) || self.journal.attached.lately(disk, node);
            marked = is_marked(&row, node);
            if wanted.read_only && !there && !marked {
                self.tag(deadline, disk, node, true).await?;
                marked = true;
            }
            if !wanted.read_only && !there && marked {
                // Left over. Taken off only after the attachment, it could outlive a crash.
                self.tag(deadline, disk, node, false).await?;
                (marked, cleared) = (false, true);
            }
        }
        let there = self.attach_tracked(deadline, disk, node).await?;
        if let Err(error) = self.fits(&there.row, wanted) {
            if there.fresh {
                self.detach_tracked(deadline, disk, node).await?;
            }
            return Err(error);
        }
        let marked = marked || !cleared && is_marked(&there.row, node);
        if marked != wanted.read_only {
            if there.fresh {
                self.tag(deadline, disk, node, wanted.read_only).await?;
            } else {
                self.agrees(deadline, wanted).await?;
            }
        }
        Ok(there.row)
    }

    /// What can be told before anything is done.
    fn may_share(&self, row: &Disk, wanted: &Publish) -> Result<()> {
        let (disk, node) = (wanted.disk.clone(), wanted.node.clone());
        if wanted.share == Share::One {
            return self.fits(row, wanted);
        }
        if !row.multi_attach {
            return Err(Incompatible::OneNode { disk, node }.into());
        }
        let mut writers = self
            .holders_beside(row, &wanted.node)
            .filter(|holder| !is_marked(row, holder));
        match writers.next() {
            Some(holder) if wanted.share == Share::OneWriter && !wanted.read_only => {
                let holder = holder.clone();
                Err(Incompatible::SecondWriter { disk, node, holder }.into())
            }
            _ => Ok(()),
        }
    }

    /// What the cloud would not refuse.
    fn fits(&self, row: &Disk, wanted: &Publish) -> Result<()> {
        let (disk, node) = (wanted.disk.clone(), wanted.node.clone());
        if row.kind == DiskKind::System {
            return Err(Incompatible::System { disk, node }.into());
        }
        let mut others = self.holders_beside(row, &wanted.node).cloned();
        match others.next() {
            Some(holder) if wanted.share == Share::One && row.multi_attach => {
                Err(Error::InUseElsewhere { disk, node, holder })
            }
            _ => Ok(()),
        }
    }

    /// Whether the disk was attached there for this use. A tag may be as old as any description.
    async fn agrees(&self, deadline: Deadline, wanted: &Publish) -> Result<()> {
        let Publish { disk, node, .. } = wanted;
        let mut differs = StaleReadGuard::default();
        let agrees = |seen: Seen<Disk>| match seen {
            Seen::Row(row) if is_marked(&row, node) == wanted.read_only => Some(true),
            Seen::Row(_) | Seen::Missing { .. } => differs.holds(LAG).then_some(false),
            Seen::Failed(_) => None,
        };
        let step = || format!("look how disk {disk} is attached to node {node}");
        if self
            .disks
            .until(disk, deadline, agrees)
            .await
            .map_err(wait(step()))?
        {
            return Ok(());
        }
        let (found, wanted) = if wanted.read_only {
            ("to be written", "read-only")
        } else {
            ("read-only", "to be written")
        };
        Err(Incompatible::Incompatible {
            disk: disk.clone(),
            node: node.clone(),
            found,
            wanted,
            tag: mark(node),
        }
        .into())
    }

    /// The disk is off the node: nobody reads it there any more.
    ///
    /// # Errors
    /// When the tag stays: it would make the next writer there a reader.
    pub(super) async fn unmark(
        &self,
        deadline: Deadline,
        row: &Disk,
        node: &InstanceId,
    ) -> Result<()> {
        if is_marked(row, node) {
            self.tag(deadline, &row.id, node, false).await?;
        }
        Ok(())
    }

    async fn tag(
        &self,
        deadline: Deadline,
        disk: &DiskId,
        node: &InstanceId,
        set: bool,
    ) -> Result<()> {
        let targets = TagTarget::Disks(vec![disk.clone()]);
        let tagged = if set {
            let tags = [(mark(node), SET.to_owned())].into();
            let request = TagResources { targets, tags };
            self.ecs.tag_resources(deadline, &request).await
        } else {
            let keys = vec![mark(node)];
            let request = UntagResources { targets, keys };
            self.ecs.untag_resources(deadline, &request).await
        };
        tagged.map_err(cloud(format!(
            "note on disk {disk} whether node {node} only reads it"
        )))
    }
}
