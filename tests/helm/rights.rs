//! The RBAC rules of the chart match the reference page and do not include Secrets.

use crate::page::assert_generated;
use crate::render::{Object, all, list, texts, variant};
use crate::report;

pub(crate) const PAGE: &str = "docs/reference/kubernetes-rights.md";

/// The rules of a role: each resource, as `resource.group`, with its verbs.
pub(crate) fn rules(role: &Object) -> Vec<(String, Vec<&str>)> {
    let rules = list(&role.body, "/rules").into_iter();
    let rules = rules.flat_map(|rule| {
        let verbs = texts(rule, "/verbs");
        let groups = texts(rule, "/apiGroups");
        assert_eq!(groups.len(), 1, "{}", role.at());
        let resources = texts(rule, "/resources").into_iter();
        let named = resources.map(move |resource| match groups[0] {
            "" => resource.to_owned(),
            group => format!("{resource}.{group}"),
        });
        named.map(|resource| (resource, verbs.clone())).collect::<Vec<_>>()
    });
    rules.collect()
}

pub(crate) fn is_role(object: &Object) -> bool {
    ["Role", "ClusterRole"].contains(&object.kind.as_str())
}

#[test]
fn no_role_grants_secrets_wildcards_or_escalation() {
    let forbidden = [
        "secrets",
        "*",
        "roles",
        "clusterroles",
        "rolebindings",
        "clusterrolebindings",
        "serviceaccounts",
    ];
    let verbs = ["*", "escalate", "bind", "impersonate", "deletecollection"];
    let objects = all();
    report(objects.iter().filter(|object| is_role(object)).flat_map(|role| {
        let wrong = rules(role).into_iter().filter(|(resource, given)| {
            let name = resource.split(['.', '/']).next().unwrap_or_default();
            forbidden.contains(&name) || resource.contains('*') || given.iter().any(|verb| verbs.contains(verb))
        });
        wrong.map(|rule| format!("{}: {rule:?}", role.at())).collect::<Vec<_>>()
    }));
}

#[test]
fn nodes_workloads_and_classes_are_read_only() {
    let objects = all();
    report(objects.iter().filter(|object| is_role(object)).flat_map(|role| {
        let wrong = rules(role).into_iter().filter(|(resource, given)| {
            let reads = given.iter().all(|verb| ["get", "list", "watch"].contains(verb));
            let read_only = [
                "nodes",
                "pods",
                "replicasets.apps",
                "csinodes.storage.k8s.io",
                "storageclasses.storage.k8s.io",
            ];
            // The only exception: the controller removes the startup taint.
            let taint = resource == "nodes"
                && *given == ["get", "list", "watch", "patch"]
                && role.name.ends_with("-driver")
                && ["full", "production"].contains(&role.variant.as_str());
            read_only.contains(&resource.as_str()) && !reads && !taint
        });
        wrong.map(|rule| format!("{}: {rule:?}", role.at())).collect::<Vec<_>>()
    }));
}

/// A row of the table: role, resource and verbs.
type Row = (String, String, String);

/// All rules of a variant, in order.
fn rows(name: &str) -> Vec<Row> {
    let objects = variant(name);
    let roles = objects.iter().filter(|object| is_role(object));
    let rows = roles.flat_map(|role| {
        let rules = rules(role).into_iter();
        rules.map(|(resource, verbs)| (short(role), resource, verbs.join(", ")))
    });
    rows.collect()
}

/// The table of the page: all rules that any values can add.
fn table() -> String {
    let (minimal, full) = (rows("minimal"), rows("full"));
    let more: Vec<Row> = minimal.iter().filter(|row| !full.contains(row)).cloned().collect();
    let mut all = [full, more].concat();
    // Groups the rules by role, in the order of each role's first rule.
    let order: Vec<String> = all.iter().map(|(role, _, _)| role.clone()).collect();
    all.sort_by_key(|(role, _, _)| order.iter().position(|one| one == role));
    let mut lines = vec![
        "| role | resource | verbs | only with |".to_owned(),
        "| --- | --- | --- | --- |".to_owned(),
    ];
    for row in all {
        let condition = condition(&row, &minimal);
        let (role, resource, verbs) = row;
        let line = format!("| {role} | `{resource}` | {verbs} | {condition} |");
        lines.push(line.replace("|  |", "| |"));
    }
    lines.join("\n")
}

/// The values that add the rule, empty if it is always there.
fn condition(row: &Row, minimal: &[Row]) -> &'static str {
    let (role, resource, verbs) = row;
    let is_always = minimal.contains(row);
    match (role.as_str(), resource.as_str()) {
        ("driver", "csinodes.storage.k8s.io") => "`instanceTypes.publish`, `events.enabled` or `startupTaint.enabled`",
        ("driver", "events.events.k8s.io") => "`events.enabled`",
        ("driver", "nodes") if verbs.contains("patch") => "`startupTaint.enabled` or `controller.fencing.enabled`",
        ("driver", "pods") => "`controller.fencing.enabled`",
        ("driver", "nodes") => "`instanceTypes.publish`",
        ("node", _) => "`node.waitForVolumeDetach.enabled`",
        (_, "configmaps") => "`instanceTypes.publish`; restricted to one name",
        ("all (namespace)", "csistoragecapacities.storage.k8s.io" | "pods" | "replicasets.apps") => {
            "`storageCapacity.enabled`"
        }
        _ if is_always => "",
        (_, name) if name.contains("groupsnapshot") => "`snapshots.groups`",
        (_, name) if name.contains("snapshot") => "`snapshots.mode`",
        (_, "pods") => "`sidecars.resizer.watchPods`",
        (_, "events") => "`snapshots.mode`",
        (_, other) => panic!("{other}: add the value that enables it"),
    }
}

/// The sidecar or driver that a ClusterRole is for; the Role is shared.
fn short(role: &Object) -> String {
    match role.kind.as_str() {
        "Role" => "all (namespace)".to_owned(),
        _ => role.name.rsplit('-').next().unwrap().to_owned(),
    }
}

#[test]
fn reference_lists_every_rule() {
    let marks = ("<!-- rights -->\n\n", "\n\n<!-- end of rights -->");
    assert_generated(PAGE, marks, &table());
}
