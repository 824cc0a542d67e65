//! The objects of a scenario: a namespace, machines, classes, claims and pods.

use std::ops::Deref;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::api::text;
use crate::cloud;
use crate::cluster::Cluster;
use crate::machine::{DRIVER, Machine, OF, PLAIN};
use crate::namespace::{self, Namespace, Volume};
use crate::path::{cluster_scoped, core, storage};
use crate::release::Release;
use crate::wait::until;

/// Number of polls between two heartbeats of a machine.
const BEAT: u64 = 10;

/// The scenario's part of the cluster.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) cluster: &'a Cluster,
    /// The namespace, whose name is the prefix of all cluster-scoped names.
    namespace: Namespace<'a>,
    /// Including deleted ones.
    machines: Mutex<Vec<Machine>>,
}

impl<'a> Deref for Scene<'a> {
    type Target = Namespace<'a>;

    fn deref(&self) -> &Namespace<'a> {
        &self.namespace
    }
}

impl<'a> Scene<'a> {
    pub(crate) async fn open(cluster: &'a Cluster, name: &str) -> Self {
        Self {
            cluster,
            namespace: Namespace::open(&cluster.plane.api, name).await,
            machines: Mutex::default(),
        }
    }

    /// Adds a machine in the zone of this letter.
    pub(crate) async fn machine(&self, name: &str, letter: &str) -> Machine {
        self.machine_of(name, letter, PLAIN).await
    }

    /// Adds a machine of this type.
    pub(crate) async fn machine_of(&self, name: &str, letter: &str, kind: &str) -> Machine {
        self.machine_for(&self.cluster.release, name, (letter, kind)).await
    }

    /// Adds a machine with the node plugin of another release.
    pub(crate) async fn machine_for(&self, release: &Release, name: &str, kind: (&str, &str)) -> Machine {
        let name = format!("{}-{name}", self.name);
        let machine = Machine::join((self.cluster, release), &self.name, &name, kind).await;
        self.machines.lock().unwrap().push(machine.clone());
        machine
    }

    /// Creates a StorageClass with these parameters and returns its name; `more` overrides fields.
    pub(crate) async fn class(&self, name: &str, parameters: Value, more: Value) -> String {
        let name = format!("{}-{name}", self.name);
        let class = json!({
            "metadata": {"name": name},
            "provisioner": DRIVER,
            "parameters": parameters,
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowVolumeExpansion": true,
        });
        self.api.create(&storage("storageclasses"), &with(class, more)).await;
        name
    }

    /// Creates a ReadWriteOnce claim of 20 GiB; `more` overrides fields.
    pub(crate) async fn claim(&self, name: &str, class: &str, more: Value) {
        let claim = namespace::claim(name, class);
        let path = core(&self.name, "persistentvolumeclaims");
        self.api.create(&path, &with(claim, more)).await;
    }

    /// Creates a machine, and the pod `app` there, which uses the new claim `data`.
    pub(crate) async fn pod_with_claim(&self) -> Machine {
        let machine = self.machine("one", "a").await;
        let class = self.class("one", json!({"type": "cloud_essd"}), json!({})).await;
        self.claim("data", &class, json!({})).await;
        self.pod("app", &["data"], json!({})).await;
        machine
    }

    /// Creates a pod on one of the scenario's machines that uses these claims; `more` overrides fields.
    pub(crate) async fn pod(&self, name: &str, claims: &[&str], more: Value) {
        let mut pod = json!({
            "metadata": {"name": name},
            "spec": {
                "nodeSelector": {OF: self.name},
                "tolerations": [{"key": OF, "operator": "Exists"}],
                "automountServiceAccountToken": false,
                "containers": [{"name": "c", "image": "none"}],
            },
        });
        namespace::mount(&mut pod, claims);
        self.api.create(&core(&self.name, "pods"), &with(pod, more)).await;
    }

    /// Creates a pod that uses this claim, and waits until the volume is attached to exactly this machine.
    pub(crate) async fn attached_pod(&self, name: &str, claim: &str, machine: &Machine) -> Volume {
        self.pod(name, &[claim], json!({})).await;
        let volume = self.bound(claim).await;
        self.attached(&volume, &[machine]).await;
        volume
    }

    /// Deletes a pod immediately: there is no kubelet to terminate it.
    pub(crate) async fn end(&self, pod: &str) {
        self.api.force_delete(&self.path("pods", pod)).await;
    }

    /// The nodes to which the volume is attached according to Kubernetes.
    pub(crate) async fn nodes_of(&self, volume: &Volume) -> Vec<String> {
        let all = self.api.list(&storage("volumeattachments")).await;
        let of = all
            .iter()
            .filter(|a| a["spec"]["source"]["persistentVolumeName"] == volume.name.as_str());
        let attached = of.filter(|a| a["status"]["attached"] == true);
        attached.map(|a| text(a, "/spec/nodeName").to_owned()).collect()
    }

    /// Waits until the volume is attached to exactly these machines, in Kubernetes and in the cloud.
    pub(crate) async fn attached(&self, volume: &Volume, machines: &[&Machine]) {
        let mut nodes: Vec<_> = machines.iter().map(|m| m.name.clone()).collect();
        let mut instances: Vec<_> = machines.iter().map(|m| m.instance.clone()).collect();
        nodes.sort();
        instances.sort();
        let what = format!("{} ({}) is attached to {nodes:?}", volume.name, volume.disk);
        let mut polls = 0;
        until(&what, async || {
            self.heartbeat(&mut polls).await;
            let mut reported = self.nodes_of(volume).await;
            reported.sort();
            let disk = cloud::disk(&self.cluster.cloud, &volume.disk).await?;
            let mut actual = cloud::holders(&disk);
            actual.sort();
            (reported == nodes && actual == instances).then_some(())
        })
        .await;
    }

    /// The disk of a volume in the cloud.
    pub(crate) async fn disk(&self, volume: &Volume) -> Value {
        let disk = cloud::disk(&self.cluster.cloud, &volume.disk).await;
        disk.unwrap_or_else(|| panic!("{volume:?} has no disk"))
    }

    /// Deletes pods and claims, and waits until the volumes are deleted in the cluster and in the cloud.
    pub(crate) async fn close(&self, pods: &[&str], claims: &[&str], volumes: &[&Volume]) {
        for pod in pods {
            self.end(pod).await;
        }
        for claim in claims {
            self.api.delete(&self.path("persistentvolumeclaims", claim)).await;
        }
        for volume in volumes {
            self.wait_deleted(volume).await;
        }
    }

    /// Waits until the volume is deleted in the cluster and in the cloud.
    pub(crate) async fn wait_deleted(&self, volume: &Volume) {
        let path = cluster_scoped(&format!("persistentvolumes/{}", volume.name));
        let what = format!("{} and its disk {} are deleted", volume.name, volume.disk);
        let mut polls = 0;
        until(&what, async || {
            self.heartbeat(&mut polls).await;
            let exists = cloud::disk(&self.cluster.cloud, &volume.disk).await.is_some();
            (!exists && self.api.get(&path).await.is_none()).then_some(())
        })
        .await;
    }

    /// Updates the Node as kubelet does periodically: a heartbeat, and no volume in use. Without it after an attach,
    /// Kubernetes delays a detach for six minutes.
    async fn heartbeat(&self, polls: &mut u64) {
        *polls += 1;
        if !polls.is_multiple_of(BEAT) {
            return;
        }
        let machines = self.machines.lock().unwrap().clone();
        for machine in machines {
            machine.heartbeat(self.api, *polls).await;
        }
    }
}

/// The object with the fields of `more`: objects are merged, other values replaced.
pub(crate) fn with(object: Value, more: Value) -> Value {
    match (object, more) {
        (Value::Object(mut object), Value::Object(more)) => {
            for (key, value) in more {
                let old = object.remove(&key).unwrap_or_default();
                object.insert(key, with(old, value));
            }
            Value::Object(object)
        }
        (object, Value::Null) => object,
        (_, more) => more,
    }
}
