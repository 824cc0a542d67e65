//! What a scenario has for itself: a namespace, claims, pods that wait for commands; and the words to look at them.

use std::sync::Mutex;

use serde_json::{Value, json};

use crate::api::Api;
use crate::cloud;
use crate::cluster::{Cluster, INSTANCE, SECOND_INSTANCE};
use crate::common::process::Ended;
use crate::images::SHELL;
use crate::path::{core, storage, whole};
use crate::patience::until;

/// What a pod runs that waits for commands, and ends when it is told to.
const WAIT: &str = "trap 'exit 0' TERM; sleep 2147483647 & wait";

/// One scenario's part of the cluster.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) api: &'a Api,
    /// The namespace.
    pub(crate) name: String,
    /// Its volumes and disks, for whoever reads the logs.
    pub(crate) words: Mutex<Vec<String>>,
}

/// A volume that a claim is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Volume {
    /// Of the PersistentVolume.
    pub(crate) name: String,
    /// The disk's id.
    pub(crate) disk: String,
}

impl<'a> Scene<'a> {
    pub(crate) async fn open(cluster: &'a Cluster, name: &str) -> Self {
        let scene = Self {
            cluster,
            api: &cluster.plane.api,
            name: name.to_owned(),
            words: Mutex::new(vec![name.to_owned()]),
        };
        let namespace = json!({"metadata": {"name": name}});
        scene.api.create("/api/v1/namespaces", &namespace).await;
        let account = core(name, "serviceaccounts/default");
        let what = format!("namespace {name} takes pods");
        until(&what, async || scene.api.get(&account).await).await;
        scene
    }

    /// The path of an object of the core group in the namespace.
    pub(crate) fn path(&self, kind: &str, name: &str) -> String {
        core(&self.name, &format!("{kind}/{name}"))
    }

    /// A claim of this class, for one node, as large as a disk is at least.
    pub(crate) fn claim(name: &str, class: &str) -> Value {
        json!({
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name},
            "spec": {
                "storageClassName": class,
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "20Gi"}},
            },
        })
    }

    /// What a pod is that waits for commands and has these claims, each in the root by its name.
    pub(crate) fn shell(name: &str, claims: &[&str]) -> Value {
        let volumes = claims
            .iter()
            .map(|claim| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}}));
        let mounts = claims
            .iter()
            .map(|claim| json!({"name": claim, "mountPath": format!("/{claim}")}));
        json!({
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "containers": [{
                    "name": "c",
                    "image": SHELL,
                    "imagePullPolicy": "Never",
                    "command": ["sh", "-c", WAIT],
                    "volumeMounts": mounts.collect::<Vec<_>>(),
                }],
                "volumes": volumes.collect::<Vec<_>>(),
            },
        })
    }

    /// Makes an object of the core group.
    pub(crate) async fn make(&self, kind: &str, object: &Value) {
        self.api.create(&core(&self.name, kind), object).await;
    }

    /// Makes a claim of this class.
    pub(crate) async fn want(&self, claim: &str, class: &str) {
        self.make("persistentvolumeclaims", &Self::claim(claim, class))
            .await;
    }

    /// Starts a pod that waits for commands, and waits until it does.
    pub(crate) async fn start(&self, pod: &str, claims: &[&str]) {
        self.make("pods", &Self::shell(pod, claims)).await;
        self.running(pod).await;
    }

    /// Waits until the pod is ready.
    pub(crate) async fn running(&self, pod: &str) -> Value {
        let path = self.path("pods", pod);
        until(&format!("{}/{pod} runs", self.name), async || {
            let pod = self.api.get(&path).await?;
            let conditions = pod["status"]["conditions"].as_array()?.iter();
            let mut ready = conditions.filter(|c| c["type"] == "Ready" && c["status"] == "True");
            let going = pod["metadata"]["deletionTimestamp"].is_null();
            (going && ready.next().is_some()).then_some(pod)
        })
        .await
    }

    /// Runs a script in the pod.
    pub(crate) async fn try_sh(&self, pod: &str, script: &str) -> Ended {
        let args = [
            "exec",
            "--namespace",
            &self.name,
            pod,
            "--",
            "sh",
            "-c",
            script,
        ];
        self.cluster.plane.kubectl(args).await
    }

    /// Runs one that must do well; what it printed.
    pub(crate) async fn sh(&self, pod: &str, script: &str) -> String {
        let ended = self.try_sh(pod, script).await;
        assert_eq!(
            ended.code,
            Some(0),
            "{}/{pod}: {script}: {}{}",
            self.name,
            ended.stdout,
            ended.stderr
        );
        ended.stdout.trim().to_owned()
    }

    /// Ends a pod as a user does, and waits until it is gone.
    pub(crate) async fn end(&self, pod: &str) {
        let path = self.path("pods", pod);
        self.api.delete(&path).await;
        until(&format!("{}/{pod} is gone", self.name), async || {
            self.api.get(&path).await.is_none().then_some(())
        })
        .await;
    }

    /// Waits until the claim has its volume.
    pub(crate) async fn bound(&self, claim: &str) -> Volume {
        let path = self.path("persistentvolumeclaims", claim);
        let name = until(&format!("{}/{claim} is bound", self.name), async || {
            let claim = self.api.get(&path).await?;
            let bound = claim["status"]["phase"] == "Bound";
            bound.then(|| text(&claim, "/spec/volumeName").to_owned())
        })
        .await;
        let volume = self
            .api
            .get(&whole(&format!("persistentvolumes/{name}")))
            .await;
        let volume = volume.expect("a claim is bound to what is there");
        let disk = text(&volume, "/spec/csi/volumeHandle").to_owned();
        self.words
            .lock()
            .unwrap()
            .extend([name.clone(), disk.clone()]);
        Volume { name, disk }
    }

    /// Waits until the volume is attached nowhere, for Kubernetes and in the cloud.
    pub(crate) async fn detached(&self, volume: &Volume) {
        let what = format!("{} ({}) is attached nowhere", volume.name, volume.disk);
        until(&what, async || {
            let all = self.api.list(&storage("volumeattachments")).await;
            let believed = all
                .iter()
                .any(|a| a["spec"]["source"]["persistentVolumeName"] == volume.name.as_str());
            let disk = cloud::disk(&self.cluster.cloud, &volume.disk).await?;
            (!believed && cloud::holders(&disk).is_empty()).then_some(())
        })
        .await;
    }

    /// Deletes the claims, and waits until nothing of their volumes is left, in the cluster, in the cloud and on the
    /// machine.
    pub(crate) async fn close(&self, claims: &[&str]) {
        for claim in claims {
            let volume = self.bound(claim).await;
            self.api
                .delete(&self.path("persistentvolumeclaims", claim))
                .await;
            self.gone(&volume).await;
        }
    }

    /// Waits until nothing of the volume is left.
    pub(crate) async fn gone(&self, volume: &Volume) {
        let path = whole(&format!("persistentvolumes/{}", volume.name));
        let what = format!("{} and its disk {} are gone", volume.name, volume.disk);
        until(&what, async || {
            let disk = cloud::disk(&self.cluster.cloud, &volume.disk).await;
            (disk.is_none() && self.api.get(&path).await.is_none()).then_some(())
        })
        .await;
        let serial = volume.disk.trim_start_matches("d-");
        for instance in [INSTANCE, SECOND_INSTANCE] {
            let of_instance = self.cluster.devices().join("nodes").join(instance);
            let link = of_instance.join(serial);
            assert!(!link.is_symlink(), "{} is still there", link.display());
        }
    }

    /// The messages of the events about an object with this reason.
    pub(crate) async fn told(&self, object: &str, reason: &str, words: &str) -> String {
        until(
            &format!("{}: {object} is told {reason} with {words:?}", self.name),
            async || {
                let events = self.api.list(&core(&self.name, "events")).await;
                let of = events
                    .iter()
                    .filter(|e| e["involvedObject"]["name"] == object && e["reason"] == reason);
                let mut told = of.map(|e| e["message"].as_str().unwrap_or_default().to_owned());
                told.find(|message| message.contains(words))
            },
        )
        .await
    }
}

/// A text that the API always gives.
pub(crate) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no {pointer} in {object}"))
}
