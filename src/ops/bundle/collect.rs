//! Reads pods of the driver with their pages and logs, events, and objects through the API server.

use std::collections::BTreeSet;
use std::io::Write;

use serde_json::{Value, json};

use super::archive::{Archive, Read, file_name};
use super::flags::Flags;
use super::object::{event, included, is_of_driver, uses_volume};
use super::pages::read_pages;
use super::pod::{self, KnownSettings};
use crate::base::join_all;
use crate::cluster::driver_pods::{DriverPod, NODE};
use crate::cluster::volume_history::VolumeHistory;
use crate::cluster::{self, Cluster, Error};

/// Most pods of nodes that are read.
const MAX_NODES: usize = 50;

/// Pods that are read in parallel, which limits memory.
const PARALLEL: usize = 8;

/// The members of the archive that are read through the API server.
struct Collection<'a, W: Write> {
    args: &'a Flags,
    cluster: Cluster,
    archive: &'a mut Archive<W>,
}

/// Adds what the API server has of the driver and of the named volumes.
pub(super) async fn collect(
    args: &Flags,
    settings: &KnownSettings,
    archive: &mut Archive<impl Write>,
) -> anyhow::Result<()> {
    let driver = &args.processes.driver.driver_name;
    let cluster = args.processes.cluster.require().await?;
    let mut this = Collection { args, cluster, archive };
    let version = this.cluster.version().await;
    this.archive.add("kubernetes.json", "/version", text(version))?;
    for path in [
        "/apis/storage.k8s.io/v1/csidrivers",
        "/apis/storage.k8s.io/v1/storageclasses",
        "/apis/storage.k8s.io/v1/csinodes",
        "/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses",
    ] {
        let name = path.rsplit('/').next().unwrap_or_default();
        let member = format!("objects/{name}.json");
        this.add_list(&member, path, |one| is_of_driver(one, driver.as_str()), included)
            .await?;
    }
    let mut keys: BTreeSet<String> = args.volume.iter().cloned().collect();
    let mut nodes = BTreeSet::new();
    for volume in &args.volume {
        match VolumeHistory::find(&this.cluster, driver, volume).await {
            Ok(history) => {
                keys.extend(history.disk.clone());
                keys.extend(history.persistent_volume.clone());
                nodes.extend(this.add_volume(volume, &history).await?);
            }
            Err(error) => {
                this.archive.add_missing(&format!("volume {volume}"), &error.for_user());
                // A user with rights in one namespace can read the claim, but not its PersistentVolume.
                if let Some((namespace, name)) = volume.split_once('/') {
                    this.add_claim(volume, namespace, name).await?;
                }
            }
        }
    }
    let keys: Vec<String> = keys.into_iter().collect();
    let pods = this.pods().await;
    let mut namespaces: BTreeSet<String> = pods.iter().map(|pod| pod.namespace.clone()).collect();
    namespaces.extend(args.processes.namespace.clone());
    if namespaces.is_empty() {
        let reason = "the namespace of the driver is unknown; set --namespace";
        this.archive.add_missing("events of the driver", reason);
    }
    let names: Vec<String> = pods.iter().map(|pod| pod.name.clone()).collect();
    for namespace in namespaces {
        let path = format!("/api/v1/namespaces/{namespace}/events");
        let member = format!("events/{namespace}.json");
        this.add_list(&member, &path, |_| true, |one| event(one, &names))
            .await?;
    }
    for pods in this.selected(pods, &nodes).chunks(PARALLEL) {
        let read = pods
            .iter()
            .map(|pod| read_pod(args, &this.cluster, pod, &keys, settings));
        for (name, source, content) in join_all(read).await.into_iter().flatten() {
            this.archive.add(&name, &source, content)?;
        }
    }
    Ok(())
}

impl<W: Write> Collection<'_, W> {
    /// Empty if they cannot be listed.
    async fn pods(&mut self) -> Vec<DriverPod> {
        let namespace = self.args.processes.namespace.as_deref();
        let pods = DriverPod::list(&self.cluster, namespace).await;
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
    fn selected(&mut self, pods: Vec<DriverPod>, attached: &BTreeSet<String>) -> Vec<DriverPod> {
        let is_node = |pod: &DriverPod| pod.component == NODE;
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

    /// Adds the objects of a volume. The result has the nodes that it is attached to.
    async fn add_volume(&mut self, volume: &str, history: &VolumeHistory) -> anyhow::Result<Vec<String>> {
        let driver = self.args.processes.driver.driver_name.as_str();
        let mut attachments = Vec::new();
        if history.persistent_volume.is_none() && history.claim.is_none() {
            let source = format!("volume {volume}");
            self.archive.add_missing(&source, "Kubernetes does not have it");
        }
        if let Some(name) = &history.persistent_volume {
            let read = text(self.cluster.object("/api/v1/persistentvolumes", name).await);
            let source = format!("PersistentVolume {name}");
            self.archive.add(&member(volume, "persistentvolume"), &source, read)?;
            let path = "/apis/storage.k8s.io/v1/volumeattachments";
            let list = member(volume, "volumeattachments");
            let list = self.add_list(&list, path, |one| uses_volume(one, driver, name), included);
            attachments = list.await?;
        }
        if let Some((namespace, name)) = &history.claim {
            self.add_claim(volume, namespace, name).await?;
        }
        let nodes = attachments.iter().filter_map(|one| one["spec"]["nodeName"].as_str());
        Ok(nodes.map(str::to_owned).collect())
    }

    async fn add_claim(&mut self, volume: &str, namespace: &str, name: &str) -> anyhow::Result<()> {
        let collection = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims");
        let read = text(self.cluster.object(&collection, name).await);
        let source = format!("PersistentVolumeClaim {namespace}/{name}");
        let member = member(volume, "persistentvolumeclaim");
        Ok(self.archive.add(&member, &source, read)?)
    }

    /// Adds the objects of a collection that are kept, and returns them.
    async fn add_list(
        &mut self,
        member: &str,
        path: &str,
        keep: impl Fn(&Value) -> bool,
        included: impl Fn(&Value) -> Value,
    ) -> anyhow::Result<Vec<Value>> {
        let mut read = self.cluster.objects(path).await.map_err(|error| error.for_user());
        if let Ok(Some(objects)) = &mut read {
            objects.retain(keep);
        }
        let all = |objects: &Vec<Value>| objects.iter().map(&included).collect::<Vec<_>>();
        let text = |objects| format!("{:#}", json!({"items": all(objects)}));
        let content = read.as_ref().map(|objects| objects.as_ref().map(text));
        self.archive.add(member, path, content.map_err(String::clone))?;
        Ok(read.ok().flatten().unwrap_or_default())
    }
}

/// The name of a member with objects of a volume.
fn member(volume: &str, name: &str) -> String {
    format!("volumes/{}/{name}.json", file_name(volume))
}

/// The included fields of an object.
fn text(read: cluster::Result<Option<Value>>) -> Result<Option<String>, String> {
    let read = read.map(|object| object.map(|object| format!("{:#}", included(&object))));
    read.map_err(|error| error.for_user())
}

async fn read_pod(
    args: &Flags,
    cluster: &Cluster,
    pod: &DriverPod,
    keys: &[String],
    settings: &KnownSettings,
) -> Vec<Read> {
    let source = format!("pod {}/{}", pod.namespace, pod.name);
    let folder = format!("pods/{}/{}", pod.namespace, pod.name);
    let object = serde_json::to_value(&pod.object).expect("objects of Kubernetes serialize");
    let object = pod::pod(&object, settings);
    let mut read = vec![(
        format!("{folder}/pod.json"),
        source.clone(),
        Ok(Some(format!("{object:#}"))),
    )];
    let of = |pointers: [&'static str; 2]| {
        let arrays = pointers
            .into_iter()
            .filter_map(|pointer| object.pointer(pointer)?.as_array());
        arrays.flatten().filter_map(|one| Some((one["name"].as_str()?, one)))
    };
    let restarted = of(["/status/initContainerStatuses", "/status/containerStatuses"]);
    let restarted = restarted.filter(|(_, status)| status["restartCount"] != 0);
    let restarted: BTreeSet<&str> = restarted.map(|(name, _)| name).collect();
    for (name, _) in of(["/spec/initContainers", "/spec/containers"]) {
        if !pod::is_of_chart(name) {
            let reason = "the container is not one of the chart".to_owned();
            read.push((folder.clone(), format!("log of {name}, {source}"), Err(reason)));
            continue;
        }
        for (is_previous, suffix) in [(false, ""), (true, "-previous")] {
            if is_previous && !restarted.contains(name) {
                continue;
            }
            let log = pod.log(cluster, name, args.since, is_previous).await;
            let member = format!("{folder}/log-{name}{suffix}.txt");
            let source = format!("log of {name}{suffix}, {source}");
            let log = log.map_err(|error| error.for_user());
            let gone = || "the pod does not exist any more".to_owned();
            read.push((member, source, log.and_then(|log| log.ok_or_else(gone).map(Some))));
        }
    }
    if !pod.has_pages() {
        let reason = "no container runs, or the container diskplugin has no flag --http-address".to_owned();
        read.push((folder, format!("pages of {source}"), Err(reason)));
        return read;
    }
    let get = async |path: &str| {
        let page = pod.page(cluster, path).await;
        page.map_err(|error| error.for_user())
    };
    read.extend(read_pages(&folder, &format!("{source}: "), keys, get).await);
    read
}
