//! The controller features that use the API server of the cluster.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::instance_types_config_map;
use crate::base::{SystemClock, Tasks};
use crate::cli;
use crate::cli::InvalidSettings;
use crate::cluster::Cluster;
use crate::cluster::events::EventRecorder;
use crate::cluster::instance_types::InstanceTypesConfigMap;
use crate::cluster::lease::{Candidate, LeaseConfig};
use crate::cluster::nodes::Nodes;
use crate::cluster::taint;
use crate::disk::DiskServices;
use crate::fencing::{self, Fencing, FencingConfig};
use crate::http::metrics::{OrphanMetrics, count_orphans};
use crate::model::{ClusterId, DriverName};
use crate::ops::orphans::{Observer, Rules};

/// Age from which a resource without an object in Kubernetes is counted, as by `diskplugin orphans`.
const ORPHAN_AGE: Duration = Duration::from_hours(1);

/// The API server, if a feature is enabled that needs it. Nothing is sent yet.
pub(crate) async fn connect(args: &cli::KubernetesArgs) -> Result<Option<Cluster>, InvalidSettings> {
    let mut flags = args.enabled();
    if args.leader_election.leader_election {
        flags.push("--leader-election");
    }
    let flags = flags.join(", ");
    if flags.is_empty() {
        return Ok(None);
    }
    let cluster = required(args.kubeconfig.as_deref(), &flags).await?;
    let namespace = cluster.namespace();
    tracing::info!(namespace, "using the API server for {flags}");
    Ok(Some(cluster))
}

/// The API server that these flags require. Nothing is sent yet.
pub(crate) async fn required(kubeconfig: Option<&Path>, flags: &str) -> Result<Cluster, InvalidSettings> {
    let cluster = Cluster::new(kubeconfig).await;
    cluster.map_err(|error| InvalidSettings(vec![format!("{flags}: requires the API server: {error}")]))
}

/// The candidate for the Lease of the driver, if leader election is enabled.
pub(crate) fn candidate(
    args: &cli::LeaderElectionArgs,
    cluster: Option<&Cluster>,
    driver: &DriverName,
) -> Result<Option<Candidate>, InvalidSettings> {
    let identity = args.leader_election_identity.clone();
    let enabled = cluster.zip(identity).filter(|_| args.leader_election);
    let Some((cluster, identity)) = enabled else {
        return Ok(None);
    };
    args.check().map_err(|error| InvalidSettings(vec![error]))?;
    let namespace = args.leader_election_namespace.as_deref();
    let config = LeaseConfig {
        namespace: namespace.unwrap_or(cluster.namespace()).to_owned(),
        name: format!("{}-controller", driver.as_str().replace('.', "-")),
        identity,
        duration: args.leader_election_lease_duration,
        renew_deadline: args.leader_election_renew_deadline,
        retry_period: args.leader_election_retry_period,
    };
    Ok(Some(Candidate::new(cluster, config)))
}

/// Starts the enabled features, and returns the nodes if the API server is used. Neither startup nor shutdown waits for
/// them: the API server may be unavailable.
pub(crate) fn start(
    args: cli::KubernetesArgs,
    cluster: Option<Cluster>,
    driver: &DriverName,
    owner: &ClusterId,
    disks: &Arc<DiskServices>,
    orphans: &OrphanMetrics,
) -> (EventRecorder, Option<Nodes>) {
    let Some(cluster) = cluster.filter(|_| !args.enabled().is_empty()) else {
        return (EventRecorder::default(), None);
    };
    let publishes = args.instance_types_config_map.is_some();
    let with_nodes = publishes || args.startup_taint.is_some() || args.fencing.fencing;
    let nodes = Nodes::watch(&cluster, driver, with_nodes, args.startup_taint.clone());
    let tasks = Tasks::default();
    tasks.spawn(record_nodes(Arc::clone(disks), nodes.clone()));
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
        tasks.spawn(taint::remove_taint(cluster.clone(), nodes.clone(), key, publishes));
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
    if args.fencing.fencing {
        let config = FencingConfig {
            grace_period: args.fencing.fencing_grace_period,
            max_nodes_percent: args.fencing.fencing_max_nodes_percent,
        };
        let fencing = Fencing {
            cluster,
            nodes: nodes.clone(),
            disks: Arc::clone(disks),
            driver: driver.clone(),
            events: events.clone(),
        };
        tasks.spawn(fencing::run(fencing, config));
    }
    (events, Some(nodes))
}

/// Registers the nodes of the cluster with the disk services: if the system disk of a node is visible, the access key
/// belongs to the account of the cluster.
async fn record_nodes(disks: Arc<DiskServices>, mut nodes: Nodes) {
    loop {
        nodes.instances().iter().for_each(|node| disks.record_node(node));
        nodes.changed().await;
    }
}
