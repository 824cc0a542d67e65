//! Conditions of the cluster under which no call for a volume can succeed, or none is made.

use std::collections::BTreeSet;

use crate::cluster::driver_pods::DriverPod;
use crate::cluster::node_status::NodeStatus;
use crate::cluster::volume_zones::VolumeZones;
use crate::cluster::workload::Workload;

/// What a controller does for a volume.
const TASKS: &str = "create, attach, detach, expand or delete the volume";

/// If no controller is ready: one that is not, or its Deployment.
pub(super) fn no_controller(pod: Option<&DriverPod>, deployment: Option<&Workload>) -> String {
    if let Some(pod) = pod {
        return format!("No controller of the driver is ready to {TASKS}: {}", not_ready(pod));
    }
    let Some(Workload { namespace, name, .. }) = deployment else {
        return format!(
            "No controller of the driver runs to {TASKS}: no Deployment has its --driver-name. Check with `helm list \
             --all-namespaces` whether the driver is installed, and --namespace and --driver-name."
        );
    };
    let (reason, command) = match deployment.is_some_and(|one| one.has_no_replicas) {
        true => (
            "is scaled to 0 replicas",
            format!("scale deployment {name} --replicas=2"),
        ),
        false => ("has no pod", "describe replicasets".to_owned()),
    };
    format!(
        "No controller of the driver runs to {TASKS}: the Deployment {namespace}/{name} {reason}. Run `kubectl -n \
         {namespace} {command}`."
    )
}

fn not_ready(pod: &DriverPod) -> String {
    let DriverPod { namespace, name, .. } = pod;
    let reason = pod.reason.as_deref().map(one_line);
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    format!("the pod {namespace}/{name} is not ready{reason}. Run `kubectl -n {namespace} describe pod {name}`.")
}

/// If volumes cannot be attached to the node of this name, or mounted or unmounted there.
pub(super) fn node_obstacle(name: &str, nodes: &[NodeStatus], plugins: &[&DriverPod]) -> Option<String> {
    let Some(node) = nodes.iter().find(|node| node.name == name) else {
        return Some(format!(
            "The node {name} does not exist any more. The VolumeAttachment to it remains until the disk is detached: see \
             docs/guides/stuck-volume.md."
        ));
    };
    if let Some(reason) = &node.not_ready {
        return Some(format!(
            "The node {name} is not ready ({}), so nothing is mounted or unmounted there, and its disks stay attached. \
             Check the machine; before you move its pods, make sure that it is off: docs/guides/stuck-volume.md.",
            one_line(reason).trim_end_matches('.')
        ));
    }
    // During an update, the node has two pods.
    let plugins = plugins.iter().filter(|pod| pod.node.as_deref() == Some(name));
    let plugin = plugins.max_by_key(|pod| pod.is_ready);
    match plugin {
        Some(plugin) if !plugin.is_ready => Some(format!(
            "The node plugin of the driver on {name} is not ready: {}",
            not_ready(plugin)
        )),
        None if !node.is_registered => Some(format!(
            "The driver is not registered on the node {name}, and no pod of its node plugin is there. Compare the \
             nodeSelector and the tolerations of the DaemonSet with the labels and taints of the node: `kubectl describe \
             node {name}`."
        )),
        Some(plugin) if !node.is_registered => Some(format!(
            "The driver is not registered on the node {name}, although its node plugin {}/{} is ready. Check that \
             `node.kubeletDir` of the chart is the directory of kubelet.",
            plugin.namespace, plugin.name
        )),
        Some(_) | None => None,
    }
}

/// If no node is in a zone that the volume can be in.
pub(super) fn no_node_in_zone(volume: &VolumeZones, nodes: &[NodeStatus]) -> Option<String> {
    // A node without a zone may be in any.
    let nodes = nodes.iter().map(|node| node.zone.as_deref());
    let nodes: BTreeSet<_> = nodes.collect::<Option<_>>()?;
    if nodes.is_empty() || volume.zones.iter().any(|zone| nodes.contains(zone.as_str())) {
        return None;
    }
    let nodes: Vec<_> = nodes.into_iter().collect();
    Some(format!(
        "No node is in a zone of the volume: the {} allows {}, and the nodes are in {}. Add a node in {}, or create the \
         volume with a class that allows a zone of the nodes.",
        volume.object,
        volume.zones.join(", "),
        nodes.join(", "),
        volume.zones.join(" or "),
    ))
}

/// The text after a prefix; empty without a text.
pub(super) fn or_empty(prefix: &str, text: Option<&str>) -> String {
    text.map_or_else(String::new, |text| format!("{prefix}{text}"))
}

/// A message without line breaks.
pub(super) fn one_line(message: &str) -> String {
    message.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(name: &str, reason: Option<&str>) -> DriverPod {
        DriverPod {
            namespace: "storage".to_owned(),
            name: name.to_owned(),
            node: Some("worker-1".to_owned()),
            is_ready: reason.is_none(),
            reason: reason.map(str::to_owned),
            ..DriverPod::default()
        }
    }

    fn deployment(has_no_replicas: bool) -> Workload {
        Workload {
            namespace: "storage".to_owned(),
            name: "controller".to_owned(),
            images: Vec::new(),
            has_no_replicas,
        }
    }

    fn node(zone: Option<&str>) -> NodeStatus {
        NodeStatus {
            name: "worker-1".to_owned(),
            not_ready: None,
            is_registered: true,
            zone: zone.map(str::to_owned),
        }
    }

    #[test]
    fn without_a_ready_controller_the_message_names_what_to_run() {
        let failing = pod("c-1", Some("container a: Error"));
        for (pod, deployment, expected) in [
            (
                Some(&failing),
                None,
                "the pod storage/c-1 is not ready (container a: Error). Run `kubectl -n storage",
            ),
            (
                None,
                Some(deployment(true)),
                "`kubectl -n storage scale deployment controller --replicas=2`",
            ),
            (
                None,
                Some(deployment(false)),
                "the Deployment storage/controller has no pod",
            ),
            (None, None, "no Deployment has its --driver-name"),
        ] {
            let message = no_controller(pod, deployment.as_ref());
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn a_node_that_cannot_mount_is_an_obstacle() {
        let node = node(None);
        let obstacle = |node: &NodeStatus, plugins: &_| node_obstacle("worker-1", std::slice::from_ref(node), plugins);
        let plugin = pod("n-1", None);
        let plugin = [&plugin];
        assert_eq!(obstacle(&node, &plugin[..]), None);
        // Its plugin may be in a namespace that is not read.
        assert_eq!(obstacle(&node, &[]), None);
        let unregistered = NodeStatus {
            is_registered: false,
            ..node.clone()
        };
        let not_ready = NodeStatus {
            not_ready: Some("Kubelet stopped posting node status.".to_owned()),
            ..node.clone()
        };
        let other = NodeStatus {
            name: "worker-2".to_owned(),
            ..node.clone()
        };
        let failing = pod("n-1", Some("container diskplugin: CrashLoopBackOff"));
        let failing = [&failing];
        for (node, plugins, expected) in [
            (&other, &plugin[..], "does not exist any more"),
            (
                &not_ready,
                &plugin,
                "is not ready (Kubelet stopped posting node status), so",
            ),
            (&unregistered, &[], "no pod of its node plugin is there"),
            (&unregistered, &plugin, "although its node plugin storage/n-1 is ready"),
            (
                &node,
                &failing,
                "storage/n-1 is not ready (container diskplugin: CrashLoopBackOff)",
            ),
        ] {
            let message = obstacle(node, plugins).unwrap();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn zones_without_nodes_are_an_obstacle() {
        let zones = |names: &[&str]| names.iter().map(|name| node(Some(name))).collect::<Vec<_>>();
        let volume = VolumeZones {
            object: "StorageClass disk".to_owned(),
            zones: vec!["a".to_owned(), "b".to_owned()],
        };
        assert_eq!(no_node_in_zone(&volume, &zones(&["b", "c"])), None);
        assert_eq!(no_node_in_zone(&volume, &[]), None);
        assert_eq!(no_node_in_zone(&volume, &[node(Some("c")), node(None)]), None);
        assert_eq!(
            no_node_in_zone(&volume, &zones(&["c"])).unwrap(),
            "No node is in a zone of the volume: the StorageClass disk allows a, b, and the nodes are in c. Add a node in a \
             or b, or create the volume with a class that allows a zone of the nodes."
        );
    }
}
