//! The examples outside of use cases.

use serde_json::Value;

use crate::page::{files_below, read};
use crate::report;
use crate::use_cases::{at, class_problems, objects, unknown_fields};

/// The objects of an example.
fn example(name: &str) -> Vec<Value> {
    objects(&read(format!("examples/{name}.yaml")))
}

/// Whether an example has a class with this name.
fn has_class(example_: &str, name: Option<&str>) -> bool {
    name.is_some()
        && example(example_)
            .iter()
            .any(|class| at(class, "/metadata/name") == name)
}

#[test]
fn every_example_has_a_test_and_the_driver_accepts_its_classes() {
    let files = files_below("examples", "yaml").into_iter();
    let files = files.filter(|file| file.components().count() == 2);
    let names: Vec<_> = files
        .map(|file| file.file_stem().unwrap().display().to_string())
        .collect();
    let classes = [
        "groupsnapshotclass",
        "snapshotclass",
        "storageclass",
        "volumeattributesclass",
    ];
    assert_eq!(
        names,
        [&["clone", "expansion"][..], &classes].concat(),
        "add a test for a new one"
    );
    for (name, count) in classes.into_iter().zip([1, 1, 7, 2]) {
        let objects = example(name);
        assert_eq!(objects.len(), count, "{name}");
        for object in &objects {
            assert!(at(object, "/kind").unwrap().ends_with("Class"), "{object}");
            report(class_problems(object));
        }
    }
    for class in example("storageclass") {
        assert_eq!(class["allowVolumeExpansion"], true, "{class}");
        let one_of = |field, allowed: [&str; 2]| assert!(allowed.map(Some).contains(&at(&class, field)), "{class}");
        one_of("/reclaimPolicy", ["Delete", "Retain"]);
        one_of("/volumeBindingMode", ["Immediate", "WaitForFirstConsumer"]);
    }
}

#[test]
fn the_examples_show_both_policies_and_both_bindings() {
    let field = |example_: &str, index: usize, field: &str| example(example_)[index][field].clone();
    for (example_, index, policy, value) in [
        ("storageclass", 0, "reclaimPolicy", "Delete"),
        ("storageclass", 1, "reclaimPolicy", "Retain"),
        ("storageclass", 0, "volumeBindingMode", "Immediate"),
        ("storageclass", 1, "volumeBindingMode", "WaitForFirstConsumer"),
        ("snapshotclass", 0, "deletionPolicy", "Delete"),
        ("groupsnapshotclass", 0, "deletionPolicy", "Retain"),
    ] {
        assert_eq!(field(example_, index, policy), value, "{example_}");
    }
    assert_eq!(field("snapshotclass", 0, "parameters")["retentionDays"], "30");
    assert_eq!(
        field("groupsnapshotclass", 0, "parameters")["snapshotTags/team"],
        "storage"
    );
}

#[test]
fn a_parameter_that_is_not_a_string_and_an_unknown_field_are_rejected_as_in_kubernetes() {
    let text = read("examples/storageclass.yaml");
    for (valid, invalid) in [
        ("\"false\"", "false"),
        ("  name:", "  nam:"),
        ("parameters:", "parameter:"),
    ] {
        assert!(text.contains(valid), "{valid}");
        let classes = objects(&text.replace(valid, invalid));
        assert!(
            classes.iter().any(|class| !class_problems(class).is_empty()),
            "{invalid}"
        );
    }
    let claim = &example("expansion")[0];
    assert_eq!(
        unknown_fields(claim, "apiVersion kind metadata metadata.name spec").len(),
        6
    );
}

#[test]
fn claims_name_classes_and_claims_of_the_examples() {
    let [resized, clone] = ["expansion", "clone"].map(|name| {
        let mut claims = example(name);
        assert_eq!(claims.len(), 1, "{name}");
        claims.remove(0)
    });
    let fields = "
        apiVersion kind metadata metadata.name spec spec.storageClassName spec.volumeAttributesClassName
        spec.accessModes spec.dataSource spec.dataSource.kind spec.dataSource.name
        spec.resources spec.resources.requests spec.resources.requests.storage
    ";
    for claim in [&resized, &clone] {
        report(unknown_fields(claim, fields));
        assert_eq!(at(claim, "/apiVersion"), Some("v1"));
        assert_eq!(at(claim, "/kind"), Some("PersistentVolumeClaim"));
        assert!(
            has_class("storageclass", at(claim, "/spec/storageClassName")),
            "{claim}"
        );
        assert!(at(claim, "/spec/resources/requests/storage").is_some(), "{claim}");
    }
    let class = at(&resized, "/spec/volumeAttributesClassName");
    assert!(has_class("volumeattributesclass", class), "{resized}");
    assert_eq!(at(&clone, "/spec/dataSource/kind"), Some("PersistentVolumeClaim"));
    assert_ne!(at(&clone, "/spec/dataSource/name"), at(&clone, "/metadata/name"));
    assert_eq!(clone["spec"]["accessModes"], serde_json::json!(["ReadWriteOnce"]));
}
