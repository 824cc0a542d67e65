//! The objects of Kubernetes that refer to disks and snapshots, read once and completely.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSINode, VolumeAttachment};
use kube::Api;

use super::list::list;
use super::{Cluster, ListError};
use crate::model::{DriverName, InstanceId};

mod content;

use content::read_contents;

/// Characters of a UID.
const UID_LENGTH: usize = 36;

/// What refers to disks and snapshots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Volumes {
    /// PersistentVolumes of this driver.
    pub volumes: Vec<Volume>,
    /// VolumeSnapshotContents and VolumeGroupSnapshotContents of this driver.
    pub contents: Vec<Content>,
    /// UIDs of all PersistentVolumeClaims. external-provisioner names the volume of a claim after its UID.
    pub claims: BTreeSet<String>,
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
    /// `status.phase`.
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
    /// The CSI name under which the sidecar requests it: it may exist before the content has its handle.
    pub csi_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// None for an inline volume.
    pub volume: Option<String>,
    pub node: String,
}

impl Cluster {
    /// Reads everything that refers to disks and snapshots.
    ///
    /// # Errors
    /// If any list fails or is incomplete. Snapshot CRDs may be missing.
    pub async fn read_volumes(&self, driver: &DriverName) -> Result<Volumes, ListError> {
        let driver = driver.as_str();
        let mut read = Volumes::default();
        for object in list::<PersistentVolume>(&self.all(), "persistentvolumes").await? {
            read.add_volume(driver, object);
        }
        for object in
            list::<PersistentVolumeClaim>(&self.all_namespaces(), "persistentvolumeclaims").await?
        {
            read.claims.extend(object.metadata.uid);
        }
        for (owner, content) in read_contents(self).await? {
            if owner == driver {
                read.contents.push(content);
            } else {
                read.other_handles.extend(content.handle);
            }
        }
        for object in list::<VolumeAttachment>(&self.all(), "volumeattachments").await? {
            if object.spec.attacher == driver {
                read.attachments.push(Attachment {
                    volume: object.spec.source.persistent_volume_name,
                    node: object.spec.node_name,
                });
            }
        }
        for object in list::<CSINode>(&self.all(), "csinodes").await? {
            let row = object
                .spec
                .drivers
                .into_iter()
                .find(|row| row.name == driver);
            let id = row.and_then(|row| row.node_id.parse().ok());
            read.instances.extend(object.metadata.name.zip(id));
        }
        Ok(read)
    }

    /// The CRDs of snapshots that are installed, by their plural names.
    ///
    /// # Errors
    /// If the API groups cannot be read.
    pub async fn snapshot_crds(&self) -> Result<Vec<&'static str>, ListError> {
        content::installed(self).await
    }

    fn all_namespaces<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::all(self.client())
    }

    fn all<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = k8s_openapi::ClusterResourceScope, DynamicType = ()>,
    {
        Api::all(self.client())
    }
}

impl Volumes {
    fn add_volume(&mut self, driver: &str, object: PersistentVolume) {
        let Some(spec) = object.spec else { return };
        // The vendor's FlexVolume plugin has the disk in its options.
        let options = spec.flex_volume.and_then(|flex| flex.options);
        self.other_handles
            .extend(options.into_iter().flat_map(BTreeMap::into_values));
        let Some(csi) = spec.csi else { return };
        if csi.driver != driver {
            self.other_handles.insert(csi.volume_handle);
            return;
        }
        let claim = spec.claim_ref.and_then(|claim| {
            let (namespace, name) = claim.namespace.zip(claim.name)?;
            Some(format!("{namespace}/{name}"))
        });
        self.volumes.push(Volume {
            name: object.metadata.name.unwrap_or_default(),
            handle: csi.volume_handle,
            phase: object
                .status
                .and_then(|status| status.phase)
                .unwrap_or_default(),
            is_retained: spec.persistent_volume_reclaim_policy.as_deref() == Some("Retain"),
            claim,
        });
    }

    /// Whether any object refers to this ID.
    #[must_use]
    pub fn refers_to(&self, id: &str) -> bool {
        self.other_handles.contains(id)
            || self.volumes.iter().any(|volume| volume.handle == id)
            || self
                .contents
                .iter()
                .any(|content| content.handle.as_deref() == Some(id))
    }

    /// Whether a claim, or a content without a handle, waits for the resource with this CSI name.
    #[must_use]
    pub fn waits_for(&self, csi_name: &str) -> bool {
        // The prefix of the name is a setting of external-provisioner.
        let uid = csi_name.get(csi_name.len().saturating_sub(UID_LENGTH)..);
        if uid.is_some_and(|uid| self.claims.contains(uid)) {
            return true;
        }
        let mut waiting = self
            .contents
            .iter()
            .filter(|content| content.handle.is_none());
        waiting.any(|content| content.csi_name.as_deref() == Some(csi_name))
    }
}
