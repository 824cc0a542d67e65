//! Names and labels: two releases in one cluster share nothing, and selectors are stable.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::render::{Object, all, least, list, names, one, rendered, text, texts, variant};
use crate::report;

/// Cluster-scoped kinds.
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
    let Some(second) = rendered("ack") else { return };
    let (first, second) = (names(&variant("minimal")), names(&second));
    let shared: Vec<_> = first.iter().filter(|name| second.contains(name)).collect();
    assert!(shared.is_empty(), "{shared:?}");
}

#[test]
fn two_releases_share_no_host_directory_and_no_socket() {
    // Shared by all CSI drivers of a node.
    let common = [
        "/dev",
        "/var/lib/kubelet/plugins",
        "/var/lib/kubelet/pods",
        "/var/lib/kubelet/plugins_registry",
    ];
    let Some(second) = rendered("ack") else { return };
    let own = |objects: &[Object]| -> BTreeSet<String> {
        let node = one(objects, "DaemonSet");
        let volumes = list(node.pod().unwrap(), "/volumes").into_iter();
        let paths = volumes.filter_map(|volume| volume.pointer("/hostPath/path")?.as_str());
        let paths = paths.map(str::to_owned);
        let args = texts(node.containers()[0].body, "/args");
        let sockets = args.iter().filter(|arg| arg.starts_with("--kubelet-socket="));
        let sockets: Vec<String> = sockets.map(|arg| (*arg).to_owned()).collect();
        assert_eq!(sockets.len(), 1, "{args:?}");
        let own = paths.filter(|path| !common.contains(&path.as_str()));
        own.chain(sockets).collect()
    };
    let (first, second) = (own(&variant("minimal")), own(&second));
    assert_eq!(first.len(), 3, "{first:?}");
    assert!(first.is_disjoint(&second), "{first:?} {second:?}");
}

#[test]
fn every_object_has_the_standard_labels_and_the_namespace_of_the_release() {
    report(all().iter().flat_map(|object| {
        let labels = &object.body["metadata"]["labels"];
        let standard = ["name", "instance", "component", "part-of", "managed-by", "version"];
        let missing = standard.iter().map(|label| format!("app.kubernetes.io/{label}"));
        let missing = missing.filter(|label| !labels[label.as_str()].is_string());
        let mut wrong: Vec<String> = missing.map(|label| format!("{}: no {label}", object.at())).collect();
        let namespace = object.body.pointer("/metadata/namespace");
        // The value `monitoring.namespace`.
        let is_monitoring =
            ["PodMonitor", "PrometheusRule"].contains(&object.kind.as_str()) || object.name.contains("-dashboard-");
        let expected = json!(if is_monitoring { "monitoring" } else { "storage" });
        let expected = (!CLUSTER.contains(&object.kind.as_str())).then_some(&expected);
        if namespace != expected {
            wrong.push(format!("{}: namespace {namespace:?}", object.at()));
        }
        wrong
    }));
}

/// Selectors are immutable: with another one an upgrade would fail.
#[test]
fn selectors_do_not_depend_on_the_version() {
    let mut count = 0;
    report(all().iter().filter_map(|object| {
        let selector = object.body.pointer("/spec/selector/matchLabels")?;
        count += 1;
        let keys: Vec<&str> = selector.as_object().unwrap().keys().map(String::as_str).collect();
        let expected = ["component", "instance", "name"].map(|key| format!("app.kubernetes.io/{key}"));
        let mut sorted = keys.clone();
        sorted.sort_unstable();
        (sorted != expected).then(|| format!("{}: {keys:?}", object.at()))
    }));
    assert!(count > least(10, 5), "only {count} selectors were found");
}

#[test]
fn every_selector_matches_the_pods_of_one_object() {
    let objects = all();
    let pods: Vec<(&Object, &Value)> = objects
        .iter()
        .filter_map(|object| Some((object, object.body.pointer("/spec/template/metadata/labels")?)))
        .collect();
    report(objects.iter().filter_map(|object| {
        let pointers = ["/spec/selector/matchLabels", "/spec/podSelector/matchLabels"];
        let selector = pointers.iter().find_map(|pointer| object.body.pointer(pointer))?;
        let expected = selector.as_object().unwrap();
        let found = pods.iter().filter(|(owner, labels)| {
            owner.variant == object.variant && expected.iter().all(|(key, value)| labels.get(key) == Some(value))
        });
        let found = found.count();
        (found != 1).then(|| format!("{}: selects the pods of {found} objects", object.at()))
    }));
}

#[test]
fn bindings_refer_to_existing_roles_and_service_accounts() {
    let objects = all();
    let mut known: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for object in &objects {
        known
            .entry(&object.variant)
            .or_default()
            .insert((&object.kind, &object.name));
    }
    let bindings = objects.iter().filter(|object| object.kind.ends_with("RoleBinding"));
    report(bindings.flat_map(|binding| {
        let role = (
            text(&binding.body, "/roleRef/kind"),
            text(&binding.body, "/roleRef/name"),
        );
        let subjects = list(&binding.body, "/subjects").into_iter();
        let named = subjects.map(|subject| (text(subject, "/kind"), text(subject, "/name")));
        let named: Vec<_> = named.chain([role]).collect();
        // Every cluster has it.
        let built_in = ("ClusterRole", "system:auth-delegator");
        let named = named.into_iter().filter(|named| *named != built_in);
        let missing = named.filter(|named| !known[binding.variant.as_str()].contains(named));
        missing
            .map(|missing| format!("{}: {missing:?} does not exist", binding.at()))
            .collect::<Vec<_>>()
    }));
}
