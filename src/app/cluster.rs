//! What the controller has to do with the API server of the cluster, as far as it is asked for.

use std::sync::Arc;

use super::{WrongSettings, facts};
use crate::base::chain::chain;
use crate::base::{SystemClock, Tasks};
use crate::cli;
use crate::cluster::Cluster;
use crate::cluster::events::Events;
use crate::cluster::facts::Facts;
use crate::cluster::nodes::{Nodes, Wanted};
use crate::cluster::taint;
use crate::disk::DiskServices;
use crate::model::DriverName;

/// Starts what is asked for. None of it is waited for, neither now nor at the end: the API server may be away.
///
/// # Errors
/// When something is asked for, and there is no way to an API server.
pub(crate) async fn start(
    wanted: cli::Kubernetes,
    driver: &DriverName,
    disks: &Arc<DiskServices>,
) -> Result<Events, WrongSettings> {
    let flags = wanted.wanted().join(", ");
    if flags.is_empty() {
        return Ok(Events::default());
    }
    let cluster = Cluster::new(wanted.kubeconfig.as_deref()).await;
    let cluster = cluster.map_err(|error| {
        let error = chain(&error);
        WrongSettings(vec![format!(
            "{flags}: the API server is needed, and {error}"
        )])
    })?;
    tracing::info!(
        namespace = cluster.namespace(),
        "with the API server: {flags}"
    );
    let nodes = Wanted {
        driver: driver.clone(),
        nodes: wanted.instance_types_config_map.is_some() || wanted.startup_taint.is_some(),
        taint: wanted.startup_taint.clone(),
    };
    let nodes = Nodes::watch(&cluster, &nodes);
    let tasks = Tasks::default();
    let publishes = wanted.instance_types_config_map.is_some();
    if let Some(name) = wanted.instance_types_config_map {
        let facts = Facts::new(&cluster, &name);
        let clock = Arc::new(SystemClock);
        tasks.start(facts::keep(Arc::clone(disks), clock, nodes.clone(), facts));
    }
    if let Some(key) = wanted.startup_taint {
        tasks.start(taint::take_off(
            cluster.clone(),
            nodes.clone(),
            key,
            publishes,
        ));
    }
    Ok(match wanted.events {
        true => Events::new(&cluster, nodes, driver),
        false => Events::default(),
    })
}
