//! `diskplugin pre-stop-hook`: keeps the node plugin running while a drained node still has volumes to unmount. If the
//! node terminates before kubelet reports them as unmounted, Kubernetes detaches them only after six minutes.

use std::fs::OpenOptions;

use crate::base::{Deadline, Elapsed};
use crate::cli;
use crate::cluster::{Cluster, node_drain};
use crate::linux::standard_error;

/// Returns when the pod may stop. A failure is logged and does not delay the shutdown.
pub(crate) async fn run(args: cli::PreStopHook) -> anyhow::Result<()> {
    let log = args
        .log_file
        .as_ref()
        .map(|file| OpenOptions::new().append(true).open(file));
    if let Some(log) = log {
        // Otherwise the lines go to standard error.
        let _ = log.and_then(standard_error::redirect);
    }
    match Deadline::after(args.timeout).bound(wait(&args)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            let error = crate::base::error_chain(error.as_ref());
            tracing::warn!("the pod stops without waiting for the detach of its volumes: {error}");
        }
        Err(Elapsed) => tracing::warn!(
            "volumes are still attached after {:?}: the pod stops. Pods that need them elsewhere may wait six minutes",
            args.timeout
        ),
    }
    Ok(())
}

async fn wait(args: &cli::PreStopHook) -> anyhow::Result<()> {
    let cluster = Cluster::new(args.kubeconfig.as_deref()).await?;
    let node = args.node_name.as_str();
    if !node_drain::is_leaving(&cluster, node).await? {
        tracing::info!(
            node,
            "the node is not drained: not waiting for the detach of its volumes"
        );
        return Ok(());
    }
    node_drain::wait_detached(&cluster, &args.driver.driver_name, node).await?;
    Ok(())
}
