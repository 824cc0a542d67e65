//! Classes and CSIDriver: what the driver takes and is.

use std::collections::HashMap;

use diskplugin::csi::param::snapshot::SnapshotClass;
use diskplugin::csi::param::{Class, mutable};
use serde_json::{Value, json};

use crate::render::{Object, all, text, variant};
use crate::report;

fn parameters(object: &Object) -> HashMap<String, String> {
    let given = object.body.get("parameters").and_then(Value::as_object);
    let given = given.into_iter().flatten();
    given
        .map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned()))
        .collect()
}

#[test]
fn every_class_is_one_that_the_driver_accepts() {
    let objects = all();
    let mut kinds = std::collections::BTreeSet::new();
    report(objects.iter().filter_map(|object| {
        let given = parameters(object);
        let refusal = match object.kind.as_str() {
            "StorageClass" => Class::read(&given).err(),
            "VolumeSnapshotClass" => SnapshotClass::read(&given).err(),
            "VolumeGroupSnapshotClass" => SnapshotClass::read_of_group(&given).err(),
            "VolumeAttributesClass" => mutable::read(&given).err(),
            _ => return None,
        };
        kinds.insert(object.kind.as_str());
        Some(format!("{}: {}", object.at(), refusal?))
    }));
    assert_eq!(kinds.len(), 4, "{kinds:?}");
}

#[test]
fn every_class_is_of_the_driver_of_its_release() {
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
fn the_cluster_is_told_what_the_driver_can_do() {
    let objects = variant("least");
    let driver = objects
        .iter()
        .find(|object| object.kind == "CSIDriver")
        .unwrap();
    let wanted = json!({
        "attachRequired": true,
        "podInfoOnMount": false,
        "fsGroupPolicy": "File",
        "storageCapacity": true,
        "seLinuxMount": true,
        "nodeAllocatableUpdatePeriodSeconds": 60,
        "requiresRepublish": false,
        "volumeLifecycleModes": ["Persistent"],
    });
    assert_eq!(driver.body["spec"], wanted);
    assert_eq!(driver.name, diskplugin::model::driver::DRIVER);
}

#[test]
fn a_default_class_is_marked_and_what_is_not_said_is_safe() {
    let objects = variant("oidc");
    let class = objects
        .iter()
        .find(|object| object.kind == "StorageClass")
        .unwrap();
    let annotations = &class.body["metadata"]["annotations"];
    assert_eq!(
        annotations["storageclass.kubernetes.io/is-default-class"],
        json!("true")
    );
    // Made where the pod will be, and able to grow.
    assert_eq!(
        text(&class.body, "/volumeBindingMode"),
        "WaitForFirstConsumer"
    );
    assert_eq!(class.body["allowVolumeExpansion"], json!(true));
}
