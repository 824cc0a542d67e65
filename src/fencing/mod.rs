//! Fencing: a node that is provably down is marked as out of service, so that Kubernetes deletes its pods and detaches
//! its volumes immediately instead of after six minutes. Off by default.
//!
//! Promise: no node is marked whose instance may still write. The rule, in `rule`:
//!
//! 1. The Node is not ready, and all reads of its instance during the grace period report it as `Stopped`; or all reads
//!    during at least a minute lack it, and an earlier read with the same key had it, so that it was released.
//!    `Running`, `Starting`, `Stopping`, `Pending` and unknown states are never sufficient, and start the period again.
//! 2. A read counts only if it also reports the instance of a ready node as `Running` (the canary: the right account
//!    and region, and permission to read), and if the access key has not changed. Any other read starts the periods of
//!    all nodes again.
//! 3. At most a share of the nodes is out of service at once.
//!
//! The taint is set with the version of the Node that was read last, and only within [`MAX_READ`] after the read began
//! (`run`): a Node that has become ready, or was replaced, does not get it. So an instance that was started since has
//! had no time to boot, and its kubelet reports to the Node before it starts pods. The taint is removed when the cloud
//! reports the instance as `Running`, the Node is ready, and none of the pods that the taint evicts remains.

use std::time::Duration;

mod rule;
mod run;

pub use run::{Fencing, run};

/// The maximum duration of a read, and the maximum age of the last one when the taint is set.
const MAX_READ: Duration = Duration::from_secs(5);

/// How long an instance must be missing to count as released: as for disks, reads at least a minute apart.
const RELEASED_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy)]
pub struct FencingConfig {
    /// How long the cloud must report an instance as stopped.
    pub grace_period: Duration,
    /// The share of the nodes that may be out of service at once; at least one node.
    pub max_nodes_percent: u8,
}
