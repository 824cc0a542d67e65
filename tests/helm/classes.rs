//! The driver accepts the parameters of all rendered classes, and the CSIDriver describes it.

use std::collections::HashMap;

use diskplugin::csi::param::snapshot::SnapshotClass;
use diskplugin::csi::param::{Class, mutable};
use serde_json::{Value, json};

use crate::render::{Object, all, one, text, variant};
use crate::report;

fn parameters(object: &Object) -> HashMap<String, String> {
    let given = object.body.get("parameters").and_then(Value::as_object);
    let given = given.into_iter().flatten();
    given
        .map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned()))
        .collect()
}

#[test]
fn the_driver_accepts_every_class() {
    let objects = all();
    let mut kinds = std::collections::BTreeSet::new();
    report(objects.iter().filter_map(|object| {
        let given = parameters(object);
        let rejection = match object.kind.as_str() {
            "StorageClass" => Class::read(&given).err(),
            "VolumeSnapshotClass" => SnapshotClass::read(&given).err(),
            "VolumeGroupSnapshotClass" => SnapshotClass::read_of_group(&given).err(),
            "VolumeAttributesClass" => mutable::read(&given).err(),
            _ => return None,
        };
        kinds.insert(object.kind.as_str());
        Some(format!("{}: {}", object.at(), rejection?))
    }));
    assert_eq!(kinds.len(), 4, "{kinds:?}");
}

#[test]
fn every_class_names_the_driver_of_its_release() {
    let objects = all();
    let driver = |object: &Object| {
        let driver = objects
            .iter()
            .find(|other| other.variant == object.variant && other.kind == "CSIDriver");
        driver.unwrap().name.clone()
    };
    report(objects.iter().filter_map(|object| {
        let named = ["provisioner", "driver", "driverName"]
            .iter()
            .find_map(|key| object.body.get(key))?;
        (*named != json!(driver(object))).then(|| format!("{}: {named}", object.at()))
    }));
}

#[test]
fn csi_driver_object_matches_the_driver() {
    let objects = variant("minimal");
    let driver = one(&objects, "CSIDriver");
    let expected = json!({
        "attachRequired": true,
        "podInfoOnMount": false,
        "fsGroupPolicy": "File",
        "storageCapacity": true,
        "seLinuxMount": true,
        "nodeAllocatableUpdatePeriodSeconds": 60,
        "requiresRepublish": false,
        "volumeLifecycleModes": ["Persistent"],
    });
    assert_eq!(driver.body["spec"], expected);
    assert_eq!(driver.name, diskplugin::model::driver::DRIVER);
}

#[test]
fn default_class_is_annotated_and_omitted_fields_are_safe() {
    let objects = variant("production");
    let class = objects.iter().find(|object| object.kind == "StorageClass").unwrap();
    let annotations = &class.body["metadata"]["annotations"];
    assert_eq!(
        annotations["storageclass.kubernetes.io/is-default-class"],
        json!("true")
    );
    assert_eq!(text(&class.body, "/volumeBindingMode"), "WaitForFirstConsumer");
    assert_eq!(class.body["allowVolumeExpansion"], json!(true));
}
