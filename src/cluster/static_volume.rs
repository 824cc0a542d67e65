//! Volumes of disks that exist: their objects, as YAML for kubectl, and the objects that already have the disk.

use std::fmt;

use super::{Cluster, Result};
use crate::model::topology::{SUPPORTED, ZONE_KEY, category_key};
use crate::model::{Disk, DiskId, DriverName, Filesystem, ZoneId, tag};

const FILESYSTEM: &str = "
    # The cloud does not report the filesystem. A blank disk is formatted with this one; a disk with other data is
    # neither formatted nor mounted.
    fsType: ";

/// A PersistentVolume with the name of the disk ID, and the only claim that can bind it.
#[derive(Debug)]
pub struct StaticVolume {
    pub driver: DriverName,
    pub disk: Disk,
    /// Default: from the tags of the disk.
    pub namespace: Option<String>,
    pub claim: Option<String>,
    pub storage_class: Option<String>,
    /// `None` for a raw block volume.
    pub filesystem: Option<Filesystem>,
    /// Whether the volume is bound to nodes that report the category.
    pub with_category: bool,
}

/// What the cluster has of a disk.
#[derive(Debug, Default)]
pub struct DiskUse {
    /// The PersistentVolume with the disk, of any driver, unless it is a [`StaticVolume`] of this one.
    pub volume: Option<String>,
    /// Whether nodes report the category as topology.
    pub has_category: bool,
}

impl fmt::Display for StaticVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { driver, disk, .. } = self;
        let (id, name, size) = (&disk.id, volume_name(&disk.id), disk.size);
        let level = disk.performance_level.as_deref().filter(|level| !level.is_empty());
        let level = level.map_or_else(String::new, |level| format!(" {level}"));
        let zone = disk.zone.as_ref().map_or("the region", ZoneId::as_str);
        let (content, access_mode) = match self.filesystem {
            Some(filesystem) => (format!("{FILESYSTEM}{filesystem}"), "ReadWriteOnce"),
            None if disk.multi_attach => (
                "\n    volumeAttributes:\n      multiAttach: \"true\"".to_owned(),
                "ReadWriteMany",
            ),
            None => (String::new(), "ReadWriteOnce"),
        };
        let in_zone = disk.zone.iter().map(|zone| (ZONE_KEY.to_owned(), zone.as_str()));
        let of_category = self.with_category.then(|| (category_key(&disk.category), SUPPORTED));
        let nodes = in_zone.chain(of_category).map(|(key, value)| {
            format!("\n            - key: {key}\n              operator: In\n              values: [{value:?}]")
        });
        let nodes: String = nodes.collect();
        let affinity = match nodes.is_empty() {
            true => "",
            false => "\n  nodeAffinity:\n    required:\n      nodeSelectorTerms:\n        - matchExpressions:",
        };
        let mode = self.filesystem.map_or("Block", |_| "Filesystem");
        let class = self.storage_class.as_deref().unwrap_or_default();
        let tag = |name| disk.tags.get(&format!("{}{name}", tag::CREATED_FOR));
        let namespace = self.namespace.as_ref().or(tag("pvc/namespace"));
        let namespace = namespace.map_or("default", String::as_str);
        let claim = self.claim.as_ref().or(tag("pvc/name")).unwrap_or(&name);
        write!(
            f,
            "# Disk {id}: {size} of {category}{level} in {zone}
---
apiVersion: v1
kind: PersistentVolume
metadata:
  name: {name}
spec:
  capacity:
    storage: {gib}Gi
  accessModes: [{access_mode}]
  volumeMode: {mode}
  persistentVolumeReclaimPolicy: Retain
  storageClassName: {class:?}
  claimRef:
    namespace: {namespace:?}
    name: {claim:?}
  csi:
    driver: {driver}
    volumeHandle: {id}{content}{affinity}{nodes}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  namespace: {namespace:?}
  name: {claim:?}
spec:
  storageClassName: {class:?}
  accessModes: [{access_mode}]
  volumeMode: {mode}
  resources:
    requests:
      storage: {gib}Gi
  volumeName: {name}",
            category = disk.category,
            gib = size.0,
        )
    }
}

fn volume_name(disk: &DiskId) -> String {
    disk.as_str().to_lowercase()
}

impl Cluster {
    /// Lists PersistentVolumes and CSINodes.
    pub async fn disk_use(&self, driver: &DriverName, disk: &Disk) -> Result<DiskUse> {
        let (id, own) = (disk.id.as_str(), volume_name(&disk.id));
        let volumes = self.objects("/api/v1/persistentvolumes").await?;
        let mut volumes = volumes.into_iter().flatten().filter(|one| {
            let (csi, flex) = (&one["spec"]["csi"], &one["spec"]["flexVolume"]);
            let is_own = csi["driver"] == driver.as_str() && one["metadata"]["name"] == own;
            // The vendor's FlexVolume plugin has the disk in its options.
            !is_own && (csi["volumeHandle"] == id || flex["options"]["volumeId"] == id)
        });
        let volume = volumes.next();
        let key = serde_json::Value::from(category_key(&disk.category));
        // Without them, the volume is only not limited to nodes that support its category.
        let nodes = self.objects("/apis/storage.k8s.io/v1/csinodes").await.ok();
        let mut nodes = nodes.iter().flatten().flatten();
        Ok(DiskUse {
            volume: volume.and_then(|one| Some(one["metadata"]["name"].as_str()?.to_owned())),
            has_category: nodes.any(|node| {
                let rows = node["spec"]["drivers"].as_array().into_iter().flatten();
                let mut keys = rows.filter(|row| row["name"] == driver.as_str());
                keys.any(|row| row["topologyKeys"].as_array().is_some_and(|keys| keys.contains(&key)))
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn volume(fields: &Value) -> StaticVolume {
        let mut row = json!({
            "DiskId": "d-1A", "SerialNumber": "1A", "ZoneId": "z-a", "Category": "cloud_essd", "Size": 40,
            "PerformanceLevel": "PL1", "Status": "Available", "Type": "data",
        });
        row.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        StaticVolume {
            driver: DriverName::default(),
            disk: serde_json::from_value(row).unwrap(),
            namespace: None,
            claim: None,
            storage_class: None,
            filesystem: Some(Filesystem::Xfs),
            with_category: false,
        }
    }

    /// The PersistentVolume and the claim.
    fn objects(volume: &StaticVolume) -> [Value; 2] {
        let objects: Vec<Value> = serde_saphyr::from_multiple(&volume.to_string()).unwrap();
        objects.try_into().unwrap()
    }

    #[test]
    fn only_the_claim_of_the_tags_can_bind_the_retained_volume() {
        // A name that YAML would read as a number.
        let tag = |name: &str, value| json!({"TagKey": format!("{}{name}", tag::CREATED_FOR), "TagValue": value});
        let tags = json!({"Tag": [tag("pvc/namespace", "team"), tag("pvc/name", "123")]});
        let [volume, claim] = objects(&volume(&json!({"Tags": tags})));
        assert_eq!(volume["metadata"]["name"], "d-1a");
        assert_eq!(volume["spec"]["claimRef"], json!({"namespace": "team", "name": "123"}));
        assert_eq!(volume["spec"]["persistentVolumeReclaimPolicy"], "Retain");
        assert_eq!(volume["spec"]["capacity"], claim["spec"]["resources"]["requests"]);
        let csi = json!({"driver": "diskplugin.csi.example", "volumeHandle": "d-1A", "fsType": "xfs"});
        assert_eq!(volume["spec"]["csi"], csi);
        assert_eq!(claim["metadata"], volume["spec"]["claimRef"]);
        for field in ["storageClassName", "accessModes", "volumeMode"] {
            assert_eq!(claim["spec"][field], volume["spec"][field], "{field}");
        }
        assert_eq!(claim["spec"]["storageClassName"], "");
    }

    #[test]
    fn a_volume_is_bound_to_its_zone_and_to_a_category_that_nodes_report() {
        let terms = |volume: &StaticVolume| {
            let [volume, _] = objects(volume);
            let terms = &volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"];
            let expressions = terms[0]["matchExpressions"].as_array().into_iter().flatten();
            let text = |one: &Value| {
                format!(
                    "{} {}",
                    one["key"].as_str().unwrap(),
                    one["values"][0].as_str().unwrap()
                )
            };
            expressions.map(text).collect::<Vec<_>>()
        };
        let (zone, category) = (
            format!("{ZONE_KEY} z-a"),
            "disk.diskplugin.csi.example/cloud_essd available",
        );
        let mut zonal = volume(&json!({}));
        assert_eq!(terms(&zonal), [zone.as_str()]);
        zonal.with_category = true;
        assert_eq!(terms(&zonal), [zone.as_str(), category]);
        assert!(terms(&volume(&json!({"ZoneId": null}))).is_empty());
    }

    #[test]
    fn only_a_raw_multi_attach_volume_is_for_several_nodes() {
        for (is_shared, filesystem, mode) in [
            ("Enabled", None, "ReadWriteMany"),
            ("Disabled", None, "ReadWriteOnce"),
            ("Enabled", Some(Filesystem::Ext4), "ReadWriteOnce"),
        ] {
            let volume = StaticVolume {
                filesystem,
                ..volume(&json!({"MultiAttach": is_shared}))
            };
            let [volume, claim] = objects(&volume);
            assert_eq!(claim["spec"]["accessModes"], json!([mode]));
            let is_for_several = volume["spec"]["csi"]["volumeAttributes"]["multiAttach"] == "true";
            assert_eq!(is_for_several, mode == "ReadWriteMany");
        }
    }
}
