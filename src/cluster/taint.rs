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

use super::access::soon;
use super::error::{code, is_conflict};
use super::nodes::{Nodes, PartialNode, TaintedNode, partial_node};
use super::{Cluster, Error, Result};
use crate::base::error_chain;

/// How long to wait for the volume limit of a registered node if limits are published: kubelet updates the mounted
/// ConfigMap within about a minute, and calls NodeGetInfo every minute.
const COUNT: Duration = Duration::from_mins(3);

/// How often it is looked again while nodes wait.
const LOOK: Duration = Duration::from_secs(5);

/// How long a node is let be at most after failures.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// How often a write is tried that others keep overtaking: kubelet and controllers are busy with a node that starts.
const TRIES: usize = 5;

/// Removes the taint with this key from every node on which the driver is registered, while the process runs. With
/// `counts`, it also waits for the node's volume limit: before that, too many pods could be scheduled.
pub async fn remove_taint(cluster: Cluster, mut nodes: Nodes, key: String, counts: bool) {
    let mut known: HashMap<String, Patience> = HashMap::new();
    loop {
        let tainted_nodes = nodes.tainted_nodes();
        known.retain(|name, _| tainted_nodes.iter().any(|one| one.node == *name));
        for one in &tainted_nodes {
            let patience = known.entry(one.node.clone()).or_default();
            if patience.lets_try(counts && !one.has_limit) {
                match remove(&cluster, one, &key).await {
                    Ok(true) => {
                        tracing::info!(node = one.node, taint = key, "ready: the taint is taken off");
                    }
                    Ok(false) => {}
                    Err(error) => patience.failed(&one.node, &error),
                }
            }
        }
        if tainted_nodes.is_empty() {
            nodes.changed().await;
        } else {
            // A node that was just done is still seen with its taint for a moment.
            tokio::select! {
                () = nodes.changed() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }
}

/// What is known of one node that waits.
#[derive(Debug)]
struct Patience {
    /// When it was first seen to wait.
    begun: Instant,
    /// How long it is let be after a failure, and until when.
    pause: Duration,
    next: Instant,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            begun: Instant::now(),
            pause: Duration::ZERO,
            next: Instant::now(),
        }
    }
}

impl Patience {
    /// Whether it is time; `uncounted` says that its limit is still expected.
    fn lets_try(&self, uncounted: bool) -> bool {
        Instant::now() >= self.next && !(uncounted && self.begun.elapsed() < COUNT)
    }

    /// PublishedLimits once; tried again ever later.
    fn failed(&mut self, node: &str, error: &Error) {
        if self.pause.is_zero() {
            tracing::warn!(node, "{}; it is tried again", error_chain(error));
        }
        self.pause = (self.pause * 2).clamp(LOOK, LONGEST_PAUSE);
        self.next = Instant::now() + self.pause;
    }
}

/// Removes the taint from this node; returns whether it existed.
async fn remove(cluster: &Cluster, tainted_nodes: &TaintedNode, key: &str) -> Result<bool> {
    let name = &tainted_nodes.node;
    let api: Api<PartialNode> = partial_node(cluster);
    let step = format!("take the taint {key} off Node {name}");
    for _ in 0..TRIES {
        let node = match soon().bound(api.get(name)).await {
            Ok(Ok(node)) => node,
            // It has left.
            Ok(Err(error)) if code(&error) == Some(404) => return Ok(false),
            Ok(Err(error)) => return Err(Error::of(&step, Ok(error))),
            Err(late) => return Err(Error::of(&step, Err(late))),
        };
        // Another Node has the name by now, and the driver is not registered there yet.
        if tainted_nodes.uid.is_some() && tainted_nodes.uid != node.metadata.uid {
            return Ok(false);
        }
        let taints = node.spec.taints;
        let others: Vec<_> = taints.iter().filter(|taint| taint.key != key).collect();
        if others.len() == taints.len() {
            return Ok(false);
        }
        // The list as a whole, and only if nobody has changed the node since: a taint that came meanwhile must stay.
        let patch = Patch::Merge(json!({
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": others},
        }));
        let params = PatchParams::default();
        match soon().bound(api.patch(name, &params, &patch)).await {
            Ok(Ok(_)) => return Ok(true),
            Ok(Err(error)) if is_conflict(&error) => {}
            Ok(Err(error)) => return Err(Error::of(&step, Ok(error))),
            Err(late) => return Err(Error::of(&step, Err(late))),
        }
    }
    Err(Error::Conflict { step })
}
