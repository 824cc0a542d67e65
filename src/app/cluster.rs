//! The controller features that use the API server of the cluster.

use std::sync::Arc;
use std::time::Duration;

use super::metrics::{OrphanMetrics, count_orphans};
use super::{InvalidSettings, instance_types_config_map};
use crate::base::error_chain;
use crate::base::{SystemClock, Tasks};
use crate::cli;
use crate::cluster::Cluster;
use crate::cluster::events::EventRecorder;
use crate::cluster::instance_types::InstanceTypesConfigMap;
use crate::cluster::nodes::{Nodes, WatchConfig};
use crate::cluster::taint;
use crate::disk::DiskServices;
use crate::model::{ClusterId, DriverName};
use crate::ops::orphans::{Observer, Rules};

/// Age from which a resource without an object in Kubernetes is counted, as by `diskplugin orphans`.
const ORPHAN_AGE: Duration = Duration::from_hours(1);

/// Starts the enabled features. Neither startup nor shutdown waits for them: the API server may be unavailable.
/// Returns the nodes if the API server is used.
/// Fails if a feature is enabled and no API server is configured.
pub(crate) async fn start(
    args: cli::KubernetesArgs,
    driver: &DriverName,
    owner: &ClusterId,
    disks: &Arc<DiskServices>,
    orphans: &OrphanMetrics,
) -> Result<(EventRecorder, Option<Nodes>), InvalidSettings> {
    let flags = args.enabled().join(", ");
    if flags.is_empty() {
        return Ok((EventRecorder::default(), None));
    }
    let cluster = Cluster::new(args.kubeconfig.as_deref()).await;
    let cluster = cluster.map_err(|error| {
        let error = error_chain(&error);
        InvalidSettings(vec![format!("{flags}: requires the API server: {error}")])
    })?;
    tracing::info!(
        namespace = cluster.namespace(),
        "using the API server for {flags}"
    );
    let nodes = WatchConfig {
        driver: driver.clone(),
        nodes: args.instance_types_config_map.is_some() || args.startup_taint.is_some(),
        taint: args.startup_taint.clone(),
    };
    let nodes = Nodes::watch(&cluster, &nodes);
    let tasks = Tasks::default();
    let publishes = args.instance_types_config_map.is_some();
    if let Some(name) = args.instance_types_config_map {
        let facts = InstanceTypesConfigMap::new(&cluster, &name);
        let clock = Arc::new(SystemClock);
        tasks.spawn(instance_types_config_map::publish(
            Arc::clone(disks),
            clock,
            nodes.clone(),
            facts,
        ));
    }
    if let Some(key) = args.startup_taint {
        tasks.spawn(taint::remove_taint(
            cluster.clone(),
            nodes.clone(),
            key,
            publishes,
        ));
    }
    if let Some(interval) = args.metrics_orphans_interval.0 {
        let observer = Observer {
            cluster: cluster.clone(),
            disks: Arc::clone(disks),
            driver: driver.clone(),
            clock: Arc::new(SystemClock),
        };
        let rules = Rules {
            cluster: owner.clone(),
            min_age: ORPHAN_AGE,
            // The API server is that of this cluster.
            allow_unreferenced: true,
        };
        tasks.spawn(count_orphans(orphans.clone(), observer, rules, interval));
    }
    let events = match args.events {
        true => EventRecorder::new(&cluster, nodes.clone(), driver),
        false => EventRecorder::default(),
    };
    Ok((events, Some(nodes)))
}
