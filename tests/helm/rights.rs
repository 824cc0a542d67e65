//! The rights of the chart are those of the reference page, and no Secret is among them.

use std::collections::BTreeSet;

use crate::render::{Object, all, list, read, root, texts, variant};
use crate::report;

const PAGE: &str = "docs/reference/kubernetes-rights.md";

/// What a rule gives: `group/resource` and a verb.
fn rules(role: &Object) -> Vec<(String, Vec<&str>)> {
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

fn is_role(object: &Object) -> bool {
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
                    kept.contains(&resource.as_str()) && !reads
                });
                wrong
                    .map(|rule| format!("{}: {rule:?}", role.at()))
                    .collect::<Vec<_>>()
            }),
    );
}

/// The table that the page must have: each right of each role, with all that values can add.
fn table() -> String {
    let without: BTreeSet<(String, String)> = variant("least")
        .iter()
        .filter(|object| is_role(object))
        .flat_map(|role| {
            rules(role)
                .into_iter()
                .map(|(resource, _)| (short(role), resource))
        })
        .collect();
    let mut lines = vec![
        "| role | resource | verbs | only with |".to_owned(),
        "| --- | --- | --- | --- |".to_owned(),
    ];
    let objects = variant("full");
    for role in objects.iter().filter(|object| is_role(object)) {
        for (resource, verbs) in rules(role) {
            let condition = match resource.as_str() {
                _ if without.contains(&(short(role), resource.clone())) => "",
                name if name.contains("groupsnapshot") => "`snapshots.groups`",
                name if name.contains("snapshot") => "`snapshots.mode`",
                "pods" => "`sidecars.resizer.watchPods`",
                "events" => "`snapshots.mode`",
                other => panic!("{other}: say which value adds it"),
            };
            let line = format!(
                "| {} | `{resource}` | {} | {condition} |",
                short(role),
                verbs.join(", ")
            );
            lines.push(line.replace("|  |", "| |"));
        }
    }
    lines.join("\n")
}

/// Of which sidecar it is; that of the namespace is of all.
fn short(role: &Object) -> String {
    match role.kind.as_str() {
        "Role" => "all, in the release's namespace".to_owned(),
        _ => role.name.rsplit('-').next().unwrap().to_owned(),
    }
}

#[test]
fn the_reference_has_every_right() {
    let (begin, end) = ("<!-- rights -->\n\n", "\n\n<!-- end of rights -->");
    let page = read(PAGE);
    let (head, rest) = page.split_once(begin).expect("the page has the mark");
    let (found, tail) = rest
        .split_once(end)
        .expect("the page has the mark of the end");
    let wanted = table();
    if std::env::var_os("UPDATE").is_some() {
        let text = format!("{head}{begin}{wanted}{end}{tail}");
        std::fs::write(root().join(PAGE), text).unwrap();
        return;
    }
    assert!(
        found == wanted,
        "{PAGE} is not as the chart; UPDATE=1 cargo test --test helm makes the table\n\n{wanted}\n"
    );
}
