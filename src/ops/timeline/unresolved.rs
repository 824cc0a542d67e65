//! Failures that still matter: no later call has succeeded or made them irrelevant.

use jiff::SignedDuration;

use super::entry::Timeline;
use super::history::CallRecord;

/// Sidecars and kubelet retry a call after at most 5 minutes. A call that failed longer ago, with other calls since, is
/// not made anymore.
const RETRIED: SignedDuration = SignedDuration::from_mins(15);

/// A call with its source.
type Sourced<'a> = (&'a str, &'a CallRecord);

impl Timeline {
    /// The last failure of each call that is still made, the newest first.
    pub(super) fn unresolved(&self) -> Vec<Sourced<'_>> {
        let calls: Vec<_> = self.calls().collect();
        let mut found = Vec::new();
        for (at, call) in calls.iter().enumerate().rev() {
            let later = &calls[at + 1..];
            let is_last = later.iter().all(|(_, later)| later.is_running());
            let is_recent = self.now.duration_since(call.1.started) < RETRIED;
            let is_resolved = || later.iter().any(|later| resolves(later, call));
            if call.1.failed() && (is_last || is_recent) && !is_resolved() {
                found.push(*call);
            }
        }
        found
    }
}

/// Whether both are the same call of the same volume to the same node.
fn is_same(a: &Sourced<'_>, b: &Sourced<'_>) -> bool {
    // The controller can be another replica.
    a.1.method == b.1.method && a.1.node == b.1.node && (!a.1.method.starts_with("Node") || a.0 == b.0)
}

/// Whether the failure no longer matters after this call.
fn resolves(later: &Sourced<'_>, failed: &Sourced<'_>) -> bool {
    if later.1.is_running() {
        return false;
    }
    // A later failure takes the place of an earlier one.
    if is_same(later, failed) {
        return true;
    }
    let is_same_node = later.1.node == failed.1.node;
    !later.1.failed()
        && match (failed.1.method.as_str(), later.1.method.as_str()) {
            (_, "DeleteVolume") => true,
            // The volume exists.
            ("CreateVolume", method) => method != "CreateVolume",
            ("ControllerPublishVolume", "ControllerUnpublishVolume")
            | ("ControllerUnpublishVolume", "ControllerPublishVolume") => is_same_node,
            // The names of nodes in sources are those of Kubernetes. A node that still uses the volume tries again.
            (method, "ControllerUnpublishVolume") => method.starts_with("Node"),
            ("NodePublishVolume", "NodeUnpublishVolume")
            | ("NodeStageVolume" | "NodePublishVolume", "NodeUnstageVolume")
            | ("NodeUnstageVolume", "NodeStageVolume")
            | ("NodeUnpublishVolume", "NodePublishVolume") => later.0 == failed.0,
            _ => false,
        }
}
