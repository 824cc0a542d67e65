//! A node that is being drained for termination, and the VolumeAttachments that keep its volumes from other nodes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::{Api, ResourceExt};
use tokio::sync::watch;

use super::access::request;
use super::follow::follow;
use super::list::list;
use super::{Cluster, Result};
use crate::model::DriverName;

/// Taints of nodes that are drained or shut down: kubectl and Kubernetes, cluster autoscaler, Karpenter 1.x and 0.x.
const TAINTS: [&str; 6] = [
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/out-of-service",
    "node.cloudprovider.kubernetes.io/shutdown",
    "ToBeDeletedByClusterAutoscaler",
    "karpenter.sh/disrupted",
    "karpenter.sh/disruption",
];

/// The message that kubelet sets in the condition Ready during a graceful node shutdown.
const SHUTTING_DOWN: &str = "node is shutting down";

/// Whether the node is drained, shuts down, or no longer exists.
pub async fn is_leaving(cluster: &Cluster, node: &str) -> Result<bool> {
    let api: Api<Node> = Api::all(cluster.client());
    let found = request(&format!("read the Node {node}"), api.get_opt(node)).await?;
    Ok(found.is_none_or(|node| is_drained(&node)))
}

fn is_drained(node: &Node) -> bool {
    let spec = node.spec.as_ref();
    let is_cordoned = spec.and_then(|spec| spec.unschedulable) == Some(true);
    let mut taints = spec.and_then(|spec| spec.taints.as_ref()).into_iter().flatten();
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut ready = conditions
        .into_iter()
        .flatten()
        .filter(|condition| condition.type_ == "Ready");
    is_cordoned
        || taints.any(|taint| TAINTS.contains(&taint.key.as_str()))
        || ready.any(|ready| {
            let message = ready.message.as_deref().unwrap_or_default();
            ready.status != "True" && message.contains(SHUTTING_DOWN)
        })
}

/// Returns when no volume of the driver is attached to the node. A watch that fails is restarted; only the first list
/// must succeed.
pub async fn wait_detached(cluster: &Cluster, driver: &DriverName, node: &str) -> Result<()> {
    let api: Api<VolumeAttachment> = Api::all(cluster.client());
    let is_own = |one: &VolumeAttachment| one.spec.attacher == driver.as_str() && one.spec.node_name == node;
    let all = list(&api, "VolumeAttachments").await?;
    let own = all.iter().filter(|one| is_own(one));
    let own: BTreeMap<_, _> = own.map(|one| (one.name_any(), ())).collect();
    tracing::info!(
        node,
        volumes = own.len(),
        "waiting until no volume is attached to the node"
    );
    let (sender, mut attached) = watch::channel(Some(own));
    let watched = follow("VolumeAttachments", api, |one| is_own(one).then_some(()), sender);
    tokio::select! {
        () = watched => {}
        _ = attached.wait_for(|own| own.as_ref().is_some_and(BTreeMap::is_empty)) => {}
    }
    tracing::info!(node, "no volume is attached to the node");
    Ok(())
}
