//! What a reference lists is all that the code knows.

use std::collections::HashMap;
use std::path::Path;

use diskplugin::csi::param::snapshot::SnapshotClass;
use diskplugin::csi::param::{Class, mutable};
use diskplugin::model::{Category, Filesystem};
use fake_ecs::config::Config;
use fake_ecs::fault::FaultKind;

use crate::page::{page, read, root};
use crate::report;

#[test]
fn every_parameter_of_a_storage_class_has_its_row() {
    let rejected = Class::read(&unknown()).unwrap_err().to_string();
    report(missing_rows(&rejected, &read("docs/reference/storage-class.md")));
}

#[test]
fn every_mutable_parameter_has_its_row() {
    let rejected = mutable::read(&unknown()).unwrap_err().to_string();
    report(missing_rows(
        &rejected,
        &read("docs/reference/volume-attributes-class.md"),
    ));
}

#[test]
fn every_parameter_of_both_snapshot_classes_has_its_row() {
    let text = read("docs/reference/snapshot-class.md");
    let (single, group) = text.split_once("## VolumeGroupSnapshotClass").unwrap();
    for (page, refusal) in [
        (single, SnapshotClass::read(&unknown())),
        (group, SnapshotClass::read_of_group(&unknown())),
    ] {
        report(missing_rows(&refusal.unwrap_err().to_string(), page));
    }
}

fn unknown() -> HashMap<String, String> {
    HashMap::from([("unknown".to_owned(), String::new())])
}

/// The rows of the parameters that an error lists as allowed, as far as the page does not have them.
fn missing_rows(rejected: &str, page: &str) -> Vec<String> {
    let allowed = rejected
        .split_once("allowed: ")
        .expect("the error lists what is allowed")
        .1;
    let allowed = allowed.replace(" and ", ", ");
    let rows = allowed.split(", ").map(|name| format!("| `{name}` |"));
    rows.filter(|row| !page.contains(row)).collect()
}

#[test]
fn every_category_and_filesystem_is_in_the_storage_class_reference() {
    let page = page("docs/reference/storage-class.md");
    // First those of `available`, in the order in which it tries them.
    let (available, named) = Category::KNOWN.split_at(Category::CREATABLE.len());
    assert_eq!(available, Category::CREATABLE);
    for categories in [available, named] {
        let rows = categories.iter().map(|category| {
            let sizes = category.sizes().expect("what is created has sizes");
            let (least, most) = (sizes.start().0, sizes.end().0);
            format!("| `{category}` | {least} to {most} |")
        });
        let rows = rows.collect::<Vec<_>>().join("\n");
        assert!(page.text.contains(&rows), "{rows}");
    }
    let missing = Filesystem::ALL.into_iter().map(|fs| fs.to_string());
    report(missing.filter(|name| !page.has_span(name)));
}

#[test]
fn every_grpc_code_that_the_services_answer_has_its_row() {
    let mut codes = Vec::new();
    gather_codes(&root().join("src/csi"), &mut codes);
    assert!(codes.iter().any(|code| code == "NOT_FOUND"), "{codes:?}");
    let text = read("docs/reference/errors.md");
    report(
        codes
            .iter()
            .map(|code| format!("| `{code}` |"))
            .filter(|row| !text.contains(row)),
    );
}

/// `Code::NotFound` and `Status::not_found(` alike.
fn gather_codes(folder: &Path, codes: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            gather_codes(&path, codes);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (start, end) in [("Code::", None), ("Status::", Some("("))] {
            for rest in text.split(start).skip(1) {
                let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let called = rest[name.len()..].starts_with(end.unwrap_or_default());
                if called && !["new", "Ok", "from_header_map", "ok"].contains(&name.as_str()) {
                    codes.push(upper(&name));
                }
            }
        }
    }
}

fn upper(name: &str) -> String {
    let mut upper = String::new();
    for (index, c) in name.char_indices() {
        if c.is_uppercase() && index > 0 {
            upper.push('_');
        }
        upper.extend(c.to_uppercase());
    }
    upper
}

#[test]
fn the_reference_describes_every_rpc_that_is_served() {
    let mut calls = 0;
    report(
        [
            ("src/csi/controller/rpc.rs", "controller-rpcs.md"),
            ("src/csi/node.rs", "node-rpcs.md"),
        ]
        .iter()
        .flat_map(|(path, page)| {
            let (source, text) = (read(path), read(format!("docs/reference/{page}")));
            let implementation = source.split_once("#[tonic::async_trait]").unwrap().1;
            let names = implementation.split("    async fn ").skip(1);
            names
                .filter_map(|rest| rest.split_once('('))
                .map(|(name, _)| camel(name))
                .inspect(|_| calls += 1)
                .filter(|name| !text.contains(name.as_str()))
                .collect::<Vec<_>>()
        }),
    );
    assert!(calls > 15, "only {calls} calls were found");
}

/// `create_volume` is `CreateVolume`.
fn camel(name: &str) -> String {
    let words = name.split('_').map(|word| {
        let (first, rest) = word.split_at(1);
        format!("{}{rest}", first.to_uppercase())
    });
    words.collect()
}

#[test]
fn the_architecture_names_every_folder_of_the_source_and_every_suite_of_tests() {
    let page = page("docs/architecture.md");
    let mut folders = Vec::new();
    gather_folders(Path::new("src"), &mut folders);
    gather_folders(Path::new("crates/ecs/src"), &mut folders);
    gather_folders(Path::new("crates/fake-ecs/src"), &mut folders);
    for entry in std::fs::read_dir(root().join("tests")).unwrap() {
        let name = entry.unwrap().file_name().display().to_string();
        folders.push(format!("tests/{name}"));
    }
    assert!(folders.len() > 20, "the walk misses folders: {folders:?}");
    report(
        folders
            .into_iter()
            .filter(|name| !page.has_span(name) && !page.has_span(&format!("{name}/"))),
    );
}

/// Folders of modules, without those of tests.
fn gather_folders(folder: &Path, folders: &mut Vec<String>) {
    for entry in std::fs::read_dir(root().join(folder)).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() && entry.file_name() != "tests" {
            let path = folder.join(entry.file_name());
            folders.push(path.display().to_string());
            gather_folders(&path, folders);
        }
    }
}

#[test]
fn the_supported_versions_include_every_sidecar_version_of_the_chart() {
    let values = read("deploy/helm/diskplugin/values.yaml");
    let values: serde_json::Value = serde_saphyr::from_str(&values).unwrap();
    let page = read("docs/reference/support.md");
    let sidecars = values["sidecars"].as_object().unwrap();
    assert!(sidecars.len() > 5, "{sidecars:?}");
    let tags = sidecars
        .values()
        .map(|sidecar| sidecar["image"]["tag"].as_str().unwrap());
    report(
        tags.filter(|tag| !page.contains(&format!("| {tag} |")))
            .map(str::to_owned),
    );
}

#[test]
fn every_fault_and_every_key_of_the_fake_cloud_is_named() {
    let page = page("docs/reference/fake-cloud.md");
    let refusal = serde_json::from_str::<FaultKind>("\"unknown\"").unwrap_err();
    let refusal = refusal.to_string();
    let kinds = refusal.split_once("one of ").expect("it names them").1;
    let kinds = kinds.split('`').skip(1).step_by(2);
    report(
        kinds
            .filter(|kind| !page.text.contains(&format!("| `{kind}` |")))
            .filter(|kind| !page.text.contains(&format!("| `{{\"{kind}\":")))
            .map(|kind| format!("fault {kind}")),
    );
    let config = serde_json::to_value(Config::default()).unwrap();
    let mut keys = Vec::new();
    for (key, value) in config.as_object().unwrap() {
        keys.push(key.clone());
        keys.extend(value.as_object().into_iter().flatten().map(|(k, _)| k.clone()));
    }
    report(keys.into_iter().filter(|key| !page.has_span(key)));
}
