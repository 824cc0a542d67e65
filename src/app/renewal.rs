//! Registering anew with kubelet when the node has learnt more of itself. kubelet asks for the number of volumes again and again,
//! but for topology only when a driver registers; and a node that is new to the cluster may register before it is told which
//! categories of disks its instance type takes.

use std::sync::Arc;
use std::time::Duration;

use crate::csi::registration::Registration;
use crate::node::Node;

/// How often it is looked whether there is more to tell.
const LOOK: Duration = Duration::from_secs(10);

/// Looks for as long as the process runs. Only what comes is told anew: a category that is not named any more keeps its volumes.
pub(super) async fn keep(node: Arc<Node>, registration: Registration) {
    loop {
        registration.until(true).await;
        tokio::select! {
            () = registration.until(false) => {}
            () = more(&node) => {
                registration.renew();
                registration.until(false).await;
            }
        }
    }
}

/// Returns when the node takes categories that kubelet does not know of.
async fn more(node: &Node) {
    // What is told later is told of the number of volumes only.
    let told = node.told_categories();
    let mut look = tokio::time::interval(LOOK);
    loop {
        let mut untold = node.categories().await;
        untold.retain(|category| !told.contains(category));
        if !untold.is_empty() {
            let untold: Vec<String> = untold.iter().map(ToString::to_string).collect();
            tracing::info!(
                categories = untold.join(","),
                "the node takes more categories than kubelet knows: it is registered anew"
            );
            return;
        }
        look.tick().await;
    }
}
