//! Publishes a disk to one node or several, writable or read-only (CSI `ControllerPublishVolume`).
//!
//! The cloud's attachments have no read-only mode. So a tag on the disk marks each node that uses it read-only, and is
//! set before the attach, in order to survive a restart. An attached disk without such a tag is writable. The tag is
//! removed after the detach; if that fails, so does the call, and a retry removes it.

use ecs::poll::Observation;
use ecs::{DiskAttribute, Kind, ModifyDiskAttribute, TagResources, TagTarget, UntagResources};

use super::Attacher;
use super::call::Call;
use crate::base::Deadline;
use crate::disk::Result;
use crate::disk::error::{cloud, rejected, wait};
use crate::disk::read::read_disk;
use crate::disk::stale_read::{READ_LAG, StaleReadGuard};
use crate::model::{Disk, DiskId, DiskKind, Failure, InstanceId, tag};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeAccess {
    SingleNode,
    MultiNodeSingleWriter,
    MultiNode,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublishRequest {
    pub disk: DiskId,
    pub node: InstanceId,
    pub read_only: bool,
    pub access: NodeAccess,
    /// Whether the disk is known to be multi-attach. Optional: `true` avoids an attach that has to be reverted.
    pub multi_attach: bool,
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
    /// As [`Attacher::attach`], with an access mode. Fails if the disk does not support it, or is attached with another
    /// one.
    pub async fn publish(&self, deadline: Deadline, wanted: &PublishRequest) -> Result<Disk> {
        let PublishRequest { disk, node, .. } = wanted;
        let call = self.call(deadline, disk, node);
        if let Some(row) = call.published(wanted).await? {
            return Ok(row);
        }
        let (mut is_tagged, mut was_cleared) = (false, false);
        if wanted.read_only || wanted.multi_attach || wanted.access != NodeAccess::SingleNode {
            let row = read_disk(&self.disks, deadline, disk).await?;
            call.check_access(&row, wanted)?;
            let is_attached = call.is_attached(&row) || self.journal.attached.is_recent(disk, node);
            is_tagged = is_read_only(&row, node);
            // A leftover tag is removed before the attach, so that it cannot remain after a crash.
            if !is_attached && is_tagged != wanted.read_only {
                call.set_read_only(wanted.read_only).await?;
                (is_tagged, was_cleared) = (wanted.read_only, !wanted.read_only);
            }
        }
        let (row, is_by_this_call) = call.attach().await?;
        if let Err(error) = call.check_attached(&row, wanted) {
            if is_by_this_call {
                call.detach().await?;
            }
            return Err(error);
        }
        if row.is_lost_with_instance() {
            call.keep_without_instance().await?;
        }
        let is_tagged = is_tagged || !was_cleared && is_read_only(&row, node);
        if is_tagged != wanted.read_only && is_by_this_call {
            call.set_read_only(wanted.read_only).await?;
        } else if is_tagged != wanted.read_only {
            call.check_read_only(wanted.read_only).await?;
        }
        self.journal.published.record(disk, node);
        Ok(row)
    }
}

impl Call<'_> {
    /// The row of a disk that this process has already published, if it shows the requested attachment. csi-attacher
    /// publishes again what it does not find in ListVolumes, and `AttachDisk` would only be rejected.
    async fn published(self, wanted: &PublishRequest) -> Result<Option<Disk>> {
        let attacher = self.attacher;
        if !attacher.journal.published.contains(self.disk, self.node) {
            return Ok(None);
        }
        let row = read_disk(&attacher.disks, self.deadline, self.disk).await?;
        let is_published = self.is_attached(&row)
            && !row.is_lost_with_instance()
            && is_read_only(&row, self.node) == wanted.read_only
            && self.check_attached(&row, wanted).is_ok();
        Ok(is_published.then_some(row))
    }

    /// Rejects access for which the disk must not be attached.
    fn check_access(self, row: &Disk, wanted: &PublishRequest) -> Result<()> {
        if wanted.access == NodeAccess::SingleNode {
            return self.check_attached(row, wanted);
        }
        if !row.multi_attach {
            let why = " with an access mode for several nodes: it was not created with multi-attach, which cannot \
                       be changed";
            return Err(self.cannot_attach(Failure::MultiAttachDisabled, why, None));
        }
        let mut holders = self.other_holders(row);
        let writer = holders.find(|holder| !is_read_only(row, holder));
        match writer {
            Some(holder) if wanted.access == NodeAccess::MultiNodeSingleWriter && !wanted.read_only => {
                let why = format!(" writable: node {holder} may write to it, and the access mode is for one writer");
                Err(self.cannot_attach(Failure::WriterConflict, &why, None))
            }
            _ => Ok(()),
        }
    }

    /// Rejects access that the cloud would accept.
    fn check_attached(self, row: &Disk, wanted: &PublishRequest) -> Result<()> {
        if row.kind == DiskKind::System {
            let why = ": it is a system disk, and only data disks are volumes";
            return Err(self.cannot_attach(Failure::SystemDisk, why, None));
        }
        let is_exclusive = wanted.access == NodeAccess::SingleNode && row.multi_attach;
        match self.other_holder_error(row) {
            Some(error) if is_exclusive => Err(error),
            _ => Ok(()),
        }
    }

    /// Rejects an access mode other than that of the existing attachment. Tags are as stale as rows.
    async fn check_read_only(self, wanted: bool) -> Result<()> {
        let Self { disk, node, .. } = self;
        let mut differs = StaleReadGuard::default();
        let decide = |observation: Observation<Disk>| {
            let agrees = is_read_only(&*observation.row()?, node) == wanted;
            (agrees || differs.confirmed_after(READ_LAG)).then_some(agrees)
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
        Err(rejected(Failure::AttachModeConflict, text, None))
    }

    /// Keeps the disk if its instance is deleted. An attachment by the driver does that already, others may not.
    async fn keep_without_instance(self) -> Result<()> {
        let Self { disk, node, .. } = self;
        let request = ModifyDiskAttribute {
            disk: disk.clone(),
            attribute: DiskAttribute::DeleteWithInstance(false),
        };
        let ecs = &self.attacher.ecs;
        match ecs.modify_disk_attribute(self.deadline, &request).await {
            Ok(()) => {
                tracing::warn!(
                    disk.id = %disk,
                    node.id = %node,
                    "the disk would have been deleted with its instance, which is now disabled"
                );
                Ok(())
            }
            Err(error) if error.kind() == Kind::Denied => {
                let text = format!("disk {disk} would be deleted with node {node}, and this cannot be disabled");
                Err(rejected(Failure::DeletedWithInstance, text, error))
            }
            Err(error) => Err(cloud(format!("disable the deletion of disk {disk} with node {node}"))(
                error,
            )),
        }
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
            "tag disk {disk} as read-only or writable on node {node}"
        )))
    }
}
