//! Registers again with kubelet when the topology of the node grows. kubelet requests topology only when a driver
//! registers, and a node that is new to the cluster may register before the categories that its instance type supports
//! are published.

use std::sync::Arc;
use std::time::Duration;

use crate::csi::registration::Registration;
use crate::node::NodeServices;

/// Interval of checks for new categories.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// Runs as long as the process. Only new categories cause a registration: volumes of a removed category stay usable.
pub(super) async fn run(node: Arc<NodeServices>, registration: Registration) {
    loop {
        registration.wait_registered(true).await;
        tokio::select! {
            () = registration.wait_registered(false) => {}
            () = wait_new_categories(&node) => {
                registration.restart();
                registration.wait_registered(false).await;
            }
        }
    }
}

/// Returns when the node supports categories that it has not reported to kubelet.
async fn wait_new_categories(node: &NodeServices) {
    // NodeGetInfo responses after the registration update only the number of volumes.
    let reported = node.info.reported_categories();
    let mut checks = tokio::time::interval(CHECK_INTERVAL);
    loop {
        let mut new = node.info.categories().await;
        new.retain(|category| !reported.contains(category));
        if !new.is_empty() {
            let new: Vec<String> = new.iter().map(ToString::to_string).collect();
            tracing::info!(
                categories = new.join(","),
                "new disk categories in the topology of the node: registering again"
            );
            return;
        }
        checks.tick().await;
    }
}
