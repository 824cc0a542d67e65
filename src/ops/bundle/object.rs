//! Objects of Kubernetes as JSON: which ones concern the driver or a volume.

use serde_json::Value;

/// Copies of the object itself, which would be redacted less reliably.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether a class, CSIDriver or CSINode is of the driver.
#[must_use]
pub fn is_of_driver(object: &Value, driver: &str) -> bool {
    let direct = ["/provisioner", "/driver", "/metadata/name"];
    let is_named = |path: &&str| object.pointer(path).and_then(Value::as_str) == Some(driver);
    let rows = object.pointer("/spec/drivers").and_then(Value::as_array);
    let mut rows = rows.into_iter().flatten();
    direct.iter().any(is_named) || rows.any(|row| row["name"] == driver)
}

/// Whether a VolumeAttachment is of this PersistentVolume.
#[must_use]
pub fn uses_volume(attachment: &Value, driver: &str, persistent_volume: &str) -> bool {
    let spec = &attachment["spec"];
    spec["attacher"] == driver && spec["source"]["persistentVolumeName"] == persistent_volume
}

/// The object without the history of its fields.
#[must_use]
pub fn without_history(mut object: Value) -> Value {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.remove("managedFields");
        let annotations = metadata
            .get_mut("annotations")
            .and_then(Value::as_object_mut);
        if let Some(annotations) = annotations {
            annotations.remove(LAST_APPLIED);
        }
    }
    object
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
            (
                json!({"spec": {"drivers": [{"name": "x"}, {"name": "d"}]}}),
                true,
            ),
            (json!({"spec": {"drivers": [{"name": "x"}]}}), false),
        ] {
            assert_eq!(is_of_driver(&object, "d"), expected, "{object}");
        }
        let attachment =
            json!({"spec": {"attacher": "d", "source": {"persistentVolumeName": "pv"}}});
        assert!(uses_volume(&attachment, "d", "pv"));
        assert!(!uses_volume(&attachment, "d", "pv-2"));
        assert!(!uses_volume(&attachment, "e", "pv"));
    }

    #[test]
    fn copies_of_an_object_are_removed() {
        let object = json!({"metadata": {
            "name": "x", "managedFields": [1], "annotations": {LAST_APPLIED: "{}", "a": "b"},
        }});
        let expected = json!({"metadata": {"name": "x", "annotations": {"a": "b"}}});
        assert_eq!(without_history(object), expected);
    }
}
