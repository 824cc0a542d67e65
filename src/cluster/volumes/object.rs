//! The references of Kubernetes objects to disks and snapshots.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::InstanceId;

/// What refers to disks and snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Volumes {
    /// PersistentVolumes of this driver.
    pub volumes: Vec<Volume>,
    /// VolumeSnapshotContents and VolumeGroupSnapshotContents of this driver.
    pub contents: Vec<Content>,
    /// UIDs of all PersistentVolumeClaims. external-provisioner names the volume of a claim after its UID.
    pub claims: BTreeSet<String>,
    /// `namespace/name` of the claims that have no volume yet.
    pub pending_claims: BTreeSet<String>,
    /// Handles in objects of other drivers.
    pub other_handles: BTreeSet<String>,
    /// VolumeAttachments of this driver.
    pub attachments: Vec<Attachment>,
    /// The instance of each node on which this driver is registered.
    pub instances: BTreeMap<String, InstanceId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    pub name: String,
    pub handle: String,
    pub phase: String,
    /// Whether its reclaim policy is `Retain`.
    pub is_retained: bool,
    /// `namespace/name` of its claim.
    pub claim: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContentKind {
    Snapshot,
    Group,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub kind: ContentKind,
    pub name: String,
    /// None until the snapshot is created.
    pub handle: Option<String>,
    /// `namespace/name` of its VolumeSnapshot or VolumeGroupSnapshot.
    pub snapshot: Option<String>,
    /// UID of its VolumeSnapshot or VolumeGroupSnapshot, after which the sidecar names it: it may exist before the
    /// content has its handle.
    pub snapshot_uid: Option<String>,
    /// Other IDs that it needs: the disks that are not snapshotted yet, and the snapshots of an imported group.
    pub used: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// None for an inline volume.
    pub volume: Option<String>,
    pub node: String,
}
