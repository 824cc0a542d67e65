//! The nodes of the cluster: whether volumes can be mounted there, and their zones.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::storage::v1::CSINode;
use kube::{Api, ResourceExt};

use super::list::list;
use super::{Cluster, Result};
use crate::model::DriverName;
use crate::model::topology::ZONE_KEY;

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
