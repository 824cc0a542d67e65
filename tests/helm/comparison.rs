//! The reference compares this chart with the chart of the vendor's driver. This chart's column is read from the render
//! of the production values; only measured figures are constants.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::page::assert_generated;
use crate::render::{Object, list, one, text, variant};
use crate::rights::{PAGE, is_role, rules};

const BEGIN: &str = "<!-- comparison -->\n\n";
const END: &str = "\n\n<!-- end of comparison -->";

/// `VmRSS` of the release build with the HTTP port, six seconds after the start.
const CONTROLLER_IDLE: &str = "9.5 MiB";
const NODE_IDLE: &str = "6.5 MiB";

/// A table: its heading, and rows of subject, this chart, the vendor's chart.
type Table = (&'static str, Vec<(&'static str, String, &'static str)>);

fn tables(objects: &[Object]) -> [Table; 2] {
    let (controller, node) = (one(objects, "Deployment"), one(objects, "DaemonSet"));
    let node = vec![
        (
            "containers",
            containers(node),
            "driver, node-driver-registrar, init container",
        ),
        ("memory request, limit", memory(node).join("; "), "not compared"),
        (
            "resident memory of the idle driver",
            NODE_IDLE.to_owned(),
            "not measured",
        ),
        ("host namespaces", namespaces(node), "network, PID, IPC"),
        (
            "host paths",
            format!("{}, see [host paths](#host-paths)", paths(node)),
            "7, with `/etc`, `/usr` and all of kubelet's directory",
        ),
        ("capabilities", capabilities(node), "all (privileged)"),
        (
            "API permissions",
            permissions(objects, node),
            "create and delete PersistentVolumes, patch Nodes, create Secrets",
        ),
        (
            "volumes with a Secret or token",
            secret_volumes(node),
            "optional cloud credentials",
        ),
    ];
    let controller = vec![
        ("containers", containers(controller), "driver, 4 forked sidecars"),
        (
            "memory request, limit",
            memory(controller).join("; "),
            "driver 128Mi, 1Gi",
        ),
        (
            "resident memory of the idle driver",
            CONTROLLER_IDLE.to_owned(),
            "not measured",
        ),
        ("host namespaces", namespaces(controller), "not compared"),
        ("host paths", paths(controller), "not compared"),
        (
            "capabilities",
            capabilities(controller),
            "user 65532, read-only root filesystem",
        ),
        (
            "API permissions that write",
            permissions(objects, controller),
            "not compared",
        ),
        ("permissions on Secrets", secrets(objects), "not compared"),
    ];
    [("Node plugin", node), ("Controller", controller)]
}

fn containers(object: &Object) -> String {
    let all = object.containers();
    let sidecars = all.iter().filter(|container| container.name != "diskplugin");
    match sidecars.count() {
        0 => "driver".to_owned(),
        sidecars => format!("driver, {sidecars} upstream sidecars"),
    }
}

/// Request and limit of the containers, equal ones together.
fn memory(object: &Object) -> Vec<String> {
    let mut by_size: BTreeMap<String, usize> = BTreeMap::new();
    for container in object.containers() {
        let of = |kind: &str| text(container.body, &format!("/resources/{kind}/memory"));
        let size = format!("{}, {}", of("requests"), of("limits"));
        *by_size.entry(size).or_default() += 1;
    }
    let parts = by_size.iter().map(|(size, count)| match count {
        1 => size.clone(),
        count => format!("{count} times {size}"),
    });
    parts.collect()
}

fn namespaces(object: &Object) -> String {
    let pod = object.pod().unwrap();
    let all = ["hostNetwork", "hostPID", "hostIPC"];
    let given = all.iter().filter(|name| pod[**name] == true);
    or_none(given.map(|name| format!("`{name}`")))
}

fn paths(object: &Object) -> String {
    let volumes = list(object.pod().unwrap(), "/volumes").into_iter();
    count(volumes.filter(|volume| volume.get("hostPath").is_some()))
}

fn capabilities(object: &Object) -> String {
    let mut held = BTreeSet::new();
    for container in object.containers() {
        let security = &container.body["securityContext"];
        let capabilities = &security["capabilities"];
        if security["privileged"] == true {
            held.insert("all (privileged)".to_owned());
            continue;
        }
        let drops_all = list(capabilities, "/drop").iter().any(|one| *one == "ALL");
        assert!(drops_all, "{}: keeps capabilities", container.at());
        let added = list(capabilities, "/add").into_iter();
        held.extend(added.map(Value::to_string));
    }
    or_none(held.into_iter())
}

/// The number of resources that a pod's ServiceAccount can write.
fn permissions(objects: &[Object], of: &Object) -> String {
    let account = text(of.pod().unwrap(), "/serviceAccountName");
    let bound = objects.iter().filter(|object| {
        object.kind.ends_with("RoleBinding")
            && list(&object.body, "/subjects")
                .iter()
                .any(|subject| text(subject, "/name") == account)
    });
    let roles: Vec<_> = bound
        .map(|binding| {
            let name = text(&binding.body, "/roleRef/name");
            let role = objects.iter().find(|object| is_role(object) && object.name == name);
            role.unwrap_or_else(|| panic!("{}: no role {name}", binding.at()))
        })
        .collect();
    if roles.is_empty() {
        return "none".to_owned();
    }
    let rules = roles.iter().flat_map(|role| rules(role));
    let written = rules.filter(|(_, verbs)| {
        let reads = ["get", "list", "watch"];
        verbs.iter().any(|verb| !reads.contains(verb))
    });
    let written: BTreeSet<String> = written.map(|(resource, _)| resource).collect();
    if written.is_empty() {
        return "read only, see [API permissions](#api-permissions)".to_owned();
    }
    format!("{} resources, see [API permissions](#api-permissions)", written.len())
}

fn secrets(objects: &[Object]) -> String {
    let roles = objects.iter().filter(|object| is_role(object));
    let rules = roles.flat_map(rules);
    let of_secrets = rules.filter(|(resource, _)| resource == "secrets");
    or_none(of_secrets.map(|(_, verbs)| verbs.join(", ")))
}

/// Volumes that can contain credentials.
fn secret_volumes(object: &Object) -> String {
    let pod = object.pod().unwrap();
    let volumes = list(pod, "/volumes").into_iter();
    let volumes = volumes.filter(|volume| ["secret", "projected"].iter().any(|kind| volume.get(kind).is_some()));
    or_none(volumes.map(|volume| format!("`{}`", text(volume, "/name"))))
}

fn count<T>(parts: impl Iterator<Item = T>) -> String {
    match parts.count() {
        0 => "none".to_owned(),
        count => count.to_string(),
    }
}

fn or_none(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<_> = parts.collect();
    match parts.as_slice() {
        [] => "none".to_owned(),
        parts => parts.join(", "),
    }
}

#[test]
fn reference_compares_the_rendered_chart() {
    let tables = tables(&variant("production")).map(|(heading, rows)| {
        let begin = format!("| {heading} | this chart | the vendor's |\n| --- | --- | --- |");
        let rows = rows.into_iter();
        let rows = rows.map(|(subject, ours, theirs)| format!("| {subject} | {ours} | {theirs} |"));
        [begin].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
    });
    assert_generated(PAGE, (BEGIN, END), &tables.join("\n\n"));
}
