//! Whether the parts of the driver run that a volume needs: the controllers, and the node plugin on its nodes.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ContainerStatus, Node, Pod};
use k8s_openapi::api::storage::v1::CSINode;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::access::ask_optional;
use super::driver_pods::{COMPONENT_LABEL, DriverPod, NAME_LABEL, list_pods};
use super::list::list_selected;
use super::{Cluster, Error, Result};
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

/// A Deployment of controllers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControllerDeployment {
    pub namespace: String,
    pub name: String,
    pub replicas: i32,
}

/// A node that the volume is attached to, or that a pod with the volume is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeStatus {
    pub name: String,
    pub exists: bool,
    /// Why it is not ready; none if it is.
    pub not_ready: Option<String>,
    /// Whether its CSINode has the driver.
    pub is_registered: bool,
}

impl DriverStatus {
    /// The pods of the driver, in this namespace or in all.
    ///
    /// # Errors
    /// The API server does not respond, or forbids listing pods.
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

/// The container of the driver in each of its pods.
const DRIVER_CONTAINER: &str = "diskplugin";

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
        containers.sort_by_key(|container| container.name != DRIVER_CONTAINER);
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

impl ControllerDeployment {
    /// The Deployments with the label of the controller, in this namespace or in all.
    ///
    /// # Errors
    /// The API server does not respond, or forbids listing Deployments.
    pub async fn list(cluster: &Cluster, namespace: Option<&str>) -> Result<Vec<Self>> {
        let api: Api<Deployment> = match namespace {
            Some(namespace) => Api::namespaced(cluster.client(), namespace),
            None => Api::all(cluster.client()),
        };
        let labels = format!("{NAME_LABEL},{COMPONENT_LABEL}={CONTROLLER}");
        let found = list_selected(&api, &ListParams::default().labels(&labels)).await;
        let found = found.map_err(|outcome| Error::of("list the Deployments of the driver", outcome))?;
        let of = |one: Deployment| Self {
            namespace: one.namespace().unwrap_or_default(),
            name: one.name_any(),
            replicas: one.spec.and_then(|spec| spec.replicas).unwrap_or(1),
        };
        Ok(found.into_iter().map(of).collect())
    }
}

impl NodeStatus {
    /// The state of a node.
    ///
    /// # Errors
    /// The API server does not respond, or forbids reading Nodes or CSINodes.
    pub async fn read(cluster: &Cluster, driver: &DriverName, name: &str) -> Result<Self> {
        let nodes: Api<Node> = Api::all(cluster.client());
        let node = ask_optional(&format!("read the Node {name}"), nodes.get(name)).await?;
        let registrations: Api<CSINode> = Api::all(cluster.client());
        let step = format!("read the CSINode {name}");
        let registered = ask_optional(&step, registrations.get(name)).await?;
        Ok(Self {
            name: name.to_owned(),
            exists: node.is_some(),
            not_ready: node.as_ref().and_then(node_not_ready),
            is_registered: registered.is_some_and(|node| {
                let mut drivers = node.spec.drivers.iter();
                drivers.any(|one| one.name == driver.as_str())
            }),
        })
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

/// The zones of all nodes; empty if a node has no zone.
///
/// # Errors
/// The API server does not respond, or forbids listing Nodes.
pub async fn node_zones(cluster: &Cluster) -> Result<BTreeSet<String>> {
    let nodes: Api<Node> = Api::all(cluster.client());
    let nodes = list_selected(&nodes, &ListParams::default()).await;
    let nodes = nodes.map_err(|outcome| Error::of("list Nodes", outcome))?;
    let zones = nodes.iter().map(|node| node.labels().get(ZONE_KEY).cloned());
    Ok(zones.collect::<Option<_>>().unwrap_or_default())
}
