//! Publishes a disk to one node or several, writable or read-only (CSI `ControllerPublishVolume`).
//!
//! The cloud's attachments have no read-only mode. So a tag on the disk marks each node that uses it read-only, and is
//! set before the attach, in order to survive a restart. An attached disk without such a tag is writable. The tag is
//! removed after the detach; if that fails, so does the call, and a retry removes it.

use std::sync::Arc;

use ecs::{DiskAttribute, Kind, ModifyDiskAttribute};

use super::attach::Attacher;
use super::attachments::Attachments;
use super::detach::Detacher;
use super::read_only::{self, is_read_only};
use super::target::Target;
use crate::base::Deadline;
use crate::disk::Result;
use crate::disk::error::{cloud, rejected};
use crate::disk::read::read_disk;
use crate::model::{Disk, DiskId, DiskKind, Failure, InstanceId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeAccess {
    SingleNode,
    MultiNodeSingleWriter,
    MultiNode,
    /// Readers of a filesystem, which becomes stale or corrupt for them if another node writes.
    MultiNodeReaders,
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

#[derive(Debug)]
pub struct Publisher(pub(in crate::disk) Arc<Attachments>);

impl Publisher {
    /// As [`Attacher::attach`], with an access mode. Fails if the disk does not support it, or is attached with another
    /// one.
    pub async fn publish(&self, deadline: Deadline, wanted: &PublishRequest) -> Result<Disk> {
        let PublishRequest { disk, node, .. } = wanted;
        let target = self.0.target(deadline, disk, node);
        let journal = &self.0.journal;
        if let Some(row) = self.published(target, wanted).await? {
            return Ok(row);
        }
        let (mut is_tagged, mut was_cleared) = (false, false);
        if wanted.read_only || wanted.multi_attach || wanted.access != NodeAccess::SingleNode {
            let row = read_disk(&self.0.disks, deadline, disk).await?;
            self.check_access(target, &row, wanted)?;
            let is_attached = self.0.is_attached(target, &row) || journal.attached.is_recent(disk, node);
            is_tagged = is_read_only(&row, node);
            // A leftover tag is removed before the attach, so that it cannot remain after a crash.
            if !is_attached && is_tagged != wanted.read_only {
                read_only::set(&self.0, target, wanted.read_only).await?;
                (is_tagged, was_cleared) = (wanted.read_only, !wanted.read_only);
            }
        }
        let (row, is_by_this_call) = Attacher(Arc::clone(&self.0)).attach_target(target).await?;
        if let Err(error) = self.check_attached(target, &row, wanted) {
            if is_by_this_call {
                Detacher(Arc::clone(&self.0)).detach_target(target).await?;
            }
            return Err(error);
        }
        if row.is_lost_with_instance() {
            self.keep_without_instance(target).await?;
        }
        let is_tagged = is_tagged || !was_cleared && is_read_only(&row, node);
        if is_tagged != wanted.read_only && is_by_this_call {
            read_only::set(&self.0, target, wanted.read_only).await?;
        } else if is_tagged != wanted.read_only {
            read_only::check(&self.0, target, wanted.read_only).await?;
        }
        journal.published.record(disk, node);
        Ok(row)
    }

    /// The row of a disk that this process has already published, if it shows the requested attachment. csi-attacher
    /// publishes again what it does not find in ListVolumes, and `AttachDisk` would only be rejected.
    async fn published(&self, target: Target<'_>, wanted: &PublishRequest) -> Result<Option<Disk>> {
        if !self.0.journal.published.contains(target.disk, target.node) {
            return Ok(None);
        }
        let row = read_disk(&self.0.disks, target.deadline, target.disk).await?;
        let is_published = self.0.is_attached(target, &row)
            && !row.is_lost_with_instance()
            && is_read_only(&row, target.node) == wanted.read_only
            && self.check_attached(target, &row, wanted).is_ok();
        Ok(is_published.then_some(row))
    }

    /// Rejects access for which the disk must not be attached.
    fn check_access(&self, target: Target<'_>, row: &Disk, wanted: &PublishRequest) -> Result<()> {
        if wanted.access == NodeAccess::SingleNode {
            return self.check_attached(target, row, wanted);
        }
        if !row.multi_attach {
            let why = " with an access mode for several nodes: it was not created with multi-attach, which cannot \
                       be changed";
            return Err(target.cannot_attach(Failure::MultiAttachDisabled, why, None));
        }
        let mut holders = self.0.other_holders(target, row);
        let writer = holders.find(|holder| !is_read_only(row, holder));
        match writer {
            Some(holder) if wanted.access == NodeAccess::MultiNodeSingleWriter && !wanted.read_only => {
                let why = format!(" writable: node {holder} may write to it, and the access mode is for one writer");
                Err(target.cannot_attach(Failure::WriterConflict, &why, None))
            }
            Some(holder) if wanted.access == NodeAccess::MultiNodeReaders => {
                let why = format!(" for readers of its filesystem: node {holder} may write to it");
                Err(target.cannot_attach(Failure::WriterConflict, &why, None))
            }
            _ => Ok(()),
        }
    }

    fn check_attached(&self, target: Target<'_>, row: &Disk, wanted: &PublishRequest) -> Result<()> {
        if row.kind == DiskKind::System {
            let why = ": it is a system disk, and only data disks are volumes";
            return Err(target.cannot_attach(Failure::SystemDisk, why, None));
        }
        let is_exclusive = wanted.access == NodeAccess::SingleNode && row.multi_attach;
        match self.0.other_holder_error(target, row) {
            Some(error) if is_exclusive => Err(error),
            _ => Ok(()),
        }
    }

    /// Keeps the disk if its instance is deleted. An attachment by the driver does that already, others may not.
    async fn keep_without_instance(&self, target: Target<'_>) -> Result<()> {
        let Target { deadline, disk, node } = target;
        let request = ModifyDiskAttribute {
            disk: disk.clone(),
            attribute: DiskAttribute::DeleteWithInstance(false),
        };
        match self.0.ecs.modify_disk_attribute(deadline, &request).await {
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
}
