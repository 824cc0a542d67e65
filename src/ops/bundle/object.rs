//! Objects of Kubernetes as JSON: which ones concern the driver or a volume, and which of their fields are included.

use serde_json::{Map, Value};

/// In place of a value that is not known to hold no secret.
pub(super) const NOT_INCLUDED: &str = "[not included]";

/// The fields that are included, of all kinds: paths with `~1` for a slash in a name and `|` between names, through
/// each element of an array.
const FIELDS: &str = "
    gitVersion platform metadata/name|namespace|uid|creationTimestamp|deletionTimestamp|finalizers
    metadata/annotations/pv.kubernetes.io~1bind-completed|pv.kubernetes.io~1bound-by-controller
    metadata/annotations/pv.kubernetes.io~1migrated-to|pv.kubernetes.io~1provisioned-by
    metadata/annotations/snapshot.storage.kubernetes.io~1is-default-class
    metadata/annotations/storageclass.kubernetes.io~1is-default-class
    metadata/annotations/volume.beta.kubernetes.io~1storage-provisioner
    metadata/annotations/volume.kubernetes.io~1selected-node|volume.kubernetes.io~1storage-provisioner
    metadata/annotations/volume.kubernetes.io~1storage-resizer provisioner driver driverName parameters mountOptions
    reclaimPolicy deletionPolicy allowVolumeExpansion volumeBindingMode allowedTopologies
    spec/attachRequired|fsGroupPolicy|nodeAllocatableUpdatePeriodSeconds|podInfoOnMount|requiresRepublish|seLinuxMount
    spec/storageCapacity|volumeLifecycleModes spec/drivers/name|nodeID|topologyKeys|allocatable
    spec/accessModes|capacity spec/claimRef/namespace|name|uid
    spec/csi/driver|fsType|readOnly|volumeAttributes|volumeHandle
    spec/dataSource|dataSourceRef|mountOptions|nodeAffinity|persistentVolumeReclaimPolicy|resources|selector
    spec/storageClassName|volumeAttributesClassName|volumeMode|volumeName
    status/accessModes|allocatedResourceStatuses|allocatedResources|capacity|conditions|phase|reason|message
    status/currentVolumeAttributesClassName|lastPhaseTransitionTime|modifyVolumeStatus
    spec/attacher|nodeName spec/source/persistentVolumeName
    status/attached|attachError|attachmentMetadata|detachError
    action count eventTime firstTimestamp involvedObject/fieldPath|kind|name|namespace lastTimestamp message
    reason related reportingComponent reportingInstance series source type
    spec/initContainers|containers/name|image|command|args spec/initContainers|containers/env/name|value
    status/initContainerStatuses|containerStatuses/name|imageID|ready|restartCount
    status/initContainerStatuses|containerStatuses/state/running
    status/initContainerStatuses|containerStatuses/state/waiting/reason
    status/initContainerStatuses|containerStatuses/state|lastState/terminated/exitCode|reason|signal|startedAt|finishedAt
";

/// Parameters of classes and attributes of volumes whose values are included; tags are not.
const PARAMETERS: &str = "
    blockSize burstingEnabled bytesPerInode csi.storage.k8s.io/fstype deletionPolicy discard encrypted fsck fsType
    inodeSize kmsKeyId label mkfsOptions multiAttach partition performanceLevel projectQuota provisionedIops readOnly
    regionId resourceGroupId retentionDays storage.kubernetes.io/csiProvisionerIdentity sysConfig type zoneId
";

/// Whether a class, CSIDriver or CSINode is of the driver.
pub(super) fn is_of_driver(object: &Value, driver: &str) -> bool {
    let direct = ["/provisioner", "/driver", "/metadata/name"];
    let is_named = |path: &&str| object.pointer(path).and_then(Value::as_str) == Some(driver);
    let rows = object.pointer("/spec/drivers").and_then(Value::as_array);
    let mut rows = rows.into_iter().flatten();
    direct.iter().any(is_named) || rows.any(|row| row["name"] == driver)
}

/// Whether a VolumeAttachment is of this PersistentVolume.
pub(super) fn uses_volume(attachment: &Value, driver: &str, persistent_volume: &str) -> bool {
    let spec = &attachment["spec"];
    spec["attacher"] == driver && spec["source"]["persistentVolumeName"] == persistent_volume
}

/// The object with the fields that hold no secret.
pub(super) fn included(object: &Value) -> Value {
    let mut chosen = Value::Object(Map::new());
    for field in FIELDS.split_whitespace() {
        let path: Vec<String> = field.split('/').map(|name| name.replace("~1", "/")).collect();
        copy(object, &path, &mut chosen);
    }
    for pointer in ["/parameters", "/spec/csi/volumeAttributes"] {
        if let Some(Value::Object(parameters)) = chosen.pointer_mut(pointer) {
            for (name, value) in parameters {
                if !PARAMETERS
                    .split_whitespace()
                    .any(|known| known.eq_ignore_ascii_case(name))
                {
                    *value = NOT_INCLUDED.into();
                }
            }
        }
    }
    chosen
}

/// The event; its message only if it is about one of the pods, or about a workload, whose name begins those of its
/// pods.
pub(super) fn event(object: &Value, pods: &[String]) -> Value {
    let mut event = included(object);
    let subject = object.pointer("/involvedObject/name").and_then(Value::as_str);
    let is_known = |subject: &str| pods.iter().any(|pod| pod.starts_with(subject));
    if !subject.is_some_and(|subject| !subject.is_empty() && is_known(subject))
        && let Some(message) = event.get_mut("message")
    {
        *message = NOT_INCLUDED.into();
    }
    event
}

/// Copies the field at this path; through each element of an array.
fn copy(from: &Value, path: &[String], to: &mut Value) {
    let Some((name, rest)) = path.split_first() else {
        to.clone_from(from);
        return;
    };
    match from {
        Value::Array(elements) => {
            if !to.is_array() {
                *to = Value::Array(elements.iter().map(|_| Value::Null).collect());
            }
            for (index, element) in elements.iter().enumerate() {
                copy(element, path, &mut to[index]);
            }
        }
        Value::Object(fields) => {
            for name in name.split('|') {
                if let Some(field) = fields.get(name) {
                    copy(field, rest, &mut to[name]);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_of_another_driver_are_left_out() {
        for (object, expected) in [
            (json!({"provisioner": "d"}), true),
            (json!({"provisioner": "other"}), false),
            (json!({"driver": "d"}), true),
            (json!({"metadata": {"name": "d"}}), true),
            (json!({"spec": {"drivers": [{"name": "x"}, {"name": "d"}]}}), true),
            (json!({"spec": {"drivers": [{"name": "x"}]}}), false),
        ] {
            assert_eq!(is_of_driver(&object, "d"), expected, "{object}");
        }
        let attachment = json!({"spec": {"attacher": "d", "source": {"persistentVolumeName": "pv"}}});
        assert!(uses_volume(&attachment, "d", "pv"));
        assert!(!uses_volume(&attachment, "d", "pv-2"));
        assert!(!uses_volume(&attachment, "e", "pv"));
    }

    #[test]
    fn only_events_of_the_driver_have_messages() {
        let pods = ["d-node-x7k2p".to_owned()];
        for (subject, expected) in [
            (json!({"name": "d-node-x7k2p"}), "text"),
            (json!({"name": "d-node"}), "text"),
            (json!({"name": "database-0"}), NOT_INCLUDED),
            (json!({"name": ""}), NOT_INCLUDED),
            (json!({}), NOT_INCLUDED),
        ] {
            let object = json!({"involvedObject": subject, "message": "text", "reason": "r"});
            let event = event(&object, &pods);
            assert_eq!((&event["message"], &event["reason"]), (&json!(expected), &json!("r")));
        }
    }

    #[test]
    fn only_known_fields_and_parameters_are_included() {
        let object = json!({
            "metadata": {"name": "x", "managedFields": [1], "annotations": {
                "kubectl.kubernetes.io/last-applied-configuration": "hidden", "own": "hidden",
                "volume.kubernetes.io/selected-node": "n",
            }},
            "parameters": {"type": "cloud_essd", "TYPE": "x", "password": "hidden"},
            "spec": {
                "drivers": [{"name": "d", "unknown": "hidden"}, {"name": "e", "nodeID": "i"}],
                "csi": {"volumeHandle": "d-1", "nodeStageSecretRef": {"name": "hidden"}},
            },
            "data": {"key": "hidden"},
        });
        let expected = json!({
            "metadata": {"name": "x", "annotations": {"volume.kubernetes.io/selected-node": "n"}},
            "parameters": {"type": "cloud_essd", "TYPE": "x", "password": NOT_INCLUDED},
            "spec": {
                "drivers": [{"name": "d"}, {"name": "e", "nodeID": "i"}],
                "csi": {"volumeHandle": "d-1"},
            },
        });
        assert_eq!(included(&object), expected);
    }
}
