//! Whether the parts of the driver run that a volume needs: the controllers, and the node plugin on its nodes.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{ContainerStatus, Node, Pod};
use k8s_openapi::api::storage::v1::CSINode;
use kube::{Api, ResourceExt};

use super::driver_pods::{COMPONENT_LABEL, CONTAINER, DriverPod, list_pods};
use super::list::list;
use super::{Cluster, Result};
use crate::model::DriverName;
use crate::model::topology::ZONE_KEY;

/// The values of the label of components.
pub const CONTROLLER: &str = "controller";
pub const NODE: &str = "node";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriverStatus {
    pub controllers: Vec<PodStatus>,
    pub node_plugins: Vec<PodStatus>,
    /// The pods with an HTTP port, whose containers have been started.
    pub pods: Vec<DriverPod>,
}

/// A pod of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodStatus {
    pub namespace: String,
    pub name: String,
    /// The node as named in Kubernetes.
    pub node: Option<String>,
    pub is_ready: bool,
    /// Why it is not ready, if Kubernetes states it.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    pub name: String,
    /// Why it is not ready; none if it is.
    pub not_ready: Option<String>,
    /// Whether its CSINode has the driver.
    pub is_registered: bool,
    /// The value of the zone label of the node.
    pub zone: Option<String>,
}

impl DriverStatus {
    /// The pods of the driver, in this namespace or in all.
    pub async fn read(cluster: &Cluster, namespace: Option<&str>) -> Result<Self> {
        let pods = list_pods(cluster, namespace).await?;
        let component = |name: &str| {
            let own = pods
                .iter()
                .filter(|pod| pod.labels().get(COMPONENT_LABEL).is_some_and(|one| one == name));
            own.map(PodStatus::of).collect()
        };
        Ok(Self {
            controllers: component(CONTROLLER),
            node_plugins: component(NODE),
            pods: pods
                .iter()
                .filter(|pod| !is_pending(pod))
                .filter_map(DriverPod::of)
                .collect(),
        })
    }
}

/// Whether no container runs: a request to the pod would wait until its timeout.
fn is_pending(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    phase == Some("Pending")
}

impl PodStatus {
    fn of(pod: &Pod) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let condition = |kind: &str| conditions.iter().find(|one| one.type_ == kind);
        let is_ready = condition("Ready").is_some_and(|ready| ready.status == "True");
        let initial = status.init_container_statuses.unwrap_or_default();
        let mut containers = status.container_statuses.unwrap_or_default();
        // Sidecars fail without the driver.
        containers.sort_by_key(|container| container.name != CONTAINER);
        let unscheduled = condition("PodScheduled")
            .filter(|one| one.status == "False")
            .and_then(|one| one.message.clone());
        let mut containers = initial.iter().chain(&containers);
        let reason = containers.find_map(not_ready).or(unscheduled);
        Self {
            namespace: pod.namespace().unwrap_or_default(),
            name: pod.name_any(),
            node: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            is_ready: is_ready && pod.metadata.deletion_timestamp.is_none(),
            reason: reason.filter(|_| !is_ready),
        }
    }
}

fn not_ready(container: &ContainerStatus) -> Option<String> {
    if container.ready {
        return None;
    }
    let name = &container.name;
    let state = container.state.as_ref()?;
    let waiting = state.waiting.as_ref().and_then(|one| one.reason.clone());
    let terminated = state.terminated.as_ref().and_then(|one| one.reason.clone());
    Some(match waiting.or(terminated) {
        Some(reason) => format!("container {name}: {reason}"),
        None => format!("container {name} is not ready"),
    })
}

impl NodeStatus {
    /// All nodes.
    pub async fn list(cluster: &Cluster, driver: &DriverName) -> Result<Vec<Self>> {
        let nodes = list::<Node>(&Api::all(cluster.client()), "nodes").await?;
        let mut registered = list::<CSINode>(&Api::all(cluster.client()), "csinodes").await?;
        registered.retain(|node| node.spec.drivers.iter().any(|row| row.name == driver.as_str()));
        let registered: BTreeSet<_> = registered.iter().map(ResourceExt::name_any).collect();
        let of = |node: Node| Self {
            name: node.name_any(),
            not_ready: node_not_ready(&node),
            is_registered: registered.contains(&node.name_any()),
            zone: node.labels().get(ZONE_KEY).cloned(),
        };
        Ok(nodes.into_iter().map(of).collect())
    }
}

fn node_not_ready(node: &Node) -> Option<String> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|one| one.type_ == "Ready")?;
    let message = || {
        let message = ready.message.clone().or_else(|| ready.reason.clone());
        message.unwrap_or_else(|| "no reason is given".to_owned())
    };
    (ready.status != "True").then(message)
}
