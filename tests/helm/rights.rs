//! The rights of the chart are those of the reference page, and no Secret is among them.

use crate::page::hold;
use crate::render::{Object, all, list, texts, variant};
use crate::report;

pub(crate) const PAGE: &str = "docs/reference/kubernetes-rights.md";

/// What a rule gives: `group/resource` and a verb.
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
        named
            .map(|resource| (resource, verbs.clone()))
            .collect::<Vec<_>>()
    });
    rules.collect()
}

pub(crate) fn is_role(object: &Object) -> bool {
    ["Role", "ClusterRole"].contains(&object.kind.as_str())
}

#[test]
fn no_role_gives_secrets_or_everything_or_other_rights() {
    let refused = [
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
    report(
        objects
            .iter()
            .filter(|object| is_role(object))
            .flat_map(|role| {
                let wrong = rules(role).into_iter().filter(|(resource, given)| {
                    let name = resource.split(['.', '/']).next().unwrap_or_default();
                    refused.contains(&name)
                        || resource.contains('*')
                        || given.iter().any(|verb| verbs.contains(verb))
                });
                wrong
                    .map(|rule| format!("{}: {rule:?}", role.at()))
                    .collect::<Vec<_>>()
            }),
    );
}

#[test]
fn nothing_of_a_node_and_no_workload_can_be_changed() {
    let objects = all();
    report(
        objects
            .iter()
            .filter(|object| is_role(object))
            .flat_map(|role| {
                let wrong = rules(role).into_iter().filter(|(resource, given)| {
                    let reads = given
                        .iter()
                        .all(|verb| ["get", "list", "watch"].contains(verb));
                    let kept = [
                        "nodes",
                        "pods",
                        "replicasets.apps",
                        "csinodes.storage.k8s.io",
                        "storageclasses.storage.k8s.io",
                    ];
                    // The one exception: the startup taint, by the controller, where it is asked for.
                    let taint = resource == "nodes"
                        && *given == ["get", "list", "watch", "patch"]
                        && role.name.ends_with("-driver")
                        && ["full", "oidc"].contains(&role.variant.as_str());
                    kept.contains(&resource.as_str()) && !reads && !taint
                });
                wrong
                    .map(|rule| format!("{}: {rule:?}", role.at()))
                    .collect::<Vec<_>>()
            }),
    );
}

/// A row of the table: role, resource and verbs.
type Row = (String, String, String);

/// All rights of a variant, in its order.
fn rows(name: &str) -> Vec<Row> {
    let objects = variant(name);
    let roles = objects.iter().filter(|object| is_role(object));
    let rows = roles.flat_map(|role| {
        let rules = rules(role).into_iter();
        rules.map(|(resource, verbs)| (short(role), resource, verbs.join(", ")))
    });
    rows.collect()
}

/// The table that the page must have: each right of each role, with all that values can add.
fn table() -> String {
    let (least, full) = (rows("least"), rows("full"));
    let more: Vec<Row> = least
        .iter()
        .filter(|row| !full.contains(row))
        .cloned()
        .collect();
    let mut all = [full, more].concat();
    // The rights of a role stay together, in the order of the first of each.
    let order: Vec<String> = all.iter().map(|(role, _, _)| role.clone()).collect();
    all.sort_by_key(|(role, _, _)| order.iter().position(|one| one == role));
    let mut lines = vec![
        "| role | resource | verbs | only with |".to_owned(),
        "| --- | --- | --- | --- |".to_owned(),
    ];
    for row in all {
        let condition = condition(&row, &least);
        let (role, resource, verbs) = row;
        let line = format!("| {role} | `{resource}` | {verbs} | {condition} |");
        lines.push(line.replace("|  |", "| |"));
    }
    lines.join("\n")
}

/// Which values give the right; empty where all do.
fn condition(row: &Row, least: &[Row]) -> &'static str {
    let (role, resource, verbs) = row;
    let is_always = least.contains(row);
    match (role.as_str(), resource.as_str()) {
        ("driver", "csinodes.storage.k8s.io") => {
            "`instanceTypes.publish`, `events.enabled` or `startupTaint.enabled`"
        }
        ("driver", "events.events.k8s.io") => "`events.enabled`",
        ("driver", "nodes") if verbs.contains("patch") => "`startupTaint.enabled`",
        ("driver", "nodes") => "`instanceTypes.publish`",
        (_, "configmaps") => "`instanceTypes.publish`; only the one of instance types, by its name",
        (
            "all, in the release's namespace",
            "csistoragecapacities.storage.k8s.io" | "pods" | "replicasets.apps",
        ) => "`storageCapacity.enabled`",
        _ if is_always => "",
        (_, name) if name.contains("groupsnapshot") => "`snapshots.groups`",
        (_, name) if name.contains("snapshot") => "`snapshots.mode`",
        (_, "pods") => "`sidecars.resizer.watchPods`",
        (_, "events") => "`snapshots.mode`",
        (_, other) => panic!("{other}: say which value adds it"),
    }
}

/// Of which sidecar it is, or of the driver; that of the namespace is of all.
fn short(role: &Object) -> String {
    match role.kind.as_str() {
        "Role" => "all, in the release's namespace".to_owned(),
        _ => role.name.rsplit('-').next().unwrap().to_owned(),
    }
}

#[test]
fn the_reference_has_every_right() {
    let marks = ("<!-- rights -->\n\n", "\n\n<!-- end of rights -->");
    hold(PAGE, marks, &table());
}
