//! The startup taint: nodes join the cluster with it, so that no pod is scheduled before its volumes can be mounted. It
//! is removed when the driver is registered on the node.
//!
//! The controller removes it: a node would need permission to change Nodes, which cannot be limited to its own, so that
//! one compromised machine could change all of them.

use std::collections::HashMap;
use std::time::Duration;

use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;

use super::access::{CONFLICT, NOT_FOUND, request_unless};
use super::nodes::{Member, Nodes, PartialNode, Taint, partial_node};
use super::{Cluster, Error, Result};
use crate::base::error_chain;

/// How long to wait for the volume limit of a registered node if limits are published: kubelet updates the mounted
/// ConfigMap within about a minute, and calls NodeGetInfo every minute.
const LIMIT_TIMEOUT: Duration = Duration::from_mins(3);

/// Interval between two checks while tainted nodes exist. Also the first backoff after a failure.
const RECHECK_INTERVAL: Duration = Duration::from_secs(5);

const MAX_BACKOFF: Duration = Duration::from_mins(1);

/// Attempts of a write that conflicts with others: kubelet and controllers update a starting node often.
const MAX_ATTEMPTS: usize = 5;

/// Removes the taint with this key from every node on which the driver is registered, while the process runs. With
/// `needs_limit`, it also waits for the node's volume limit: before that, too many pods could be scheduled.
pub async fn remove_taint(cluster: Cluster, mut nodes: Nodes, key: String, needs_limit: bool) {
    let mut backoffs: HashMap<String, NodeBackoff> = HashMap::new();
    loop {
        let mut tainted_nodes = nodes.members();
        tainted_nodes.retain(|node| node.is_tainted);
        backoffs.retain(|name, _| tainted_nodes.iter().any(|tainted| tainted.node == *name));
        for tainted in &tainted_nodes {
            let backoff = backoffs.entry(tainted.node.clone()).or_default();
            if backoff.is_due(needs_limit && !tainted.has_limit) {
                match remove(&cluster, tainted, &key).await {
                    Ok(true) => {
                        tracing::info!(node = tainted.node, taint = key, "removed the startup taint");
                    }
                    Ok(false) => {}
                    Err(error) => backoff.failed(&tainted.node, &error),
                }
            }
        }
        if tainted_nodes.is_empty() {
            nodes.changed().await;
        } else {
            // The watch reports a removed taint with a delay.
            tokio::select! {
                () = nodes.changed() => {}
                () = tokio::time::sleep(RECHECK_INTERVAL) => {}
            }
        }
    }
}

/// When the next attempt on a tainted node is due.
#[derive(Debug)]
struct NodeBackoff {
    /// When the node was first reported as registered and tainted.
    since: Instant,
    /// The pause after the last failure; zero if no attempt has failed.
    pause: Duration,
    next: Instant,
}

impl Default for NodeBackoff {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            pause: Duration::ZERO,
            next: Instant::now(),
        }
    }
}

impl NodeBackoff {
    /// Whether an attempt is due. If the node's volume limit is missing, only after a timeout.
    fn is_due(&self, lacks_limit: bool) -> bool {
        Instant::now() >= self.next && !(lacks_limit && self.since.elapsed() < LIMIT_TIMEOUT)
    }

    /// Warns on the first failure, and backs off.
    fn failed(&mut self, node: &str, error: &Error) {
        if self.pause.is_zero() {
            tracing::warn!(node, "{}; it will be retried", error_chain(error));
        }
        self.pause = (self.pause * 2).clamp(RECHECK_INTERVAL, MAX_BACKOFF);
        self.next = Instant::now() + self.pause;
    }
}

/// Removes the taint from this node; returns whether it existed.
async fn remove(cluster: &Cluster, tainted: &Member, key: &str) -> Result<bool> {
    let step = format!("remove the taint {key} from Node {}", tainted.node);
    change(cluster, &tainted.node, &step, |node| {
        // A new Node may have the name, and the driver is not registered on it yet.
        let is_same = node.metadata.uid.as_ref() == Some(&tainted.uid);
        let others = node.spec.taints.iter().filter(|taint| taint.key != key);
        is_same.then(|| others.cloned().collect())
    })
    .await
}

/// Replaces the taints of this node with the result of `new`, which is none to keep them. Returns whether that changed
/// them.
pub(super) async fn change(
    cluster: &Cluster,
    name: &str,
    step: &str,
    new: impl Fn(&PartialNode) -> Option<Vec<Taint>>,
) -> Result<bool> {
    let api: Api<PartialNode> = partial_node(cluster);
    for _ in 0..MAX_ATTEMPTS {
        let Some(node) = request_unless(&[NOT_FOUND], step, api.get(name)).await? else {
            return Ok(false);
        };
        let Some(taints) = new(&node).filter(|taints| *taints != node.spec.taints) else {
            return Ok(false);
        };
        // The patch replaces the list, so it must fail if the node has changed: new taints must stay.
        let patch = Patch::Merge(json!({
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": taints},
        }));
        let params = PatchParams::default();
        let patched = api.patch(name, &params, &patch);
        if request_unless(&[CONFLICT], step, patched).await?.is_some() {
            return Ok(true);
        }
    }
    Err(Error::Conflict { step: step.to_owned() })
}
