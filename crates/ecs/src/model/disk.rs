//! Disks, as `DescribeDisks` returns them.

use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::category::Category;
use super::id::{DiskId, InstanceId, SnapshotId, ZoneId};
use super::read::{self, Row};
use super::size::Gib;
use super::tag::Tags;
use super::word::words;

/// The serial by which the guest identifies a disk.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Serial(String);

impl Serial {
    /// A serial from the API or from sysfs, where some kernels pad it with spaces. None if empty: disks created before
    /// 2020-06-10 have no serial.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The serial of a disk by its ID, without `d-` (ECS API, `SerialNumber`).
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

words! {
    /// The state of a disk (`Status` in the API).
    DiskStatus or Unknown:
    Creating = "Creating",
    Available = "Available",
    Attaching = "Attaching",
    InUse = "In_use",
    Detaching = "Detaching",
    /// Being reset to a snapshot.
    ReIniting = "ReIniting",
}

words! {
    /// The use of a disk (`Type` in the API).
    DiskKind or Unknown:
    Data = "data",
    /// The boot disk of an instance, which is never managed here.
    System = "system",
}

/// A row of `DescribeDisks`, which may be seconds old.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Disk {
    #[serde(rename = "DiskId")]
    pub id: DiskId,
    /// None for disks created before 2020-06-10.
    #[serde(default, rename = "SerialNumber", deserialize_with = "serial")]
    pub serial: Option<Serial>,
    #[serde(default, rename = "DiskName")]
    pub name: String,
    /// None for a regional disk.
    #[serde(rename = "ZoneId")]
    pub zone: Option<ZoneId>,
    pub category: Category,
    /// `PL0` to `PL3`; none for categories without levels.
    pub performance_level: Option<String>,
    /// Provisioned IOPS of a `cloud_auto` in addition to the baseline.
    #[serde(default, deserialize_with = "read::number")]
    pub provisioned_iops: u32,
    /// Whether it may exceed its baseline, and is billed for that (`cloud_auto`).
    #[serde(default, rename = "BurstingEnabled")]
    pub bursting: bool,
    /// Whether it can be attached to several instances.
    #[serde(default, deserialize_with = "is_enabled")]
    pub multi_attach: bool,
    /// Whether the disk is deleted with the instance that it is attached to.
    #[serde(default)]
    pub delete_with_instance: bool,
    /// Whether it can be attached and detached: false for a subscription disk.
    #[serde(default = "portable")]
    pub portable: bool,
    #[serde(rename = "ResourceGroupId")]
    pub resource_group: Option<String>,
    #[serde(deserialize_with = "read::size")]
    pub size: Gib,
    #[serde(default = "data", rename = "Type")]
    pub kind: DiskKind,
    /// Does not prove where the disk is attached: see `attachments`.
    pub status: DiskStatus,
    #[serde(default, deserialize_with = "instances")]
    pub attachments: Vec<InstanceId>,
    #[serde(rename = "SourceSnapshotId")]
    pub source_snapshot: Option<SnapshotId>,
    #[serde(default)]
    pub encrypted: bool,
    /// The KMS key, if it is one of the user.
    #[serde(rename = "KMSKeyId")]
    pub kms_key: Option<String>,
    /// The reasons for which the cloud has locked it, such as `financial` or `security`.
    #[serde(default, rename = "OperationLocks", deserialize_with = "reasons")]
    pub locks: Vec<String>,
    #[serde(default, deserialize_with = "read::tags")]
    pub tags: Tags,
    #[serde(default, rename = "CreationTime", deserialize_with = "read::time")]
    pub created: Option<Timestamp>,
    /// When it was last attached, to the second; not reported for an unattached disk.
    #[serde(default, rename = "AttachedTime", deserialize_with = "read::time")]
    pub attached: Option<Timestamp>,
    /// When it was last detached, to the second; not reported for an attached disk.
    #[serde(default, rename = "DetachedTime", deserialize_with = "read::time")]
    pub detached: Option<Timestamp>,
}

fn serial<'de, D: Deserializer<'de>>(json: D) -> Result<Option<Serial>, D::Error> {
    String::deserialize(json).map(|text| Serial::new(&text))
}

fn is_enabled<'de, D: Deserializer<'de>>(json: D) -> Result<bool, D::Error> {
    String::deserialize(json).map(|text| text == "Enabled")
}

fn portable() -> bool {
    true
}

fn data() -> DiskKind {
    DiskKind::Data
}

fn instances<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<InstanceId>, D::Error> {
    let ids = read::column(json, "InstanceId")?;
    Ok(ids.into_iter().flatten().collect())
}

/// A lock without a reason is still a lock.
fn reasons<'de, D: Deserializer<'de>>(json: D) -> Result<Vec<String>, D::Error> {
    let reasons = read::column(json, "LockReason")?.into_iter();
    Ok(reasons
        .map(|reason| reason.unwrap_or_else(|| "unknown".to_owned()))
        .collect())
}

/// The state and attachments, for operators.
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
    /// Whether it is attached to this instance, or being attached or detached.
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

    /// Neither attached nor attaching.
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

impl Row for Disk {
    const LIST: &'static str = "Disks";
    const ID: &'static str = "DiskId";

    fn parse(row: Value) -> serde_json::Result<Self> {
        let instance = row.get("InstanceId").cloned();
        let mut disk: Self = serde_json::from_value(row)?;
        // `InstanceId` repeats the attachment, and is empty for disks with several.
        let instance: Option<InstanceId> = instance.map(serde_json::from_value).transpose()?;
        if disk.attachments.is_empty() {
            disk.attachments.extend(instance);
        }
        Ok(disk)
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
