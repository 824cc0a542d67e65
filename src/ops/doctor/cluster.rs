//! Checks of Kubernetes: the objects of an installation, and what they miss.

use super::check::{Check, first};
use crate::cluster::driver_status::NodeStatus;
use crate::cluster::inspection::{CsiDriverSpec, DefaultClass};
use crate::cluster::workload::Workload;
use crate::cluster::{Cluster, Error, Result};
use crate::model::DriverName;

const INSTALL: &str = "install the chart (docs/guides/install.md)";

/// The cluster-wide rights of the controller's ServiceAccount that no value of the chart disables: API group, resource
/// and verbs.
const RIGHTS: [(&str, &str, &[&str]); 9] = [
    (
        "",
        "persistentvolumes",
        &["get", "list", "watch", "create", "patch", "delete"],
    ),
    ("", "persistentvolumeclaims", &["get", "list", "watch", "update"]),
    ("", "persistentvolumeclaims/status", &["patch"]),
    ("", "events", &["create", "patch"]),
    ("", "nodes", &["get", "list", "watch"]),
    ("storage.k8s.io", "csinodes", &["get", "list", "watch"]),
    ("storage.k8s.io", "storageclasses", &["get", "list", "watch"]),
    (
        "storage.k8s.io",
        "volumeattachments",
        &["get", "list", "watch", "patch"],
    ),
    ("storage.k8s.io", "volumeattachments/status", &["patch"]),
];

/// Reads the cluster and judges it. The rights are those of a ServiceAccount if this is a pod.
pub(super) async fn check(cluster: &Cluster, driver: &DriverName, is_pod: bool) -> Vec<Check> {
    let own = cluster.csi_driver(driver).await;
    if let Err(error) = &own
        && error.is_general()
    {
        return vec![no_access(error.for_user())];
    }
    let mut checks = vec![
        judged("cluster/csidriver", own, |spec| csi_driver(driver, spec.as_ref())),
        judged("cluster/snapshot-crds", cluster.snapshot_crds().await, |crds| {
            snapshot_crds(&crds)
        }),
    ];
    let deployments = Workload::deployments(cluster, driver, None).await;
    let daemon_sets = Workload::daemon_sets(cluster, driver).await;
    for (kind, found) in [("Deployment", deployments), ("DaemonSet", daemon_sets)] {
        let name = format!("cluster/{}", kind.to_lowercase());
        checks.push(judged(&name, found, |found| workload(driver, kind, &name, &found)));
    }
    match NodeStatus::list(cluster, driver).await {
        Ok(nodes) => checks.extend(registrations(driver, &nodes)),
        Err(error) => checks.push(unread("cluster/nodes", &error)),
    }
    checks.push(judged(
        "cluster/default-class",
        cluster.default_classes().await,
        |classes| default_class(driver, &classes),
    ));
    checks.push(rights(cluster, is_pod).await);
    checks
}

/// The result if nothing of the cluster can be read.
pub(super) fn no_access(reason: String) -> Check {
    let advice = "correct the kubeconfig, or name another with --kubeconfig or --context";
    Check::failed("cluster/access", reason, advice)
}

fn judged<T>(name: &str, read: Result<T>, judge: impl FnOnce(T) -> Check) -> Check {
    match read {
        Ok(found) => judge(found),
        Err(error) => unread(name, &error),
    }
}

fn unread(name: &str, error: &Error) -> Check {
    Check::skipped(name, error.for_user())
}

fn csi_driver(driver: &DriverName, spec: Option<&CsiDriverSpec>) -> Check {
    let name = "cluster/csidriver";
    match spec {
        None => Check::failed(name, format!("the CSIDriver {driver} does not exist"), INSTALL),
        Some(spec) if !spec.attach_required => Check::failed(
            name,
            format!("CSIDriver {driver} has attachRequired: false: no disk would be attached"),
            "delete the CSIDriver and upgrade the release: the field is immutable",
        ),
        Some(spec) => {
            let policy = spec.fs_group_policy.as_deref().unwrap_or("default");
            let capacity = spec.storage_capacity;
            Check::ok(
                name,
                format!("CSIDriver {driver}: fsGroupPolicy {policy}, storageCapacity {capacity}"),
            )
        }
    }
}

fn snapshot_crds(crds: &[&str]) -> Check {
    let name = "cluster/snapshot-crds";
    match crds {
        [] => Check::warning(
            name,
            "the CRDs of snapshots are not installed",
            "install them with the snapshot controller (docs/guides/snapshot-controller.md), or do not use snapshots",
        ),
        crds => Check::ok(name, format!("installed: {}", crds.join(", "))),
    }
}

/// The workload, its images, and drivers of the same name.
fn workload(driver: &DriverName, kind: &str, name: &str, found: &[Workload]) -> Check {
    let names: Vec<_> = found
        .iter()
        .map(|one| format!("{}/{}", one.namespace, one.name))
        .collect();
    match found {
        [] => Check::failed(name, format!("no {kind} has --driver-name={driver}"), INSTALL),
        [one] => Check::ok(name, format!("{}: {}", names.join(""), one.images.join(", "))),
        _ => Check::failed(
            name,
            format!("several {kind}s have --driver-name={driver}: {}", names.join(", ")),
            "remove one, or give it another driver name and cluster ID",
        ),
    }
}

fn registrations(driver: &DriverName, nodes: &[NodeStatus]) -> Vec<Check> {
    if nodes.is_empty() {
        return ["cluster/registration", "cluster/zones"]
            .map(|name| Check::skipped(name, "the cluster has no nodes"))
            .into();
    }
    let all = nodes.len();
    let missing = names(nodes, |node| !node.is_registered);
    let registered = match missing.as_str() {
        "" => Check::ok(
            "cluster/registration",
            format!("{driver} is registered on all {all} nodes"),
        ),
        missing => Check::warning(
            "cluster/registration",
            format!("{driver} is not registered on {missing}"),
            "pods with volumes do not start there: check the node plugin's pod on these nodes",
        ),
    };
    let unlabelled = names(nodes, |node| node.zone.is_none());
    let zones = match unlabelled.as_str() {
        "" => Check::ok("cluster/zones", format!("all {all} nodes have the label of their zone")),
        unlabelled => Check::warning(
            "cluster/zones",
            format!("topology.kubernetes.io/zone is missing on {unlabelled}"),
            "volumes of other zones may be scheduled there: install the cloud controller manager, or set the label",
        ),
    };
    vec![registered, zones]
}

fn names(nodes: &[NodeStatus], is_meant: impl Fn(&NodeStatus) -> bool) -> String {
    let meant = nodes.iter().filter(|node| is_meant(node));
    let names: Vec<_> = meant.map(|node| node.name.as_str()).collect();
    first(&names)
}

fn default_class(driver: &DriverName, classes: &[DefaultClass]) -> Check {
    let name = "cluster/default-class";
    match classes {
        [] => Check::ok(name, "no StorageClass is the default: each claim must name its class"),
        [one] if one.provisioner == driver.as_str() => {
            Check::ok(name, format!("{} is the default StorageClass", one.name))
        }
        [one] => Check::ok(
            name,
            format!("{} of {} is the default StorageClass", one.name, one.provisioner),
        ),
        several => {
            let names: Vec<_> = several.iter().map(|one| one.name.as_str()).collect();
            Check::warning(
                name,
                format!("several StorageClasses are the default: {}", names.join(", ")),
                "Kubernetes uses the newest: remove the annotation from the others",
            )
        }
    }
}

async fn rights(cluster: &Cluster, is_pod: bool) -> Check {
    let name = "cluster/rights";
    let (mut missing, mut count) = (Vec::new(), 0);
    for (group, resource, verbs) in RIGHTS {
        for verb in verbs {
            match cluster.may(verb, group, resource).await {
                Ok(true) => count += 1,
                Ok(false) => missing.push(format!("{verb} {resource}")),
                Err(error) => return unread(name, &error),
            }
        }
    }
    let advice = "docs/reference/kubernetes-rights.md lists the rights of the controller's ServiceAccount";
    match (missing.is_empty(), is_pod) {
        (true, _) => Check::ok(name, format!("all {count} cluster-wide rights of the controller")),
        (false, true) => Check::failed(name, format!("missing: {}", missing.join(", ")), advice),
        (false, false) => {
            let text = format!("the user of the kubeconfig lacks {}", missing.join(", "));
            Check::warning(
                name,
                text,
                "run it with the controller's ServiceAccount to check its rights",
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    #[test]
    fn rights_are_those_of_the_reference_that_no_value_disables() {
        let page = include_str!("../../../docs/reference/kubernetes-rights.md");
        let table = page.split("<!-- rights -->").nth(1).unwrap();
        let table = table.split("<!-- end of rights -->").next().unwrap();
        let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in table.lines().filter(|row| row.starts_with("| ")) {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            let is_cluster_wide = ["provisioner", "attacher", "resizer"].contains(&cells[1]);
            if is_cluster_wide && cells[4].is_empty() {
                let resource = cells[2].trim_matches('`').to_owned();
                let verbs = cells[3].split(", ").map(str::to_owned);
                wanted.entry(resource).or_default().extend(verbs);
            }
        }
        wanted.remove("volumeattributesclasses.storage.k8s.io");
        let own = RIGHTS.iter().map(|(group, resource, verbs)| {
            let resource = match *group {
                "" => (*resource).to_owned(),
                group => format!("{resource}.{group}"),
            };
            (resource, verbs.iter().map(|verb| (*verb).to_owned()).collect())
        });
        assert_eq!(own.collect::<BTreeMap<String, BTreeSet<String>>>(), wanted);
    }

    #[test]
    fn without_nodes_nothing_is_judged() {
        let checks = registrations(&DriverName::default(), &[]);
        let skipped = ["cluster/registration", "cluster/zones"];
        assert_eq!(
            checks,
            skipped.map(|name| Check::skipped(name, "the cluster has no nodes"))
        );
    }

    #[test]
    fn long_lists_of_nodes_are_truncated() {
        let nodes: Vec<_> = (0..7)
            .map(|number| NodeStatus {
                name: format!("node-{number}"),
                is_registered: false,
                not_ready: None,
                zone: None,
            })
            .collect();
        let text = names(&nodes, |node| !node.is_registered);
        assert!(text.ends_with("node-4 and 2 more"), "{text}");
    }
}
