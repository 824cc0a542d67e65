//! What this chart runs, with which rights, beside what the vendor's chart for its own driver does: the table of the reference.
//! Our column is read off the render of the defaults in a cluster with snapshots; nothing of it is written by hand but what was
//! measured.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::page::hold;
use crate::render::{Object, list, text, variant};
use crate::rights::{PAGE, is_role, rules};

const BEGIN: &str = "<!-- beside -->\n\n";
const END: &str = "\n\n<!-- end of beside -->";

/// `VmRSS` of the release build, idle, by `cargo bench --bench footprint`.
const CONTROLLER_IDLE: &str = "8.1 MiB";
const NODE_IDLE: &str = "5.2 MiB";

/// A line of the table: what it is about, this chart, the vendor's.
type Row = (&'static str, String, &'static str);

fn rows(objects: &[Object]) -> Vec<Row> {
    let (controller, node) = (one(objects, "Deployment"), one(objects, "DaemonSet"));
    vec![
        (
            "containers of a node's pod",
            containers(node),
            "2, the driver and node-driver-registrar, after an init container that has the machine's `/usr`",
        ),
        (
            "containers of a controller's pod",
            containers(controller),
            "5, the driver and the four sidecars as its own forks of them; snapshot-controller and a labeler of nodes as options",
        ),
        (
            "memory of a node's pod, asked for and at most",
            memory(node),
            "not compared",
        ),
        (
            "memory of a controller's pod, asked for and at most",
            memory(controller),
            "driver 128Mi, 1Gi; sidecars not compared",
        ),
        (
            "resident memory of the driver, idle, measured",
            format!("node {NODE_IDLE}, controller {CONTROLLER_IDLE}"),
            "not measured here",
        ),
        (
            "node: the machine's network, processes, IPC",
            namespaces(node),
            "all three",
        ),
        (
            "controller: the machine's network, processes, IPC",
            namespaces(controller),
            "not compared",
        ),
        (
            "node: paths of the machine",
            paths(node),
            "all of kubelet's directory, `/dev`, `/etc`, `/var/log`, `/sys/fs/cgroup`, `/var/lib/container`, `/usr`",
        ),
        (
            "controller: paths of the machine",
            paths(controller),
            "not compared",
        ),
        ("node: capabilities", capabilities(node), "all: privileged"),
        (
            "controller: capabilities",
            capabilities(controller),
            "runs as user 65532, root filesystem read-only",
        ),
        (
            "node: rights of the API",
            rights(objects, node),
            "PersistentVolumes created, deleted and patched; claims and Nodes updated; pods read; VolumeAttachments patched; Secrets created in its namespace",
        ),
        (
            "controller: rights of the API that change something",
            rights(objects, controller),
            "PersistentVolumes, claims and Nodes patched; snapshots; leases; ConfigMaps by name",
        ),
        (
            "controller: rights of the API to Secrets",
            secrets(objects),
            "not compared",
        ),
        ("node: cloud credentials", credentials(node), "may be set"),
    ]
}

fn one<'a>(objects: &'a [Object], kind: &str) -> &'a Object {
    let found = objects.iter().find(|object| object.kind == kind);
    found.unwrap_or_else(|| panic!("no {kind} in the render"))
}

fn containers(object: &Object) -> String {
    let all = object.containers();
    let names: Vec<_> = all.iter().map(|c| format!("`{}`", c.name)).collect();
    format!("{}: {}", names.len(), names.join(", "))
}

/// What is the same for several containers is said once.
fn memory(object: &Object) -> String {
    let mut by_size: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for container in object.containers() {
        let of = |what: &str| text(container.body, &format!("/resources/{what}/memory"));
        let size = format!("{}, {}", of("requests"), of("limits"));
        let name = format!("`{}`", container.name);
        by_size.entry(size).or_default().push(name);
    }
    let parts = by_size.iter().map(|(size, names)| {
        let each = if names.len() > 1 { " each" } else { "" };
        format!("{}{each} {size}", names.join(", "))
    });
    parts.collect::<Vec<_>>().join("; ")
}

fn namespaces(object: &Object) -> String {
    let pod = object.pod().unwrap();
    let all = ["hostNetwork", "hostPID", "hostIPC"];
    let given = all.iter().filter(|name| pod[**name] == true);
    or_none(given.map(|name| format!("`{name}`")))
}

fn paths(object: &Object) -> String {
    let volumes = list(object.pod().unwrap(), "/volumes").into_iter();
    let paths = volumes.filter_map(|volume| volume.pointer("/hostPath/path")?.as_str());
    or_none(paths.map(|path| format!("`{path}`")))
}

fn capabilities(object: &Object) -> String {
    let mut held = BTreeSet::new();
    for container in object.containers() {
        let security = &container.body["securityContext"];
        let capabilities = &security["capabilities"];
        if security["privileged"] == true {
            held.insert(
                "all: privileged, for Bidirectional propagation and the machine's devices"
                    .to_owned(),
            );
            continue;
        }
        let drops_all = list(capabilities, "/drop").iter().any(|one| *one == "ALL");
        assert!(drops_all, "{}: say what it keeps", container.at());
        let added = list(capabilities, "/add").into_iter();
        held.extend(added.map(Value::to_string));
    }
    or_none(held.into_iter())
}

/// What a pod's ServiceAccount may do beyond reading, by resource.
fn rights(objects: &[Object], of: &Object) -> String {
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
            let role = objects
                .iter()
                .find(|object| is_role(object) && object.name == name);
            role.unwrap_or_else(|| panic!("{}: no role {name}", binding.at()))
        })
        .collect();
    if roles.is_empty() {
        return "none".to_owned();
    }
    let mut all: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (resource, verbs) in roles.iter().flat_map(|role| rules(role)) {
        let changing = verbs
            .into_iter()
            .filter(|verb| !["get", "list", "watch"].contains(verb));
        all.entry(resource).or_default().extend(changing);
    }
    let changing = all.iter().filter(|(_, verbs)| !verbs.is_empty());
    let parts = changing.map(|(resource, verbs)| {
        let verbs: Vec<_> = verbs.iter().copied().collect();
        format!("`{resource}` {}", verbs.join(", "))
    });
    or_none_by("; ", parts)
}

fn secrets(objects: &[Object]) -> String {
    let roles = objects.iter().filter(|object| is_role(object));
    let rules = roles.flat_map(rules);
    let of_secrets = rules.filter(|(resource, _)| resource == "secrets");
    or_none(of_secrets.map(|(_, verbs)| verbs.join(", ")))
}

/// Volumes and variables by which a key could come in.
fn credentials(object: &Object) -> String {
    let pod = object.pod().unwrap();
    let volumes = list(pod, "/volumes").into_iter();
    let volumes = volumes.filter(|volume| {
        ["secret", "projected"]
            .iter()
            .any(|kind| volume.get(kind).is_some())
    });
    or_none(volumes.map(|volume| format!("`{}`", text(volume, "/name"))))
}

fn or_none(parts: impl Iterator<Item = String>) -> String {
    or_none_by(", ", parts)
}

fn or_none_by(between: &str, parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<_> = parts.collect();
    match parts.as_slice() {
        [] => "none".to_owned(),
        parts => parts.join(between),
    }
}

#[test]
fn the_reference_compares_what_the_chart_has() {
    let rows = rows(&variant("snapshots"));
    let mut lines = vec![
        "| | this chart | the vendor's |".to_owned(),
        "| --- | --- | --- |".to_owned(),
    ];
    lines.extend(
        rows.into_iter()
            .map(|(what, ours, theirs)| format!("| {what} | {ours} | {theirs} |")),
    );
    let wanted = lines.join("\n");
    hold(PAGE, (BEGIN, END), &wanted);
}
