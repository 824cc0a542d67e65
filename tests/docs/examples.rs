//! The examples are what Kubernetes and the driver take.

use std::collections::HashMap;

use diskplugin::csi::param::snapshot::SnapshotClass;
use diskplugin::csi::param::{Class, mutable};
use diskplugin::model::driver::DRIVER;
use serde::Deserialize;

use crate::page::{read, root};
use crate::report;

/// `storage.k8s.io/v1`, as far as it is used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StorageClass {
    api_version: String,
    kind: String,
    metadata: Metadata,
    provisioner: String,
    #[serde(default)]
    parameters: HashMap<String, String>,
    #[serde(rename = "reclaimPolicy")]
    reclaim: Reclaim,
    #[serde(rename = "volumeBindingMode")]
    binding: Binding,
    allow_volume_expansion: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    name: String,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
enum Reclaim {
    Delete,
    Retain,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
enum Binding {
    Immediate,
    WaitForFirstConsumer,
}

fn classes() -> Vec<StorageClass> {
    parse(&read("examples/storageclass.yaml"))
}

fn parse(text: &str) -> Vec<StorageClass> {
    strict(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Kubernetes takes an unquoted `false` for no text, unlike this crate.
fn strict(text: &str) -> Result<Vec<StorageClass>, serde_saphyr::Error> {
    let options = serde_saphyr::options! { no_schema: true };
    serde_saphyr::from_multiple_with_options(text, options)
}

#[test]
fn every_example_is_a_file_that_a_test_reads() {
    let entries = std::fs::read_dir(root().join("examples")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    // The folders are read in use_cases.rs.
    let files = paths.filter(|path| path.extension().is_some_and(|end| end == "yaml"));
    let mut names: Vec<_> = files.map(|path| path.file_name().unwrap().to_owned()).collect();
    names.sort();
    assert_eq!(
        names,
        [
            "clone.yaml",
            "expansion.yaml",
            "groupsnapshotclass.yaml",
            "snapshotclass.yaml",
            "storageclass.yaml",
            "volumeattributesclass.yaml"
        ],
        "add a test for the new one"
    );
}

/// `storage.k8s.io/v1`, as far as it is used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct VolumeAttributesClass {
    api_version: String,
    kind: String,
    metadata: Metadata,
    driver_name: String,
    parameters: HashMap<String, String>,
}

fn attribute_classes() -> Vec<VolumeAttributesClass> {
    let options = serde_saphyr::options! { no_schema: true };
    let text = read("examples/volumeattributesclass.yaml");
    serde_saphyr::from_multiple_with_options(&text, options).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_example_of_a_volume_attributes_class_is_one_that_the_driver_accepts() {
    let classes = attribute_classes();
    assert_eq!(classes.len(), 2);
    report(classes.iter().filter_map(|class| {
        let name = &class.metadata.name;
        assert_eq!(class.api_version, "storage.k8s.io/v1", "{name}");
        assert_eq!(class.kind, "VolumeAttributesClass", "{name}");
        assert_eq!(class.driver_name, DRIVER, "{name}");
        let change = match mutable::read(&class.parameters) {
            Ok(change) => change,
            Err(refusal) => return Some(format!("{name}: {}", refusal)),
        };
        change.is_empty().then(|| format!("{name} changes nothing"))
    }));
}

#[test]
fn the_example_claim_names_classes_of_the_other_examples() {
    let text = read("examples/expansion.yaml");
    let names = |key: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(key));
        line.unwrap().split_once(':').unwrap().1.trim().to_owned()
    };
    let class = names("storageClassName:");
    assert!(classes().iter().any(|c| c.metadata.name == class), "{class}");
    let class = names("volumeAttributesClassName:");
    let known = attribute_classes();
    assert!(known.iter().any(|c| c.metadata.name == class), "{class}");
    assert!(text.contains("kind: PersistentVolumeClaim"));
}

#[test]
fn every_example_class_is_one_that_the_driver_accepts() {
    let classes = classes();
    assert_eq!(classes.len(), 7);
    report(classes.iter().filter_map(|class| {
        let name = &class.metadata.name;
        assert_eq!(class.api_version, "storage.k8s.io/v1", "{name}");
        assert_eq!(class.kind, "StorageClass", "{name}");
        assert_eq!(class.provisioner, DRIVER, "{name}");
        assert!(class.allow_volume_expansion, "{name}");
        let refusal = Class::read(&class.parameters).err()?;
        Some(format!("{name}: {}", refusal))
    }));
}

#[test]
fn the_examples_show_both_reclaim_policies_and_both_bindings() {
    let classes = classes();
    assert_eq!(classes[0].reclaim, Reclaim::Delete);
    assert_eq!(classes[0].binding, Binding::Immediate);
    assert_eq!(classes[1].reclaim, Reclaim::Retain);
    assert_eq!(classes[1].binding, Binding::WaitForFirstConsumer);
}

#[test]
fn a_parameter_that_is_no_text_is_refused_as_kubernetes_does() {
    let text = read("examples/storageclass.yaml").replace("\"false\"", "false");
    assert!(strict(&text).is_err());
}

/// `snapshot.storage.k8s.io` and `groupsnapshot.storage.k8s.io`, as far as they are used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OfSnapshots {
    api_version: String,
    kind: String,
    metadata: Metadata,
    driver: String,
    #[serde(default)]
    parameters: HashMap<String, String>,
    deletion_policy: Reclaim,
}

fn of_snapshots(file: &str) -> OfSnapshots {
    let options = serde_saphyr::options! { no_schema: true };
    let classes = serde_saphyr::from_multiple_with_options(&read(file), options);
    let mut classes: Vec<OfSnapshots> = classes.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(classes.len(), 1, "{file}");
    let class = classes.remove(0);
    assert_eq!(class.driver, DRIVER, "{file}");
    assert!(!class.metadata.name.is_empty(), "{file}");
    class
}

#[test]
fn both_example_classes_of_snapshots_are_ones_that_the_driver_accepts() {
    let single = of_snapshots("examples/snapshotclass.yaml");
    assert_eq!(single.kind, "VolumeSnapshotClass");
    assert_eq!(single.api_version, "snapshot.storage.k8s.io/v1");
    assert_eq!(single.deletion_policy, Reclaim::Delete);
    let read = SnapshotClass::read(&single.parameters).unwrap();
    assert_eq!(read.retention_days, Some(30));
    let group = of_snapshots("examples/groupsnapshotclass.yaml");
    assert_eq!(group.kind, "VolumeGroupSnapshotClass");
    assert_eq!(group.api_version, "groupsnapshot.storage.k8s.io/v1");
    assert_eq!(group.deletion_policy, Reclaim::Retain);
    let read = SnapshotClass::read_of_group(&group.parameters).unwrap();
    assert_eq!(read.tags["team"], "storage");
}

/// The claim of a clone, as far as it is used.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Claim {
    api_version: String,
    kind: String,
    metadata: Metadata,
    spec: ClaimSpec,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ClaimSpec {
    storage_class_name: String,
    access_modes: Vec<String>,
    data_source: DataSource,
    resources: HashMap<String, HashMap<String, String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DataSource {
    kind: String,
    name: String,
}

#[test]
fn the_example_of_a_clone_names_a_claim_and_a_class_of_the_examples() {
    let options = serde_saphyr::options! { no_schema: true };
    let claims = serde_saphyr::from_multiple_with_options(&read("examples/clone.yaml"), options);
    let claims: Vec<Claim> = claims.unwrap_or_else(|error| panic!("{error}"));
    let [claim] = claims.as_slice() else {
        panic!("{claims:?}")
    };
    assert_eq!(claim.api_version, "v1");
    assert_eq!(claim.kind, "PersistentVolumeClaim");
    assert_eq!(claim.spec.data_source.kind, "PersistentVolumeClaim");
    assert_ne!(claim.spec.data_source.name, claim.metadata.name);
    assert_eq!(claim.spec.access_modes, ["ReadWriteOnce"]);
    assert!(claim.spec.resources["requests"].contains_key("storage"));
    let known = classes();
    let class = &claim.spec.storage_class_name;
    assert!(known.iter().any(|known| known.metadata.name == *class));
}
