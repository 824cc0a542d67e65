//! A disk as the cloud describes it.

use std::fmt;

use jiff::Timestamp;

use super::category::Category;
use super::id::{DiskId, InstanceId, SnapshotId, ZoneId};
use super::size::Gib;
use super::tag::Tags;
use super::word::words;

/// The serial by which a guest identifies its disks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serial(String);

impl Serial {
    /// A serial from the API or from sysfs, where some kernels pad it with spaces. None when empty:
    /// disks made before 2020-06-10 have none.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The serial that a disk's id says: the id without `d-` (ECS API, `SerialNumber`).
    #[must_use]
    pub fn from_disk_id(id: &DiskId) -> Self {
        let id = id.as_str();
        Self(id.strip_prefix("d-").unwrap_or(id).to_owned())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a disk is in its life (`Status` in the API).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskStatus {
    Creating,
    Available,
    /// On its way to an instance.
    Attaching,
    InUse,
    /// On its way off an instance.
    Detaching,
    /// Being reset to a snapshot.
    ReIniting,
    /// A word that this driver does not know.
    Unknown(String),
}

words!(
    DiskStatus: Creating = "Creating", Available = "Available", Attaching = "Attaching", InUse = "In_use", Detaching = "Detaching", ReIniting = "ReIniting"
);

/// What a disk holds (`Type` in the API).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskKind {
    /// Data: ours to handle.
    Data,
    /// The system of an instance: never ours.
    System,
    /// A word that this driver does not know.
    Unknown(String),
}

words!(DiskKind: Data = "data", System = "system");

/// One row of `DescribeDisks`: what it said, at a moment that may lie seconds back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    pub id: DiskId,
    /// The serial that the guest sees; none on very old disks.
    pub serial: Option<Serial>,
    /// The name it was created under.
    pub name: String,
    /// Where it lives; none for a regional disk.
    pub zone: Option<ZoneId>,
    pub category: Category,
    /// `PL0` … `PL3` as the cloud writes it; none where the category has no levels.
    pub performance_level: Option<String>,
    /// IOPS bought on top of the baseline (`cloud_auto`); 0 where there are none.
    pub provisioned_iops: u32,
    /// Whether it may exceed its baseline, and is billed for that (`cloud_auto`).
    pub bursting: bool,
    /// Whether several instances may hold it at once (`MultiAttach` is `Enabled`).
    pub multi_attach: bool,
    /// Whether the disk is deleted with the instance that it is attached to.
    pub delete_with_instance: bool,
    /// The resource group it is billed to, as the cloud names it.
    pub resource_group: Option<String>,
    pub size: Gib,
    pub kind: DiskKind,
    /// Where it is in its life. Never enough to tell who holds it: see `attachments`.
    pub status: DiskStatus,
    /// The instances that hold it.
    pub attachments: Vec<InstanceId>,
    /// The snapshot it was made from.
    pub source_snapshot: Option<SnapshotId>,
    /// Whether it is encrypted at rest.
    pub encrypted: bool,
    /// The key, where it is encrypted by one of the user's.
    pub kms_key: Option<String>,
    /// Why the cloud has locked it, such as `financial` or `security`; empty when it has not.
    pub locks: Vec<String>,
    pub tags: Tags,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// When it was last attached, to the second; none where the cloud does not say, as of a free disk.
    pub attached: Option<Timestamp>,
    /// When it was last detached, to the second; none where the cloud does not say, as of a held disk.
    pub detached: Option<Timestamp>,
}

/// Where it is in its life and who holds it, for an operator.
impl fmt::Display for Disk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "disk {} is {}", self.id, self.status)?;
        if !self.attachments.is_empty() {
            write!(f, ", attached to {}", self.holders())?;
        }
        Ok(())
    }
}

impl Disk {
    /// Whether this instance holds the disk.
    #[must_use]
    pub fn is_attached_to(&self, instance: &InstanceId) -> bool {
        self.attachments.contains(instance)
    }

    /// Whether it is attached and usable on this instance.
    #[must_use]
    pub fn is_in_use_on(&self, instance: &InstanceId) -> bool {
        self.status == DiskStatus::InUse && self.is_attached_to(instance)
    }

    /// Whether the disk will be deleted with its instance, although it can be moved to another one.
    #[must_use]
    pub fn is_lost_with_instance(&self) -> bool {
        self.delete_with_instance && self.kind != DiskKind::System && !self.category.is_ephemeral()
    }

    /// Whether nobody holds it, nor is about to.
    #[must_use]
    pub fn is_free(&self) -> bool {
        self.status == DiskStatus::Available && self.attachments.is_empty()
    }

    /// The nodes that it is attached to, such as `i-1 and i-2`; empty if there are none.
    #[must_use]
    pub fn holders(&self) -> String {
        let holders: Vec<_> = self.attachments.iter().map(InstanceId::as_str).collect();
        holders.join(" and ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_padded_serial_is_trimmed_and_an_empty_one_is_none() {
        assert_eq!(
            Serial::new("bp18um4r4f2fve24k7qz  ").unwrap().as_str(),
            "bp18um4r4f2fve24k7qz"
        );
        assert_eq!(Serial::new("  "), None);
    }

    #[test]
    fn an_unknown_status_keeps_its_word() {
        assert_eq!("Frozen".parse(), Ok(DiskStatus::Unknown("Frozen".to_owned())));
        assert_eq!("In_use".parse(), Ok(DiskStatus::InUse));
        assert_eq!("In_Use".parse(), Ok(DiskStatus::Unknown("In_Use".to_owned())));
    }
}
