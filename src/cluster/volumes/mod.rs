//! The objects of Kubernetes that refer to disks and snapshots, read once and completely.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::{CSINode, VolumeAttachment};
use kube::Api;

use super::list::list;
use super::{Cluster, Result};
use crate::model::DriverName;

mod content;
mod object;
mod reference;

use content::read_contents;
pub use object::{Attachment, Content, ContentKind, Volume, Volumes};
pub use reference::Resource;

impl Cluster {
    /// Reads everything that refers to disks and snapshots.
    ///
    /// # Errors
    /// If any list fails or is incomplete. Snapshot CRDs may be missing.
    pub async fn read_volumes(&self, driver: &DriverName) -> Result<Volumes> {
        let driver = driver.as_str();
        let mut read = Volumes::default();
        for object in list::<PersistentVolume>(&Api::all(self.client()), "persistentvolumes").await? {
            read.add_volume(driver, object);
        }
        for object in list::<PersistentVolumeClaim>(&Api::all(self.client()), "persistentvolumeclaims").await? {
            read.add_claim(object);
        }
        for (owner, content) in read_contents(self).await? {
            if owner == driver {
                read.contents.push(content);
            } else {
                read.other_handles.extend(content.used);
                read.other_handles.extend(content.handle);
            }
        }
        for object in list::<VolumeAttachment>(&Api::all(self.client()), "volumeattachments").await? {
            if object.spec.attacher == driver {
                read.attachments.push(Attachment {
                    volume: object.spec.source.persistent_volume_name,
                    node: object.spec.node_name,
                });
            }
        }
        for object in list::<CSINode>(&Api::all(self.client()), "csinodes").await? {
            let row = object.spec.drivers.into_iter().find(|row| row.name == driver);
            let id = row.and_then(|row| row.node_id.parse().ok());
            read.instances.extend(object.metadata.name.zip(id));
        }
        Ok(read)
    }
}

impl Volumes {
    fn add_claim(&mut self, object: PersistentVolumeClaim) {
        let has_volume = object.spec.and_then(|spec| spec.volume_name).is_some();
        let name = object.metadata.namespace.zip(object.metadata.name);
        let pending = name.filter(|_| !has_volume);
        let pending = pending.map(|(namespace, name)| format!("{namespace}/{name}"));
        self.pending_claims.extend(pending);
        self.claims.extend(object.metadata.uid);
    }

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
            phase: object.status.and_then(|status| status.phase).unwrap_or_default(),
            is_retained: spec.persistent_volume_reclaim_policy.as_deref() == Some("Retain"),
            claim,
        });
    }
}
