//! Each folder of the examples is complete in itself, and the driver takes what it says.

use std::collections::{BTreeSet, HashMap};

use diskplugin::csi::param::snapshot::SnapshotClass;
use diskplugin::csi::param::{Class, mutable};
use diskplugin::model::driver::DRIVER;
use serde_json::Value;

use crate::page::{Page, read, root};
use crate::report;

/// A use case: its folder, and what is applied.
struct UseCase {
    name: String,
    /// What `kubectl apply -f` is given, in this order: the folder, or its numbered files.
    applied: Vec<String>,
    objects: Vec<Value>,
}

fn use_cases() -> Vec<UseCase> {
    let entries = std::fs::read_dir(root().join("examples")).unwrap();
    let folders = entries.map(|entry| entry.unwrap().path());
    let mut names: Vec<String> = folders
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().display().to_string())
        .collect();
    names.sort();
    assert!(names.len() > 10, "the walk misses folders: {names:?}");
    let cases = names.into_iter().map(|name| {
        let mut files: Vec<String> = std::fs::read_dir(root().join("examples").join(&name))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().display().to_string())
            .collect();
        files.retain(|file| file != "README.md");
        files.sort();
        let mut steps = files.iter().zip(1..);
        let numbered = steps.all(|(file, step)| file.starts_with(&format!("{step}-")) && file.ends_with(".yaml"));
        let applied = match files.as_slice() {
            [file] if *file == format!("{name}.yaml") => vec![format!("examples/{name}")],
            [_, _, ..] if numbered => {
                let steps = files.iter().map(|file| format!("examples/{name}/{file}"));
                steps.collect()
            }
            other => panic!("{name}: {other:?} is neither {name}.yaml nor numbered steps"),
        };
        let objects = files.iter().flat_map(|file| {
            let objects = serde_saphyr::from_multiple(&read(format!("examples/{name}/{file}")));
            let objects: Vec<Value> = objects.unwrap_or_else(|error| panic!("{name}: {error}"));
            objects.into_iter().filter(|object| !object.is_null())
        });
        UseCase {
            objects: objects.collect(),
            applied,
            name,
        }
    });
    cases.collect()
}

/// A text, or nothing.
fn at<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str)
}

fn parameters(object: &Value) -> HashMap<String, String> {
    let given = object.get("parameters").and_then(Value::as_object);
    let given = given.into_iter().flatten();
    given
        .map(|(key, value)| (key.clone(), value.as_str().unwrap().to_owned()))
        .collect()
}

#[test]
fn every_class_of_a_use_case_is_one_that_the_driver_accepts() {
    let mut seen = BTreeSet::new();
    report(use_cases().iter().flat_map(|case| {
        let wrong = case.objects.iter().filter_map(|object| {
            let given = parameters(object);
            let kind = at(object, "/kind").unwrap();
            let refusal = match kind {
                "StorageClass" => Class::read(&given).err(),
                "VolumeSnapshotClass" => SnapshotClass::read(&given).err(),
                "VolumeGroupSnapshotClass" => SnapshotClass::read_of_group(&given).err(),
                "VolumeAttributesClass" => mutable::read(&given).err(),
                _ => return None,
            };
            seen.insert(kind.to_owned());
            let named = ["/provisioner", "/driver", "/driverName"];
            let named = named.iter().find_map(|pointer| at(object, pointer));
            if named != Some(DRIVER) {
                return Some(format!("{}: {kind} is of {named:?}", case.name));
            }
            Some(format!("{}: {}", case.name, refusal?))
        });
        wrong.collect::<Vec<_>>()
    }));
    assert_eq!(seen.len(), 4, "{seen:?}");
}

/// Every object that a use case has, by kind and name.
fn known(case: &UseCase) -> BTreeSet<(String, String)> {
    let objects = case.objects.iter();
    let known = objects.map(|object| {
        let (kind, name) = (at(object, "/kind"), at(object, "/metadata/name"));
        (kind.unwrap().to_owned(), name.unwrap().to_owned())
    });
    known.collect()
}

/// Every name by which an object names another one, with its kind.
fn named(object: &Value, found: &mut Vec<(String, String)>) {
    let kinds = [
        ("storageClassName", "StorageClass"),
        ("volumeAttributesClassName", "VolumeAttributesClass"),
        ("volumeSnapshotClassName", "VolumeSnapshotClass"),
        ("volumeGroupSnapshotClassName", "VolumeGroupSnapshotClass"),
        ("persistentVolumeClaimName", "PersistentVolumeClaim"),
        ("claimName", "PersistentVolumeClaim"),
        ("volumeName", "PersistentVolume"),
        ("serviceName", "Service"),
    ];
    match object {
        Value::Object(fields) => {
            for (key, value) in fields {
                let kind = kinds.iter().find(|(name, _)| name == key).map(|(_, kind)| *kind);
                let (text, source) = (value.as_str(), ["dataSource", "claimRef"].contains(&key.as_str()));
                match (kind, text) {
                    (Some(kind), Some(name)) if !name.is_empty() => {
                        found.push((kind.to_owned(), name.to_owned()));
                    }
                    _ if source => found.push((
                        at(value, "/kind").unwrap_or("PersistentVolumeClaim").to_owned(),
                        at(value, "/name").unwrap().to_owned(),
                    )),
                    _ => named(value, found),
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|element| named(element, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn a_use_case_names_only_what_it_has_itself_and_names_all_that_it_has() {
    report(use_cases().iter().flat_map(|case| {
        let known = known(case);
        assert_eq!(known.len(), case.objects.len(), "{}: two of one name", case.name);
        let mut found = Vec::new();
        case.objects.iter().for_each(|object| named(object, &mut found));
        let lost = found.iter().filter(|name| !known.contains(name));
        let lost = lost.map(|name| format!("{}: {name:?} is not there", case.name));
        let classes = known.iter().filter(|(kind, _)| kind == "StorageClass");
        let unused = classes.filter(|name| !found.contains(name));
        let unused = unused.map(|name| format!("{}: {name:?} is not used", case.name));
        lost.chain(unused).collect::<Vec<_>>()
    }));
}

#[test]
fn two_use_cases_can_be_in_one_cluster() {
    let mut all = BTreeSet::new();
    report(use_cases().iter().flat_map(|case| {
        let again = known(case).into_iter().filter(|name| !all.insert(name.clone()));
        let again = again.map(|name| format!("{}: {name:?} is in another one too", case.name));
        again.collect::<Vec<_>>()
    }));
}

/// A device is a device where it is claimed and where it is used, and only a device is shared.
#[test]
fn a_claim_asks_for_what_the_driver_has() {
    report(use_cases().iter().flat_map(|case| {
        let claims = case
            .objects
            .iter()
            .filter(|object| at(object, "/kind") == Some("PersistentVolumeClaim"));
        let wrong = claims.filter(|claim| {
            let block = at(claim, "/spec/volumeMode") == Some("Block");
            let shared = at(claim, "/spec/accessModes/0") == Some("ReadWriteMany");
            let text = serde_json::to_string(&case.objects).unwrap();
            (shared && !(block && text.contains("multiAttach"))) || block != text.contains("volumeDevices")
        });
        wrong.map(|claim| format!("{}: {claim}", case.name)).collect::<Vec<_>>()
    }));
}

/// What a page tells to apply, in this order. A copy, which is edited first, stands for what it is a copy of.
fn told(page: &Page) -> Vec<String> {
    let text = page.blocks.iter().filter(|block| block.language == "text");
    let lines = text.flat_map(|block| block.text.lines());
    let (mut copies, mut told) = (HashMap::new(), Vec::new());
    for command in lines.flat_map(|line| line.split(" && ")) {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["cp", original, copy] => {
                copies.insert(*copy, *original);
            }
            ["kubectl", "apply", "-f", what] => {
                let what = copies.get(what).unwrap_or(what);
                told.push((*what).to_owned());
            }
            _ => {}
        }
    }
    told
}

#[test]
fn every_use_case_has_a_page_that_says_what_to_type_and_a_row_in_the_list() {
    let index = Page::read("examples/README.md".as_ref(), &read("examples/README.md"));
    report(use_cases().iter().flat_map(|case| {
        let path = format!("examples/{}/README.md", case.name);
        let page = Page::read(path.as_ref(), &read(&path));
        let told = told(&page);
        // The only file of a folder is all of it.
        let only = format!("/{}.yaml", case.name);
        let whole = told.iter().map(|what| what.strip_suffix(&only).unwrap_or(what));
        let named = page
            .text
            .split_whitespace()
            .filter(|word| word.starts_with("examples/"));
        let link = format!("{}/README.md", case.name);
        let missing = [
            (
                whole.eq(&case.applied) && named.eq(&told),
                "its page does not say how to apply it",
            ),
            (index.links.contains(&link), "the list does not have it"),
            (page.text.lines().count() < 14, "its page is too long"),
        ];
        let missing = missing.into_iter().filter(|(there, _)| !there);
        missing
            .map(|(_, what)| format!("{}: {what}", case.name))
            .collect::<Vec<_>>()
    }));
    let links = index.links.iter();
    let dead = links.filter(|link| !root().join("examples").join(link).exists());
    report(dead.map(|link| format!("{link} leads nowhere")));
}
