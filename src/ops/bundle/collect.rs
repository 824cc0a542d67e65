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

/// Name of a member, its source, and its content, or why there is none.
type Read = (String, String, Result<Option<String>, String>);

/// The members of the archive that are read through the API server.
#[derive(Debug)]
pub(super) struct Collection<'a, W: Write> {
    args: &'a Flags,
    cluster: Cluster,
    archive: &'a mut Archive<W>,
}

impl<'a, W: Write> Collection<'a, W> {
    pub(super) async fn new(args: &'a Flags, archive: &'a mut Archive<W>) -> anyhow::Result<Self> {
        let cluster = args.processes.cluster.require().await?;
        Ok(Self { args, cluster, archive })
    }

    pub(super) async fn run(mut self, settings: &KnownSettings) -> anyhow::Result<()> {
        let args = self.args;
        let driver = &args.processes.driver.driver_name;
        let version = self.cluster.version().await;
        self.archive.add_read("kubernetes.json", "/version", object(version))?;
        self.add_classes().await?;
        let mut keys: BTreeSet<String> = args.volume.iter().cloned().collect();
        let mut nodes = BTreeSet::new();
        for volume in &args.volume {
            match VolumeHistory::find(&self.cluster, driver, volume).await {
                Ok(history) => {
                    keys.extend(history.disk.clone());
                    keys.extend(history.persistent_volume.clone());
                    nodes.extend(self.add_volume(volume, &history).await?);
                }
                Err(error) => {
                    self.archive.add_missing(&format!("volume {volume}"), &error.for_user());
                    // A user with rights in one namespace can read the claim, but not its PersistentVolume.
                    if let Some((namespace, name)) = volume.split_once('/') {
                        self.add_claim(volume, namespace, name).await?;
                    }
                }
            }
        }
        let keys: Vec<String> = keys.into_iter().collect();
        let pods = self.pods().await;
        let mut namespaces: BTreeSet<String> = pods.iter().map(|pod| pod.namespace.clone()).collect();
        namespaces.extend(args.processes.namespace.clone());
        if namespaces.is_empty() {
            let reason = "the namespace of the driver is unknown; set --namespace";
            self.archive.add_missing("events of the driver", reason);
        }
        let names: Vec<String> = pods.iter().map(|pod| pod.name.clone()).collect();
        for namespace in namespaces {
            let path = format!("/api/v1/namespaces/{namespace}/events");
            let events = list(self.cluster.objects(&path).await, |one| event(one, &names));
            self.archive
                .add_read(&format!("events/{namespace}.json"), &path, events)?;
        }
        for pods in self.selected(pods, &nodes).chunks(PARALLEL) {
            let read = pods
                .iter()
                .map(|pod| read_pod(args, &self.cluster, pod, &keys, settings));
            for (name, source, content) in join_all(read).await.into_iter().flatten() {
                self.archive.add_read(&name, &source, content)?;
            }
        }
        Ok(())
    }

    /// Empty if they cannot be listed.
    async fn pods(&mut self) -> Vec<PodReport> {
        let namespace = self.args.processes.namespace.as_deref();
        let pods = PodReport::list(&self.cluster, namespace).await;
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
            self.archive.add_missing("pods of the driver", &reason);
        }
        pods.unwrap_or_default()
    }

    /// The controllers, and nodes up to a limit: first those where a named volume is attached.
    fn selected(&mut self, pods: Vec<PodReport>, attached: &BTreeSet<String>) -> Vec<PodReport> {
        let is_node = |pod: &PodReport| pod.component.as_deref() == Some("node");
        let (mut nodes, mut selected): (Vec<_>, Vec<_>) = pods.into_iter().partition(is_node);
        nodes.sort_by_key(|pod| !pod.node.as_ref().is_some_and(|node| attached.contains(node)));
        for pod in nodes.split_off(nodes.len().min(MAX_NODES)) {
            let source = format!("pod {}/{}", pod.namespace, pod.name);
            let reason = format!("only {MAX_NODES} pods of nodes are read; name a volume of its node");
            self.archive.add_missing(&source, &reason);
        }
        selected.extend(nodes);
        selected
    }

    async fn add_classes(&mut self) -> anyhow::Result<()> {
        let snapshots = "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses";
        for (path, name) in [
            (format!("{STORAGE}/csidrivers"), "csidrivers"),
            (format!("{STORAGE}/storageclasses"), "storageclasses"),
            (format!("{STORAGE}/csinodes"), "csinodes"),
            (snapshots.to_owned(), "volumesnapshotclasses"),
        ] {
            let mut objects = self.cluster.objects(&path).await;
            if let Ok(Some(objects)) = &mut objects {
                objects.retain(|object| is_of_driver(object, self.args.processes.driver.driver_name.as_str()));
            }
            let objects = list(objects, included);
            self.archive.add_read(&format!("objects/{name}.json"), &path, objects)?;
        }
        Ok(())
    }

    /// Adds the objects of a volume. The result has the nodes that it is attached to.
    async fn add_volume(&mut self, volume: &str, history: &VolumeHistory) -> anyhow::Result<Vec<String>> {
        let (folder, mut nodes) = (folder(volume), Vec::new());
        if history.persistent_volume.is_none() && history.claim.is_none() {
            let source = format!("volume {volume}");
            self.archive.add_missing(&source, "Kubernetes does not have it");
        }
        if let Some(name) = &history.persistent_volume {
            let read = object(self.cluster.object("/api/v1/persistentvolumes", name).await);
            let source = format!("PersistentVolume {name}");
            self.archive
                .add_read(&format!("{folder}/persistentvolume.json"), &source, read)?;
            let path = format!("{STORAGE}/volumeattachments");
            let mut attachments = self.cluster.objects(&path).await;
            if let Ok(Some(objects)) = &mut attachments {
                objects.retain(|one| uses_volume(one, self.args.processes.driver.driver_name.as_str(), name));
                let attached = objects.iter().filter_map(|one| one.pointer("/spec/nodeName"));
                nodes.extend(attached.filter_map(Value::as_str).map(str::to_owned));
            }
            let member = format!("{folder}/volumeattachments.json");
            self.archive.add_read(&member, &path, list(attachments, included))?;
        }
        if let Some((namespace, name)) = &history.claim {
            self.add_claim(volume, namespace, name).await?;
        }
        Ok(nodes)
    }

    async fn add_claim(&mut self, volume: &str, namespace: &str, name: &str) -> anyhow::Result<()> {
        let collection = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims");
        let read = object(self.cluster.object(&collection, name).await);
        let source = format!("PersistentVolumeClaim {namespace}/{name}");
        let member = format!("{}/persistentvolumeclaim.json", folder(volume));
        Ok(self.archive.add_read(&member, &source, read)?)
    }
}

/// The folder of the objects of a volume.
fn folder(volume: &str) -> String {
    format!("volumes/{}", file_name(volume))
}

/// The included fields of an object as text.
fn object(read: cluster::Result<Option<Value>>) -> Result<Option<String>, String> {
    let read = read.map(|object| object.map(|object| format!("{:#}", included(&object))));
    read.map_err(|error| error.for_user())
}

/// The included fields of objects as text.
fn list(
    read: cluster::Result<Option<Vec<Value>>>,
    included: impl Fn(&Value) -> Value,
) -> Result<Option<String>, String> {
    let list = |objects: Vec<Value>| {
        let objects: Vec<_> = objects.iter().map(included).collect();
        format!("{:#}", json!({"items": objects}))
    };
    read.map(|objects| objects.map(list)).map_err(|error| error.for_user())
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
    let report = report.map(|report| Some(format!("{report:#}")));
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
            read.push((member, source, log.and_then(|log| log.ok_or_else(gone).map(Some))));
        }
    }
    let Some(http) = &pod.http else {
        let reason = "the container diskplugin has no flag --http-address".to_owned();
        read.push((folder, format!("pages of {source}"), Err(reason)));
        return read;
    };
    for (path, name, is_optional) in pages(keys) {
        let page = http.page(cluster, &path).await;
        if !(is_optional && matches!(page, Ok(None))) {
            let page = page.map_err(|error| error.for_user());
            read.push((format!("{folder}/{name}"), format!("{path} of {source}"), page));
        }
    }
    read
}
