//! The objects of a scenario: a namespace, claims, and pods that wait for commands.

use std::ops::Deref;

use serde_json::{Value, json};

use crate::cloud;
use crate::cluster::{Cluster, INSTANCE, SECOND_INSTANCE};
use crate::common::process::Ended;
use crate::images::SHELL;
use crate::namespace::{self, Namespace, Volume};
use crate::path::{cluster_scoped, core, storage};
use crate::wait::until;

/// The command of a pod that waits for commands until SIGTERM.
const WAIT: &str = "trap 'exit 0' TERM; sleep 2147483647 & wait";

/// The scenario's part of the cluster.
#[derive(Debug)]
pub(crate) struct Scene<'a> {
    pub(crate) cluster: &'a Cluster,
    namespace: Namespace<'a>,
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
        }
    }

    /// A pod that waits for commands, with these claims, each mounted at `/NAME`.
    pub(crate) fn shell(name: &str, claims: &[&str]) -> Value {
        let mut pod = json!({
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {
                "automountServiceAccountToken": false,
                "enableServiceLinks": false,
                "containers": [{
                    "name": "c",
                    "image": SHELL,
                    "imagePullPolicy": "Never",
                    "command": ["sh", "-c", WAIT],
                }],
            },
        });
        namespace::mount(&mut pod, claims);
        pod
    }

    /// Creates an object of the core group.
    pub(crate) async fn make(&self, kind: &str, object: &Value) {
        self.api.create(&core(&self.name, kind), object).await;
    }

    /// Creates a claim of this class.
    pub(crate) async fn want(&self, claim: &str, class: &str) {
        let claim = namespace::claim(claim, class);
        self.make("persistentvolumeclaims", &claim).await;
    }

    /// Creates a pod that waits for commands, and waits until it is ready.
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
            let is_kept = pod["metadata"]["deletionTimestamp"].is_null();
            (is_kept && ready.next().is_some()).then_some(pod)
        })
        .await
    }

    /// Waits until the pod is ready on this node.
    pub(crate) async fn running_on(&self, pod: &str, node: &str) {
        let path = self.path("pods", pod);
        until(&format!("{}/{pod} is on {node}", self.name), async || {
            let pod = self.api.get(&path).await?;
            (pod["spec"]["nodeName"] == node).then_some(())
        })
        .await;
        self.running(pod).await;
    }

    /// Runs a script in the pod.
    pub(crate) async fn try_sh(&self, pod: &str, script: &str) -> Ended {
        let args = ["exec", "--namespace", &self.name, pod, "--", "sh", "-c", script];
        self.cluster.plane.kubectl(args).await
    }

    /// Runs a script that must succeed, and returns its output.
    pub(crate) async fn sh(&self, pod: &str, script: &str) -> String {
        let ended = self.try_sh(pod, script).await;
        assert_eq!(ended.code, Some(0), "{}/{pod}: {script}: {ended:?}", self.name);
        ended.stdout.trim().to_owned()
    }

    /// Deletes a pod, and waits for that.
    pub(crate) async fn end(&self, pod: &str) {
        self.api.delete(&self.path("pods", pod)).await;
        self.gone("pods", pod).await;
    }

    /// Waits until an object of the core group is deleted.
    pub(crate) async fn gone(&self, kind: &str, name: &str) {
        let path = self.path(kind, name);
        until(&format!("{path} is deleted"), async || {
            self.api.get(&path).await.is_none().then_some(())
        })
        .await;
    }

    /// Waits until the volume is detached, in Kubernetes and in the cloud.
    pub(crate) async fn detached(&self, volume: &Volume) {
        let what = format!("{} ({}) is detached", volume.name, volume.disk);
        until(&what, async || {
            let all = self.api.list(&storage("volumeattachments")).await;
            let of_volume = |a: &Value| a["spec"]["source"]["persistentVolumeName"] == volume.name.as_str();
            let is_attached = all.iter().any(of_volume);
            let disk = cloud::disk(&self.cluster.cloud, &volume.disk).await?;
            (!is_attached && cloud::holders(&disk).is_empty()).then_some(())
        })
        .await;
    }

    /// Deletes the claims, and waits until their volumes are deleted in the cluster, in the cloud and on the machine.
    pub(crate) async fn close(&self, claims: &[&str]) {
        for claim in claims {
            let volume = self.bound(claim).await;
            self.api.delete(&self.path("persistentvolumeclaims", claim)).await;
            self.wait_deleted(&volume).await;
        }
    }

    /// Waits until the volume is deleted.
    async fn wait_deleted(&self, volume: &Volume) {
        let path = cluster_scoped(&format!("persistentvolumes/{}", volume.name));
        let what = format!("{} and its disk {} are deleted", volume.name, volume.disk);
        until(&what, async || {
            let disk = cloud::disk(&self.cluster.cloud, &volume.disk).await;
            (disk.is_none() && self.api.get(&path).await.is_none()).then_some(())
        })
        .await;
        let serial = volume.disk.trim_start_matches("d-");
        for instance in [INSTANCE, SECOND_INSTANCE] {
            let link = self.cluster.devices().join(format!("nodes/{instance}/{serial}"));
            assert!(!link.is_symlink(), "{} still exists", link.display());
        }
    }
}
