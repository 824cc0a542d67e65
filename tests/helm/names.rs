//! Names and labels: two releases side by side, and what may never change.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::render::{Object, all, list, text, texts, variant};
use crate::report;

/// Kinds without a namespace.
const CLUSTER: [&str; 7] = [
    "CSIDriver",
    "ClusterRole",
    "ClusterRoleBinding",
    "StorageClass",
    "VolumeAttributesClass",
    "VolumeGroupSnapshotClass",
    "VolumeSnapshotClass",
];

#[test]
fn two_releases_share_no_object() {
    let names = |name: &str| -> BTreeSet<(String, String)> {
        let objects = variant(name).into_iter();
        objects.map(|object| (object.kind, object.name)).collect()
    };
    let (first, second) = (names("least"), names("second"));
    let shared: Vec<_> = first.intersection(&second).collect();
    assert!(shared.is_empty(), "{shared:?}");
}

#[test]
fn two_releases_share_no_directory_and_no_socket_of_a_machine() {
    // What all drivers look into, and nobody owns.
    let common = [
        "/dev",
        "/var/lib/kubelet/plugins",
        "/var/lib/kubelet/pods",
        "/var/lib/kubelet/plugins_registry",
    ];
    let own = |name: &str| -> BTreeSet<String> {
        let objects = variant(name);
        let node = objects
            .iter()
            .find(|object| object.kind == "DaemonSet")
            .unwrap();
        let volumes = list(node.pod().unwrap(), "/volumes").into_iter();
        let paths = volumes.filter_map(|volume| volume.pointer("/hostPath/path")?.as_str());
        let paths = paths.map(str::to_owned);
        let args = texts(node.containers()[0].body, "/args");
        let sockets = args
            .iter()
            .filter(|arg| arg.starts_with("--kubelet-socket="));
        let sockets: Vec<String> = sockets.map(|arg| (*arg).to_owned()).collect();
        assert_eq!(sockets.len(), 1, "{args:?}");
        let own = paths.filter(|path| !common.contains(&path.as_str()));
        own.chain(sockets).collect()
    };
    let (first, second) = (own("least"), own("second"));
    assert_eq!(first.len(), 3, "{first:?}");
    assert!(first.is_disjoint(&second), "{first:?} {second:?}");
}

#[test]
fn every_object_says_whose_it_is_and_what_has_a_namespace_is_in_the_releases() {
    report(all().iter().flat_map(|object| {
        let labels = &object.body["metadata"]["labels"];
        let standard = [
            "name",
            "instance",
            "component",
            "part-of",
            "managed-by",
            "version",
        ];
        let missing = standard
            .iter()
            .map(|label| format!("app.kubernetes.io/{label}"));
        let missing = missing.filter(|label| !labels[label.as_str()].is_string());
        let mut wrong: Vec<String> = missing
            .map(|label| format!("{}: no {label}", object.at()))
            .collect();
        let namespace = object.body.pointer("/metadata/namespace");
        let wanted = json!("storage");
        let wanted = (!CLUSTER.contains(&object.kind.as_str())).then_some(&wanted);
        if namespace != wanted {
            wrong.push(format!("{}: namespace {namespace:?}", object.at()));
        }
        wrong
    }));
}

/// Kubernetes refuses another selector: an upgrade would fail.
#[test]
fn a_selector_has_nothing_that_changes_with_a_version() {
    let mut seen = 0;
    report(all().iter().filter_map(|object| {
        let selector = object.body.pointer("/spec/selector/matchLabels")?;
        seen += 1;
        let keys: Vec<&str> = selector
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        let wanted =
            ["component", "instance", "name"].map(|key| format!("app.kubernetes.io/{key}"));
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        (sorted != wanted).then(|| format!("{}: {keys:?}", object.at()))
    }));
    assert!(seen > 10, "only {seen} selectors were seen");
}

#[test]
fn every_selector_finds_the_pods_that_it_is_for() {
    let objects = all();
    let pods: Vec<(&Object, &Value)> = objects
        .iter()
        .filter_map(|object| {
            Some((
                object,
                object.body.pointer("/spec/template/metadata/labels")?,
            ))
        })
        .collect();
    report(objects.iter().filter_map(|object| {
        let pointers = [
            "/spec/selector/matchLabels",
            "/spec/podSelector/matchLabels",
        ];
        let selector = pointers
            .iter()
            .find_map(|pointer| object.body.pointer(pointer))?;
        let wanted = selector.as_object().unwrap();
        let found = pods.iter().filter(|(owner, labels)| {
            owner.variant == object.variant
                && wanted
                    .iter()
                    .all(|(key, value)| labels.get(key) == Some(value))
        });
        let found = found.count();
        (found != 1).then(|| format!("{}: selects the pods of {found} objects", object.at()))
    }));
}

#[test]
fn a_role_that_is_bound_is_there_and_is_bound_to_an_account_that_is_there() {
    let objects = all();
    let mut known: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for object in &objects {
        known
            .entry(&object.variant)
            .or_default()
            .insert((&object.kind, &object.name));
    }
    let bindings = objects
        .iter()
        .filter(|object| object.kind.ends_with("RoleBinding"));
    report(bindings.flat_map(|binding| {
        let role = (
            text(&binding.body, "/roleRef/kind"),
            text(&binding.body, "/roleRef/name"),
        );
        let subjects = list(&binding.body, "/subjects").into_iter();
        let named = subjects.map(|subject| (text(subject, "/kind"), text(subject, "/name")));
        let named: Vec<_> = named.chain([role]).collect();
        let lost = named
            .into_iter()
            .filter(|named| !known[binding.variant.as_str()].contains(named));
        lost.map(|lost| format!("{}: {lost:?} is not there", binding.at()))
            .collect::<Vec<_>>()
    }));
}
