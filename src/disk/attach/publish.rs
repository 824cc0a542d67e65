//! Attaching for a use: by one node or several, writable or read-only.
//!
//! Which nodes use a disk read-only is stored on the disk, as a tag for each such node, before the disk is attached there:
//! the cloud's attachments do not say it, and memory does not outlive a restart. An attached disk without such a tag is
//! writable. The tag is removed when the disk has been detached from the node; if that fails, so does the call, and a
//! repeated call removes it.

use super::Attacher;
use super::call::Call;
use crate::base::Deadline;
use crate::cloud::view::Observation;
use crate::cloud::{TagResources, TagTarget, UntagResources};
use crate::disk::Result;
use crate::disk::error::{cloud, refused, wait};
use crate::disk::read::read_disk;
use crate::disk::stale_read::{READ_LAG, StaleReadGuard};
use crate::model::{Disk, DiskId, DiskKind, Failure, InstanceId, tag};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    One,
    /// Several nodes, one of which may write.
    OneWriter,
    Many,
}

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

pub(super) fn is_read_only(row: &Disk, node: &InstanceId) -> bool {
    let value = row.tags.get(&read_only_tag(node));
    value.is_some_and(|value| value == SET)
}

const SET: &str = "true";

impl Attacher {
    /// Attaches the disk to the node for this use. A disk that is attached there for it already is success.
    ///
    /// # Errors
    /// As [`Attacher::attach`]; [`Error::Refused`] when the disk is incompatible with the use.
    pub async fn publish(&self, deadline: Deadline, wanted: &Publish) -> Result<Disk> {
        let Publish { disk, node, .. } = wanted;
        let call = self.call(deadline, disk, node);
        let (mut is_tagged, mut was_cleared) = (false, false);
        if wanted.read_only || wanted.shareable || wanted.share != Share::One {
            let row = read_disk(&self.disks, deadline, disk).await?;
            call.check_share(&row, wanted)?;
            let is_attached =
                call.is_on(&row) || self.journal.attached.is_recent_or_pending(disk, node);
            is_tagged = is_read_only(&row, node);
            // A tag that is left over is removed now. After the attachment it could outlive a crash.
            if !is_attached && is_tagged != wanted.read_only {
                call.set_read_only(wanted.read_only).await?;
                (is_tagged, was_cleared) = (wanted.read_only, !wanted.read_only);
            }
        }
        let (row, is_by_this_call) = call.attach().await?;
        if let Err(error) = call.check_use(&row, wanted) {
            if is_by_this_call {
                call.detach().await?;
            }
            return Err(error);
        }
        let is_tagged = is_tagged || !was_cleared && is_read_only(&row, node);
        if is_tagged != wanted.read_only && is_by_this_call {
            call.set_read_only(wanted.read_only).await?;
        } else if is_tagged != wanted.read_only {
            call.check_read_only(wanted.read_only).await?;
        }
        Ok(row)
    }
}

impl Call<'_> {
    /// Refuses a use for which the disk must not be attached.
    fn check_share(self, row: &Disk, wanted: &Publish) -> Result<()> {
        if wanted.share == Share::One {
            return self.check_use(row, wanted);
        }
        if !row.multi_attach {
            let why = " with an access mode for several nodes: it was not created with multi-attach, which cannot \
                       be changed";
            return Err(self.unfit(Failure::MultiAttachDisabled, why, None));
        }
        let mut holders = self.other_holders(row);
        let writer = holders.find(|holder| !is_read_only(row, holder));
        match writer {
            Some(holder) if wanted.share == Share::OneWriter && !wanted.read_only => {
                let why = format!(
                    " writable: node {holder} may write to it, and the access mode is for one writer"
                );
                Err(self.unfit(Failure::WriterConflict, &why, None))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a use that the cloud would not refuse.
    fn check_use(self, row: &Disk, wanted: &Publish) -> Result<()> {
        if row.kind == DiskKind::System {
            let why = ": it is a system disk, and only data disks are volumes";
            return Err(self.unfit(Failure::SystemDisk, why, None));
        }
        let is_alone = wanted.share == Share::One && row.multi_attach;
        match self.other_holder(row) {
            Some(error) if is_alone => Err(error),
            _ => Ok(()),
        }
    }

    /// Refuses a use other than the one that the disk was attached for. Tags are read with the same lag as rows.
    async fn check_read_only(self, wanted: bool) -> Result<()> {
        let Self { disk, node, .. } = self;
        let mut differs = StaleReadGuard::default();
        let decide = |observation: Observation<Disk>| {
            let agrees = is_read_only(&*observation.row()?, node) == wanted;
            (agrees || differs.holds(READ_LAG)).then_some(agrees)
        };
        let agrees = self.attacher.disks.wait_until(disk, self.deadline, decide);
        let step = format!("read whether disk {disk} is attached to node {node} read-only");
        if agrees.await.map_err(wait(step))? {
            return Ok(());
        }
        let (found, wanted) = if wanted {
            ("writable", "read-only")
        } else {
            ("read-only", "writable")
        };
        let tag = read_only_tag(node);
        let text = format!(
            "disk {disk} is attached to node {node} {found}, not {wanted} as requested (the disk's tag {tag} marks it \
             read-only on that node)"
        );
        Err(refused(Failure::AttachModeConflict, text, None))
    }

    pub(super) async fn set_read_only(self, set: bool) -> Result<()> {
        let ecs = &self.attacher.ecs;
        let targets = TagTarget::Disks(vec![self.disk.clone()]);
        let key = read_only_tag(self.node);
        let tagged = if set {
            let tags = [(key, SET.to_owned())].into();
            let request = TagResources { targets, tags };
            ecs.tag_resources(self.deadline, &request).await
        } else {
            let keys = vec![key];
            let request = UntagResources { targets, keys };
            ecs.untag_resources(self.deadline, &request).await
        };
        let Self { disk, node, .. } = self;
        tagged.map_err(cloud(format!(
            "tag disk {disk} with whether node {node} only reads it"
        )))
    }
}
