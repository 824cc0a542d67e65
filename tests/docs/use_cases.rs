//! Each folder of the examples is complete, and the driver accepts its classes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use diskplugin::csi::param::snapshot::SnapshotClass;
use diskplugin::csi::param::{Class, mutable};
use diskplugin::model::driver::DRIVER;
use serde_json::Value;

use crate::page::{Page, files_below, page, read};
use crate::report;

/// A folder of the examples.
struct UseCase {
    name: String,
    /// The arguments of `kubectl apply -f` in this order: the folder, or its numbered files.
    applied: Vec<String>,
    objects: Vec<Value>,
}

fn use_cases() -> Vec<UseCase> {
    let mut files: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files_below("examples", "yaml") {
        let path = path.display().to_string();
        if let [_, folder, file] = path.split('/').collect::<Vec<_>>()[..] {
            files.entry(folder.to_owned()).or_default().push(file.to_owned());
        }
    }
    assert!(files.len() > 10, "folders are missing: {files:?}");
    let cases = files.into_iter().map(|(name, files)| {
        let mut steps = files.iter().zip(1..);
        let numbered = steps.all(|(file, step)| file.starts_with(&format!("{step}-")));
        let paths = files.iter().map(|file| format!("examples/{name}/{file}"));
        let applied = match files.as_slice() {
            [file] if *file == format!("{name}.yaml") => vec![format!("examples/{name}")],
            [_, _, ..] if numbered => paths.clone().collect(),
            other => panic!("{name}: {other:?} is neither {name}.yaml nor numbered steps"),
        };
        UseCase {
            objects: paths.flat_map(|path| objects(&read(path))).collect(),
            applied,
            name,
        }
    });
    cases.collect()
}

/// The objects of a file.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    let objects = serde_saphyr::from_multiple(text);
    let objects: Vec<Value> = objects.unwrap_or_else(|error| panic!("{error}: {text}"));
    objects.into_iter().filter(|object| !object.is_null()).collect()
}

/// A string, if the object has it.
pub(crate) fn at<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str)
}

/// Kinds of classes: the API version, the field with the name of the driver, and other fields.
const CLASSES: [(&str, &str, &str, &str); 4] = [
    (
        "StorageClass",
        "storage.k8s.io/v1",
        "provisioner",
        "allowVolumeExpansion allowedTopologies mountOptions parameters reclaimPolicy volumeBindingMode",
    ),
    ("VolumeAttributesClass", "storage.k8s.io/v1", "driverName", "parameters"),
    (
        "VolumeSnapshotClass",
        "snapshot.storage.k8s.io/v1",
        "driver",
        "deletionPolicy parameters",
    ),
    (
        "VolumeGroupSnapshotClass",
        "groupsnapshot.storage.k8s.io/v1",
        "driver",
        "deletionPolicy parameters",
    ),
];

/// The fields of an object that are not among the expected ones, by their paths: `spec.resources`.
pub(crate) fn unknown_fields(object: &Value, expected: &str) -> Vec<String> {
    fn collect(object: &Value, prefix: &str, paths: &mut Vec<String>) {
        for (key, value) in object.as_object().into_iter().flatten() {
            let path = format!("{prefix}{key}");
            collect(value, &format!("{path}."), paths);
            paths.push(path);
        }
    }
    let mut paths = Vec::new();
    collect(object, "", &mut paths);
    paths.retain(|path| !expected.split_whitespace().any(|known| known == path));
    paths
        .iter()
        .map(|path| format!("unknown field {path} in {object}"))
        .collect()
}

/// The reasons for which Kubernetes or the driver would reject a class; empty for other objects.
pub(crate) fn class_problems(object: &Value) -> Vec<String> {
    let (kind, name) = (at(object, "/kind").unwrap(), at(object, "/metadata/name"));
    let Some((_, version, driver, fields)) = CLASSES.iter().find(|(known, ..)| *known == kind) else {
        return Vec::new();
    };
    let mut problems = Vec::new();
    if at(object, "/apiVersion") != Some(version) || at(object, &format!("/{driver}")) != Some(DRIVER) {
        problems.push(format!("{name:?}: it must have {version} and {driver} {DRIVER}"));
    }
    let known = ["apiVersion", "kind", "metadata", driver]
        .into_iter()
        .chain(fields.split(' '));
    let known: Vec<_> = known.collect();
    let unknown = object
        .as_object()
        .unwrap()
        .keys()
        .filter(|key| !known.contains(&key.as_str()));
    problems.extend(unknown.map(|key| format!("{name:?}: unknown field {key}")));
    problems.extend(unknown_fields(&object["metadata"], "name"));
    let parameters = object
        .get("parameters")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let parameters = parameters.map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    let Some(parameters) = parameters.collect::<Option<HashMap<_, _>>>() else {
        problems.push(format!("{name:?}: a parameter is not a string"));
        return problems;
    };
    let rejection = match kind {
        "StorageClass" => Class::read(&parameters).err(),
        "VolumeSnapshotClass" => SnapshotClass::read(&parameters).err(),
        "VolumeGroupSnapshotClass" => SnapshotClass::read_of_group(&parameters).err(),
        _ => match mutable::read(&parameters) {
            Ok(change) if change.is_empty() => {
                problems.push(format!("{name:?} changes nothing"));
                None
            }
            read => read.err(),
        },
    };
    problems.extend(rejection.map(|rejection| format!("{name:?}: {rejection}")));
    problems
}

#[test]
fn the_driver_accepts_every_class_of_a_use_case() {
    let cases = use_cases();
    let objects = || cases.iter().flat_map(|case| &case.objects);
    report(objects().flat_map(class_problems));
    let kinds: BTreeSet<_> = objects().filter_map(|object| at(object, "/kind")).collect();
    assert!(CLASSES.iter().all(|(kind, ..)| kinds.contains(kind)), "{kinds:?}");
}

/// The kinds and names of the objects of a use case.
fn known(case: &UseCase) -> BTreeSet<(String, String)> {
    let objects = case.objects.iter();
    let known = objects.map(|object| {
        let (kind, name) = (at(object, "/kind"), at(object, "/metadata/name"));
        (kind.unwrap().to_owned(), name.unwrap().to_owned())
    });
    known.collect()
}

/// Collects the kinds and names of objects that an object refers to.
fn named(object: &Value, found: &mut Vec<(String, String)>) {
    let kinds = [
        ("storageClassName", "StorageClass"),
        ("volumeAttributesClassName", "VolumeAttributesClass"),
        ("volumeSnapshotClassName", "VolumeSnapshotClass"),
        ("volumeGroupSnapshotClassName", "VolumeGroupSnapshotClass"),
        ("persistentVolumeClaimName", "PersistentVolumeClaim"),
        ("claimName", "PersistentVolumeClaim"),
        ("volumeName", "PersistentVolume"),
        ("volumeSnapshotContentName", "VolumeSnapshotContent"),
        ("serviceName", "Service"),
    ];
    match object {
        Value::Object(fields) => {
            for (key, value) in fields {
                let kind = kinds.iter().find(|(name, _)| name == key).map(|(_, kind)| *kind);
                let (text, source) = (
                    value.as_str(),
                    ["dataSource", "claimRef", "volumeSnapshotRef"].contains(&key.as_str()),
                );
                let default = match key.as_str() {
                    "volumeSnapshotRef" => "VolumeSnapshot",
                    _ => "PersistentVolumeClaim",
                };
                match (kind, text) {
                    (Some(kind), Some(name)) if !name.is_empty() => {
                        found.push((kind.to_owned(), name.to_owned()));
                    }
                    _ if source => found.push((
                        at(value, "/kind").unwrap_or(default).to_owned(),
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
fn a_use_case_names_only_its_own_objects_and_each_of_its_classes() {
    report(use_cases().iter().flat_map(|case| {
        let known = known(case);
        assert_eq!(known.len(), case.objects.len(), "{}: a name occurs twice", case.name);
        let mut found = Vec::new();
        case.objects.iter().for_each(|object| named(object, &mut found));
        let lost = found.iter().filter(|name| !known.contains(name));
        let lost = lost.map(|name| format!("{}: {name:?} does not exist", case.name));
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
        let again = again.map(|name| format!("{}: {name:?} is also in another use case", case.name));
        again.collect::<Vec<_>>()
    }));
}

/// A raw block volume is claimed and used as a device, and only those are shared.
#[test]
fn claims_request_supported_modes() {
    report(use_cases().iter().flat_map(|case| {
        let claims = case.objects.iter();
        let claims = claims.filter(|object| at(object, "/kind") == Some("PersistentVolumeClaim"));
        let wrong = claims.filter(|claim| {
            let block = at(claim, "/spec/volumeMode") == Some("Block");
            let shared = at(claim, "/spec/accessModes/0") == Some("ReadWriteMany");
            let text = serde_json::to_string(&case.objects).unwrap();
            (shared && !(block && text.contains("multiAttach"))) || block != text.contains("volumeDevices")
        });
        wrong.map(|claim| format!("{}: {claim}", case.name)).collect::<Vec<_>>()
    }));
}

/// The files that the commands of a page apply, in this order. An edited copy counts as its original.
fn applied(page: &Page) -> Vec<String> {
    let text = page.blocks.iter().filter(|block| block.language == "text");
    let lines = text.flat_map(|block| block.text.lines());
    let (mut copies, mut applied) = (HashMap::new(), Vec::new());
    for command in lines.flat_map(|line| line.split(" && ")) {
        match command.split_whitespace().collect::<Vec<_>>()[..] {
            ["cp", original, copy] => drop(copies.insert(copy, original)),
            ["kubectl", "apply", "-f", path] => applied.push((*copies.get(path).unwrap_or(&path)).to_owned()),
            _ => {}
        }
    }
    applied
}

#[test]
fn every_use_case_has_a_page_with_its_commands_and_a_row_in_the_list() {
    let index = page("examples/README.md");
    report(use_cases().iter().flat_map(|case| {
        let page = page(format!("examples/{}/README.md", case.name));
        let applied = applied(&page);
        // The only file of a folder is the whole folder.
        let only = format!("/{}.yaml", case.name);
        let whole = applied.iter().map(|path| path.strip_suffix(&only).unwrap_or(path));
        let words = page.text.split_whitespace();
        let named = words.filter(|word| word.starts_with("examples/"));
        let link = format!("{}/README.md", case.name);
        let rules = [
            (
                whole.eq(&case.applied) && named.eq(&applied),
                "its page does not apply it",
            ),
            (index.links.contains(&link), "the list does not have it"),
            (page.text.lines().count() < 14, "its page is too long"),
        ];
        let broken = rules.into_iter().filter(|(holds, _)| !holds);
        broken
            .map(|(_, problem)| format!("{}: {problem}", case.name))
            .collect::<Vec<_>>()
    }));
}
