//! Checks of Kubernetes: the objects of an installation, and what they miss.

use serde_json::Value;

use super::check::{Check, first};
use crate::cluster::node_status::NodeStatus;
use crate::cluster::workload::Workload;
use crate::cluster::{Cluster, Error, Result};
use crate::model::DriverName;

const CSI_DRIVERS: &str = "/apis/storage.k8s.io/v1/csidrivers";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";

/// The annotation of a default StorageClass.
const IS_DEFAULT: &str = "/metadata/annotations/storageclass.kubernetes.io~1is-default-class";

const INSTALL: &str = "install the chart (docs/guides/install.md)";

/// The cluster-wide rights of the controller's ServiceAccount that no value of the chart disables: resource and verbs.
const RIGHTS: [&str; 9] = [
    "persistentvolumes get list watch create patch delete",
    "persistentvolumeclaims get list watch update",
    "persistentvolumeclaims/status patch",
    "events create patch",
    "nodes get list watch",
    "csinodes.storage.k8s.io get list watch",
    "storageclasses.storage.k8s.io get list watch",
    "volumeattachments.storage.k8s.io get list watch patch",
    "volumeattachments/status.storage.k8s.io patch",
];

/// Reads the cluster and judges it. The rights are those of a ServiceAccount if this is a pod.
pub(super) async fn check(cluster: &Cluster, driver: &DriverName, is_pod: bool) -> Vec<Check> {
    let own = cluster.object(CSI_DRIVERS, driver.as_str()).await;
    if let Err(error) = &own
        && error.is_general()
    {
        return vec![no_access(error.for_user())];
    }
    let mut checks = vec![
        judged("cluster/csidriver", own, |object| csi_driver(driver, object.as_ref())),
        judged("cluster/snapshot-crds", cluster.snapshot_crds().await, |crds| {
            snapshot_crds(&crds)
        }),
    ];
    for kind in ["Deployment", "DaemonSet"] {
        let kind_in_lower_case = kind.to_lowercase();
        let name = format!("cluster/{kind_in_lower_case}");
        let found = Workload::list(cluster, &format!("{kind_in_lower_case}s"), driver, None).await;
        checks.push(judged(&name, found, |found| workload(driver, kind, &name, &found)));
    }
    match NodeStatus::list(cluster, driver).await {
        Ok(nodes) => checks.extend(registrations(driver, &nodes)),
        Err(error) => checks.push(unread("cluster/nodes", &error)),
    }
    checks.push(judged(
        "cluster/default-class",
        cluster.objects(CLASSES).await,
        |classes| default_class(driver, &classes.unwrap_or_default()),
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

fn csi_driver(driver: &DriverName, object: Option<&Value>) -> Check {
    let name = "cluster/csidriver";
    match object.map(|object| &object["spec"]) {
        None => Check::failed(name, format!("the CSIDriver {driver} does not exist"), INSTALL),
        Some(spec) if spec["attachRequired"] == false => Check::failed(
            name,
            format!("CSIDriver {driver} has attachRequired: false: no disk would be attached"),
            "delete the CSIDriver and upgrade the release: the field is immutable",
        ),
        Some(spec) => {
            let policy = spec["fsGroupPolicy"].as_str().unwrap_or("default");
            let capacity = spec["storageCapacity"] == true;
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

fn registrations(driver: &DriverName, nodes: &[NodeStatus]) -> [Check; 2] {
    let judge = |name: &str, lacks: fn(&NodeStatus) -> bool, subject: [&str; 2], advice: &str| {
        let lacking = nodes.iter().filter(|node| lacks(node));
        let lacking: Vec<_> = lacking.map(|node| node.name.as_str()).collect();
        match (nodes.len(), &*lacking) {
            (0, _) => Check::skipped(name, "the cluster has no nodes"),
            (all, []) => Check::ok(name, format!("{} on all {all} nodes", subject[0])),
            (_, lacking) => Check::warning(name, format!("{} on {}", subject[1], first(lacking)), advice),
        }
    };
    let registered = [format!("{driver} is registered"), format!("{driver} is not registered")];
    [
        judge(
            "cluster/registration",
            |node| !node.is_registered,
            registered.each_ref().map(String::as_str),
            "pods with volumes do not start there: check the node plugin's pod on these nodes",
        ),
        judge(
            "cluster/zones",
            |node| node.zone.is_none(),
            [
                "topology.kubernetes.io/zone is set",
                "topology.kubernetes.io/zone is missing",
            ],
            "volumes of other zones may be scheduled there: install the cloud controller manager, or set the label",
        ),
    ]
}

fn default_class(driver: &DriverName, classes: &[Value]) -> Check {
    let name = "cluster/default-class";
    let defaults = classes
        .iter()
        .filter(|class| class.pointer(IS_DEFAULT).is_some_and(|value| value == "true"));
    let text = |value: &'_ Value| value.as_str().unwrap_or_default().to_owned();
    let defaults = defaults.map(|class| (text(&class["metadata"]["name"]), text(&class["provisioner"])));
    match &*defaults.collect::<Vec<_>>() {
        [] => Check::ok(name, "no StorageClass is the default: each claim must name its class"),
        [(class, of)] if of == driver.as_str() => Check::ok(name, format!("{class} is the default StorageClass")),
        [(class, of)] => Check::ok(name, format!("{class} of {of} is the default StorageClass")),
        several => {
            let names: Vec<_> = several.iter().map(|(class, _)| class.as_str()).collect();
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
    for right in RIGHTS {
        let (resource, verbs) = right.split_once(' ').unwrap_or_default();
        let (resource, group) = resource.split_once('.').unwrap_or((resource, ""));
        for verb in verbs.split(' ') {
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
        let own = RIGHTS.iter().map(|right| {
            let (resource, verbs) = right.split_once(' ').unwrap();
            (resource.to_owned(), verbs.split(' ').map(str::to_owned).collect())
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
        for check in registrations(&DriverName::default(), &nodes) {
            assert!(check.found.ends_with("node-4 and 2 more"), "{check:?}");
        }
    }
}
