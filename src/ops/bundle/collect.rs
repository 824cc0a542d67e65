//! Reads pods of the driver with their pages and logs, events, and objects through the API server.

use std::collections::BTreeSet;
use std::io::Write;

use serde_json::{Value, json};

use super::archive::{Archive, file_name};
use super::flags::Flags;
use super::object::{event, included, is_of_driver, uses_volume};
use super::pages::pages;
use super::pod::{self, KnownSettings};
use crate::base::join_all;
use crate::cluster::pod_report::PodReport;
use crate::cluster::volume_history::VolumeHistory;
use crate::cluster::{self, Cluster, Error};

/// Most pods of nodes that are read.
const MAX_NODES: usize = 50;

/// Pods that are read in parallel, which limits memory.
const PARALLEL: usize = 8;

const STORAGE: &str = "/apis/storage.k8s.io/v1";

/// A source and its content, or why there is none. The name of the member is first.
type Read = (String, String, Result<String, String>);

pub(super) async fn collect(
    args: &Flags,
    settings: &KnownSettings,
    archive: &mut Archive<impl Write>,
) -> anyhow::Result<()> {
    let cluster = args.processes.cluster.require().await?;
    let version = cluster.version().await;
    add(archive, "kubernetes.json", "/version", version)?;
    classes(args, &cluster, archive).await?;
    let mut keys: BTreeSet<String> = args.volume.iter().cloned().collect();
    let mut nodes = BTreeSet::new();
    for volume in &args.volume {
        match VolumeHistory::find(&cluster, &args.processes.driver.driver_name, volume).await {
            Ok(history) => {
                keys.extend(history.disk.clone());
                keys.extend(history.persistent_volume.clone());
                nodes.extend(objects_of_volume(args, &cluster, volume, &history, archive).await?);
            }
            Err(error) => {
                archive.add_missing(&format!("volume {volume}"), &error.for_user());
                // A user with rights in one namespace can read the claim, but not its PersistentVolume.
                if let Some((namespace, name)) = volume.split_once('/') {
                    claim(&cluster, volume, namespace, name, archive).await?;
                }
            }
        }
    }
    let keys: Vec<String> = keys.into_iter().collect();
    let pods = pods_of_driver(args, &cluster, archive).await;
    let mut namespaces: BTreeSet<String> = pods.iter().map(|pod| pod.namespace.clone()).collect();
    namespaces.extend(args.processes.namespace.clone());
    if namespaces.is_empty() {
        let reason = "the namespace of the driver is unknown; set --namespace";
        archive.add_missing("events of the driver", reason);
    }
    let names: Vec<String> = pods.iter().map(|pod| pod.name.clone()).collect();
    for namespace in namespaces {
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let events = cluster.objects(&path).await;
        let name = format!("events/{namespace}.json");
        add_list(archive, &name, &path, events, |one| event(one, &names))?;
    }
    let pods = selected(pods, &nodes, archive);
    for pods in pods.chunks(PARALLEL) {
        let read = pods.iter().map(|pod| read_pod(args, &cluster, pod, &keys, settings));
        for (name, source, content) in join_all(read).await.into_iter().flatten() {
            match content {
                Ok(content) => archive.add(&name, &source, &content)?,
                Err(reason) => archive.add_missing(&source, &reason),
            }
        }
    }
    Ok(())
}

/// Empty if they cannot be listed.
async fn pods_of_driver(args: &Flags, cluster: &Cluster, archive: &mut Archive<impl Write>) -> Vec<PodReport> {
    let namespace = args.processes.namespace.as_deref();
    let pods = PodReport::list(cluster, namespace).await;
    let missing = match &pods {
        Ok(pods) if !pods.is_empty() => None,
        Ok(_) => Some("no pod has the label app.kubernetes.io/name=diskplugin".to_owned()),
        Err(error @ Error::Forbidden { .. }) if namespace.is_none() => {
            let reason = error.for_user();
            Some(format!(
                "{reason}, or set --namespace to list only the pods of one namespace"
            ))
        }
        Err(error) => Some(error.for_user()),
    };
    if let Some(reason) = missing {
        archive.add_missing("pods of the driver", &reason);
    }
    pods.unwrap_or_default()
}

/// The controllers, and nodes up to a limit: first those where a named volume is attached.
fn selected(pods: Vec<PodReport>, attached: &BTreeSet<String>, archive: &mut Archive<impl Write>) -> Vec<PodReport> {
    let is_node = |pod: &PodReport| pod.component.as_deref() == Some("node");
    let (mut nodes, mut selected): (Vec<_>, Vec<_>) = pods.into_iter().partition(is_node);
    nodes.sort_by_key(|pod| {
        let node = pod.node.as_ref();
        !node.is_some_and(|node| attached.contains(node))
    });
    let omitted = nodes.split_off(nodes.len().min(MAX_NODES));
    for pod in omitted {
        let source = format!("pod {}/{}", pod.namespace, pod.name);
        let reason = format!("only {MAX_NODES} pods of nodes are read; name a volume of its node");
        archive.add_missing(&source, &reason);
    }
    selected.extend(nodes);
    selected
}

async fn classes(args: &Flags, cluster: &Cluster, archive: &mut Archive<impl Write>) -> anyhow::Result<()> {
    let snapshots = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses";
    for (path, name) in [
        (format!("{STORAGE}/csidrivers"), "csidrivers"),
        (format!("{STORAGE}/storageclasses"), "storageclasses"),
        (format!("{STORAGE}/csinodes"), "csinodes"),
        (snapshots.to_owned(), "volumesnapshotclasses"),
    ] {
        let mut objects = cluster.objects(&path).await;
        if let Ok(Some(objects)) = &mut objects {
            objects.retain(|object| is_of_driver(object, args.processes.driver.driver_name.as_str()));
        }
        add_list(archive, &format!("objects/{name}.json"), &path, objects, included)?;
    }
    Ok(())
}

/// Adds the objects of a volume. The result has the nodes that it is attached to.
async fn objects_of_volume(
    args: &Flags,
    cluster: &Cluster,
    volume: &str,
    history: &VolumeHistory,
    archive: &mut Archive<impl Write>,
) -> anyhow::Result<Vec<String>> {
    let (folder, mut nodes) = (folder(volume), Vec::new());
    if history.persistent_volume.is_none() && history.claim.is_none() {
        archive.add_missing(&format!("volume {volume}"), "Kubernetes does not have it");
    }
    if let Some(name) = &history.persistent_volume {
        let object = cluster.object("/api/v1/persistentvolumes", name).await;
        let source = format!("PersistentVolume {name}");
        add(archive, &format!("{folder}/persistentvolume.json"), &source, object)?;
        let path = format!("{STORAGE}/volumeattachments");
        let mut attachments = cluster.objects(&path).await;
        if let Ok(Some(objects)) = &mut attachments {
            objects.retain(|one| uses_volume(one, args.processes.driver.driver_name.as_str(), name));
            let attached = objects.iter().filter_map(|one| one.pointer("/spec/nodeName"));
            nodes.extend(attached.filter_map(Value::as_str).map(str::to_owned));
        }
        let member = format!("{folder}/volumeattachments.json");
        add_list(archive, &member, &path, attachments, included)?;
    }
    if let Some((namespace, name)) = &history.claim {
        claim(cluster, volume, namespace, name, archive).await?;
    }
    Ok(nodes)
}

async fn claim(
    cluster: &Cluster,
    volume: &str,
    namespace: &str,
    name: &str,
    archive: &mut Archive<impl Write>,
) -> anyhow::Result<()> {
    let collection = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims");
    let object = cluster.object(&collection, name).await;
    let source = format!("PersistentVolumeClaim {namespace}/{name}");
    let member = format!("{}/persistentvolumeclaim.json", folder(volume));
    add(archive, &member, &source, object)
}

/// The folder of the objects of a volume.
fn folder(volume: &str) -> String {
    format!("volumes/{}", file_name(volume))
}

async fn read_pod(
    args: &Flags,
    cluster: &Cluster,
    pod: &PodReport,
    keys: &[String],
    settings: &KnownSettings,
) -> Vec<Read> {
    let folder = format!("pods/{}/{}", pod.namespace, pod.name);
    let source = format!("pod {}/{}", pod.namespace, pod.name);
    let report = pod::pod(pod, settings);
    let report = report.map(|report| format!("{report:#}"));
    let report = report.map_err(|error| error.to_string());
    let mut read = vec![(format!("{folder}/pod.json"), source.clone(), report)];
    for container in &pod.containers {
        let name = &container.name;
        if !pod::is_of_chart(name) {
            let reason = "the container is not one of the chart".to_owned();
            read.push((folder.clone(), format!("log of {name}, {source}"), Err(reason)));
            continue;
        }
        for is_previous in [false, true] {
            if is_previous && container.restarts == 0 {
                continue;
            }
            let suffix = if is_previous { "-previous" } else { "" };
            let log = pod.log(cluster, name, args.since, is_previous).await;
            let member = format!("{folder}/log-{name}{suffix}.txt");
            let source = format!("log of {name}{suffix}, {source}");
            let log = log.map_err(|error| error.for_user());
            let gone = || "the pod does not exist any more".to_owned();
            read.push((member, source, log.and_then(|log| log.ok_or_else(gone))));
        }
    }
    let Some(http) = &pod.http else {
        let reason = "the container diskplugin has no flag --http-address".to_owned();
        read.push((folder, format!("pages of {source}"), Err(reason)));
        return read;
    };
    for (path, name, is_optional) in pages(keys) {
        let content = match http.page(cluster, &path).await {
            Ok(Some(text)) => Ok(text),
            Ok(None) if is_optional => continue,
            Ok(None) => Err("it does not exist".to_owned()),
            Err(error) => Err(error.for_user()),
        };
        read.push((format!("{folder}/{name}"), format!("{path} of {source}"), content));
    }
    read
}

fn add(
    archive: &mut Archive<impl Write>,
    name: &str,
    source: &str,
    object: cluster::Result<Option<Value>>,
) -> anyhow::Result<()> {
    let document = object.map(|object| object.as_ref().map(included));
    write(archive, name, source, document)
}

fn add_list(
    archive: &mut Archive<impl Write>,
    name: &str,
    source: &str,
    objects: cluster::Result<Option<Vec<Value>>>,
    included: impl Fn(&Value) -> Value,
) -> anyhow::Result<()> {
    let list = |objects: Vec<Value>| {
        let objects: Vec<_> = objects.iter().map(included).collect();
        json!({"items": objects})
    };
    let document = objects.map(|objects| objects.map(list));
    write(archive, name, source, document)
}

fn write(
    archive: &mut Archive<impl Write>,
    name: &str,
    source: &str,
    document: cluster::Result<Option<Value>>,
) -> anyhow::Result<()> {
    match document {
        Ok(Some(document)) => archive.add_json(name, source, &document)?,
        Ok(None) => archive.add_missing(source, "it does not exist"),
        Err(error) => archive.add_missing(source, &error.for_user()),
    }
    Ok(())
}
