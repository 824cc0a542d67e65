//! The references are complete.

use std::collections::{BTreeSet, HashMap};

use diskplugin::csi::param::snapshot::SnapshotClass;
use diskplugin::csi::param::{Class, mutable};
use diskplugin::model::{Category, Filesystem};
use fake_ecs::config::Config;
use fake_ecs::fault::FaultKind;

use crate::page::{files_below, page, read, root};
use crate::report;

#[test]
fn every_parameter_of_every_class_has_its_row() {
    let classes = read("docs/reference/storage-class.md");
    let attributes = read("docs/reference/volume-attributes-class.md");
    let snapshots = read("docs/reference/snapshot-class.md");
    let (single, group) = snapshots.split_once("## VolumeGroupSnapshotClass").unwrap();
    for (page, rejection) in [
        (classes.as_str(), Class::read(&unknown()).unwrap_err().to_string()),
        (&attributes, mutable::read(&unknown()).unwrap_err().to_string()),
        (single, SnapshotClass::read(&unknown()).unwrap_err().to_string()),
        (group, SnapshotClass::read_of_group(&unknown()).unwrap_err().to_string()),
    ] {
        let rows = allowed(&rejection).into_iter().map(|name| format!("| `{name}` |"));
        report(rows.filter(|row| !page.contains(row)));
    }
}

pub(crate) fn unknown() -> HashMap<String, String> {
    HashMap::from([("unknown".to_owned(), String::new())])
}

/// The parameters that an error lists as allowed.
pub(crate) fn allowed(rejection: &str) -> Vec<String> {
    let (_, allowed) = rejection
        .split_once("allowed: ")
        .expect("the error lists the allowed ones");
    let names = allowed.replace(" and ", ", ");
    names.split(", ").map(str::to_owned).collect()
}

/// The comparison states what only other drivers have.
#[test]
fn create_volume_rejects_every_parameter_and_filesystem_that_only_others_have() {
    let rejection = |key: &str, value: &str| {
        let class = HashMap::from([(key.to_owned(), value.to_owned())]);
        Class::read(&class).err().map(|error| error.to_string())
    };
    let page = read("docs/explanation/comparison.md");
    let (_, section) = page.split_once("## What others have and this driver does not").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let rows = section.lines().filter_map(|line| line.strip_prefix("| "));
    let features = rows.filter_map(|row| row.split(" | ").next());
    let names: Vec<_> = features.flat_map(|cell| cell.split('`').skip(1).step_by(2)).collect();
    assert!(names.len() > 10, "{names:?}");
    report(names.into_iter().filter_map(|name| {
        let unknown = rejection(name, "1").is_some_and(|error| error.contains("unknown parameter"));
        (!unknown || rejection("fsType", name).is_none()).then(|| format!("{name} exists in this driver"))
    }));
}

#[test]
fn every_category_and_filesystem_is_in_the_storage_class_reference() {
    let page = page("docs/reference/storage-class.md");
    // First those of `available`, in the order of attempts.
    let (available, named) = Category::KNOWN.split_at(Category::CREATABLE.len());
    assert_eq!(available, Category::CREATABLE);
    for categories in [available, named] {
        let rows = categories.iter().map(|category| {
            let sizes = category.sizes().expect("a category that can be created has sizes");
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
fn every_grpc_code_of_the_services_has_its_row() {
    let texts = files_below("src/csi", "rs").into_iter().map(read);
    let codes: Vec<_> = texts.flat_map(|text| codes(&text)).collect();
    assert!(codes.iter().any(|code| code == "NOT_FOUND"), "{codes:?}");
    let text = read("docs/reference/errors.md");
    let rows = codes.iter().map(|code| format!("| `{code}` |"));
    report(rows.filter(|row| !text.contains(row)));
}

/// `Code::NotFound` and `Status::not_found(`.
fn codes(text: &str) -> Vec<String> {
    let mut codes = Vec::new();
    for (start, end) in [("Code::", ""), ("Status::", "(")] {
        for rest in text.split(start).skip(1) {
            let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let is_code = !["new", "Ok", "from_header_map", "ok"].contains(&name.as_str());
            if is_code && rest[name.len()..].starts_with(end) {
                codes.push(upper(&name));
            }
        }
    }
    codes
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
    for (path, page) in [
        ("src/csi/controller/rpc.rs", "controller-rpcs.md"),
        ("src/csi/controller/group.rs", "controller-rpcs.md"),
        ("src/csi/node.rs", "node-rpcs.md"),
    ] {
        let (source, text) = (read(path), read(format!("docs/reference/{page}")));
        let (_, implementation) = source.split_once("#[tonic::async_trait]").unwrap();
        let functions = implementation.split("    async fn ").skip(1).inspect(|_| calls += 1);
        let names = functions.map(|rest| camel(rest.split('(').next().unwrap()));
        report(names.filter(|name| !text.contains(name.as_str())));
    }
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
    let sources = ["src", "crates/ecs/src", "crates/fake-ecs/src"].map(|folder| files_below(folder, "rs"));
    // Every folder of modules, without those of unit tests.
    let files = sources
        .iter()
        .flatten()
        .filter(|file| !file.iter().any(|part| part == "tests"));
    let mut folders: BTreeSet<String> = BTreeSet::new();
    for file in files {
        let above = file.ancestors().skip(1).take_while(|folder| !folder.ends_with("src"));
        folders.extend(above.map(|folder| folder.display().to_string()));
    }
    for entry in std::fs::read_dir(root().join("tests")).unwrap() {
        folders.insert(format!("tests/{}", entry.unwrap().file_name().display()));
    }
    assert!(folders.len() > 20, "folders are missing: {folders:?}");
    let missing = folders
        .into_iter()
        .filter(|name| !page.has_span(name) && !page.has_span(&format!("{name}/")));
    report(missing);
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
    report(tags.map(|tag| format!("| {tag} |")).filter(|row| !page.contains(row)));
}

#[test]
fn every_fault_and_every_key_of_the_fake_cloud_is_named() {
    let page = page("docs/reference/fake-cloud.md");
    let refusal = serde_json::from_str::<FaultKind>("\"unknown\"").unwrap_err();
    let refusal = refusal.to_string();
    let (_, kinds) = refusal.split_once("one of ").expect("the error lists them");
    let kinds = kinds.split('`').skip(1).step_by(2);
    let rows = |kind: &str| [format!("| `{kind}` |"), format!("| `{{\"{kind}\":")];
    report(
        kinds
            .filter(|kind| !rows(kind).iter().any(|row| page.text.contains(row)))
            .map(str::to_owned),
    );
    let config = serde_json::to_value(Config::default()).unwrap();
    let mut keys = Vec::new();
    for (key, value) in config.as_object().unwrap() {
        keys.push(key.clone());
        keys.extend(value.as_object().into_iter().flatten().map(|(k, _)| k.clone()));
    }
    report(keys.into_iter().filter(|key| !page.has_span(key)));
}
