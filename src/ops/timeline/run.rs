//! `diskplugin timeline`: what happened to a volume, and what it waits for.

use super::entry::Timeline;
use super::flags::Flags;
use super::history::History;
use super::obstacle::{no_controller, no_node_in_zone, node_obstacle};
use super::render::{json, text};
use crate::base::{Clock, SystemClock, join_all};
use crate::cli::{InvalidSettings, OutputFormat};
use crate::cluster::Cluster;
use crate::cluster::driver_pods::{CONTROLLER, DriverPod, NODE};
use crate::cluster::node_status::NodeStatus;
use crate::cluster::volume_history::VolumeHistory;
use crate::cluster::workload::Workload;
use crate::ops::{print, process, process_client};

/// Most pods of nodes that are read, if it is unknown where the volume is attached.
const MAX_NODES: usize = 50;

/// Prints what happened to a volume.
///
/// # Errors
/// No source could be read.
pub async fn run(args: Flags) -> anyhow::Result<()> {
    if !args.processes.url.is_empty() && args.volume.contains('/') {
        let problem = "a claim is found through Kubernetes, which --url does not read; with --url, name the disk ID or \
                       the PersistentVolume";
        return Err(InvalidSettings::one(problem).into());
    }
    let mut parts = args.volume.split('/');
    if parts.clone().count() > 2 || parts.any(str::is_empty) {
        let problem = format!(
            "VOLUME is {:?}; allowed: a disk ID, the name of a PersistentVolume, or NAMESPACE/NAME of a PersistentVolumeClaim",
            args.volume
        );
        return Err(InvalidSettings::one(problem).into());
    }
    let mut timeline = Timeline {
        volume: args.volume.clone(),
        now: SystemClock.now(),
        ..Timeline::default()
    };
    if args.processes.url.is_empty() {
        read_cluster(&args, &mut timeline).await?;
    } else {
        read_urls(&args, &mut timeline).await?;
    }
    print(match args.output {
        OutputFormat::Table => text(&timeline),
        OutputFormat::Json => json(&timeline).to_string(),
    })?;
    if !timeline.is_read {
        anyhow::bail!("no source could be read");
    }
    Ok(())
}

async fn read_urls(args: &Flags, timeline: &mut Timeline) -> anyhow::Result<()> {
    let token = args.processes.token()?;
    let path = process::history(&args.volume);
    for authority in &args.processes.url {
        let page = process_client::get(authority, &path, token.as_deref()).await;
        let page = page.map_err(|error| format!("http://{authority}{path}: {error:#}"));
        add(timeline, authority, page);
    }
    Ok(())
}

async fn read_cluster(args: &Flags, timeline: &mut Timeline) -> anyhow::Result<()> {
    let cluster = args.processes.cluster.require().await?;
    let recorded = VolumeHistory::read(&cluster, &args.processes.driver.driver_name, &args.volume).await;
    if let Some(history) = timeline.available(recorded) {
        timeline.add_kubernetes(history);
    }
    let pods = DriverPod::list(&cluster, args.processes.namespace.as_deref()).await;
    let Some(pods) = timeline.available(pods) else {
        return Ok(());
    };
    find_obstacles(&cluster, args, &pods, timeline).await;
    if !pods.iter().any(DriverPod::has_pages) {
        let problem = "no pod has the label app.kubernetes.io/name=diskplugin and the flag --http-address, and runs";
        timeline.unavailable.push(problem.to_owned());
    }
    let pods = relevant(pods, timeline);
    let keys = timeline.keys();
    let pages = join_all(pods.iter().map(|pod| read_pod(&cluster, pod, &keys))).await;
    for (pod, page) in pods.iter().zip(pages) {
        let source = match &pod.node {
            Some(node) if pod.component == NODE => format!("node {node}"),
            _ => format!("{} {}", pod.component, pod.name),
        };
        add(timeline, &source, page);
    }
    Ok(())
}

/// Adds the reasons why no call for the volume can succeed, or none is made.
async fn find_obstacles(cluster: &Cluster, args: &Flags, pods: &[DriverPod], timeline: &mut Timeline) {
    let name = &args.processes.driver.driver_name;
    let of = |component: &str| pods.iter().filter(|pod| pod.component == component).collect::<Vec<_>>();
    let (controllers, plugins) = (of(CONTROLLER), of(NODE));
    if !controllers.iter().any(|pod| pod.is_ready) {
        let namespace = args.processes.namespace.as_deref();
        let deployments = Workload::list(cluster, "deployments", name, namespace).await;
        let deployments = timeline.available(deployments).unwrap_or_default();
        timeline
            .obstacles
            .push(no_controller(controllers.first().copied(), deployments.first()));
    }
    let own = timeline.nodes();
    if own.is_empty() && timeline.found.zones.is_none() {
        return;
    }
    if let Some(nodes) = timeline.available(NodeStatus::list(cluster, name).await) {
        let found = own.iter().filter_map(|node| node_obstacle(node, &nodes, &plugins));
        timeline.obstacles.extend(found);
        let zones = timeline
            .found
            .zones
            .as_ref()
            .and_then(|zones| no_node_in_zone(zones, &nodes));
        timeline.obstacles.extend(zones);
    }
}

/// The controllers, and the nodes of the volume, or some if these are unknown.
fn relevant(mut pods: Vec<DriverPod>, timeline: &Timeline) -> Vec<DriverPod> {
    let (own, mut nodes) = (timeline.nodes(), 0..MAX_NODES);
    let is_own = |pod: &DriverPod| own.is_empty() || pod.node.as_ref().is_some_and(|node| own.contains(node));
    pods.retain(|pod| pod.has_pages() && (pod.component == CONTROLLER || is_own(pod) && nodes.next().is_some()));
    pods
}

/// The page of the first key for which the pod has a history.
async fn read_pod(cluster: &Cluster, pod: &DriverPod, keys: &[String]) -> Result<Option<String>, String> {
    for key in keys {
        let page = pod.page(cluster, &process::history(key)).await;
        let page = page.map_err(|error| error.for_user())?;
        if page.is_some() {
            return Ok(page);
        }
    }
    Ok(None)
}

/// Adds the page of a process, which may have no history of the volume.
fn add(timeline: &mut Timeline, source: &str, page: Result<Option<String>, String>) {
    let parse = |text: String| serde_json::from_str::<History>(&text);
    let read = page.and_then(|page| {
        let history = page.map(parse).transpose();
        history.map_err(|error| format!("the history of {source} is unreadable: {error}"))
    });
    match read {
        Ok(history) => {
            timeline.is_read = true;
            if let Some(history) = history {
                timeline.add_driver(source, history);
            }
        }
        Err(why) => timeline.unavailable.push(why),
    }
}
