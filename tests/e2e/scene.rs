//! What a scenario has for itself: a namespace, claims, pods that wait for commands; and the words to look at them.

use std::ops::Deref;

use serde_json::{Value, json};

use crate::cloud;
use crate::cluster::{Cluster, INSTANCE, SECOND_INSTANCE};
use crate::common::process::Ended;
use crate::images::SHELL;
use crate::namespace::{self, Namespace, Volume};
use crate::path::{cluster_scoped, core, storage};
use crate::wait::until;

/// What a pod runs that waits for commands, and ends when it is told to.
const WAIT: &str = "trap 'exit 0' TERM; sleep 2147483647 & wait";

/// One scenario's part of the cluster.
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

    /// What a pod is that waits for commands and has these claims, each in the root by its name.
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

    /// Makes an object of the core group.
    pub(crate) async fn make(&self, kind: &str, object: &Value) {
        self.api.create(&core(&self.name, kind), object).await;
    }

    /// Makes a claim of this class.
    pub(crate) async fn want(&self, claim: &str, class: &str) {
        self.make("persistentvolumeclaims", &namespace::claim(claim, class))
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
        let args = ["exec", "--namespace", &self.name, pod, "--", "sh", "-c", script];
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
            self.api.delete(&self.path("persistentvolumeclaims", claim)).await;
            self.gone(&volume).await;
        }
    }

    /// Waits until nothing of the volume is left.
    pub(crate) async fn gone(&self, volume: &Volume) {
        let path = cluster_scoped(&format!("persistentvolumes/{}", volume.name));
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
}
