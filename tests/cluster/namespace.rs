//! The namespace of a scenario: claims, volumes and events. Shared by the tests on both kinds of clusters.

use std::sync::Mutex;

use serde_json::{Value, json};

use crate::api::{Api, text};
use crate::path::{cluster_scoped, core};
use crate::wait::until;

/// The namespace of a scenario.
#[derive(Debug)]
pub(crate) struct Namespace<'a> {
    pub(crate) api: &'a Api,
    pub(crate) name: String,
    /// Its volumes and disks, to select log lines.
    pub(crate) words: Mutex<Vec<String>>,
}

/// A bound volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Volume {
    /// The PersistentVolume.
    pub(crate) name: String,
    pub(crate) disk: String,
}

impl<'a> Namespace<'a> {
    /// Creates the namespace, and waits until pods can be created in it.
    pub(crate) async fn open(api: &'a Api, name: &str) -> Self {
        let object = json!({"metadata": {"name": name}});
        api.create("/api/v1/namespaces", &object).await;
        let account = core(name, "serviceaccounts/default");
        let what = format!("namespace {name} accepts pods");
        until(&what, async || api.get(&account).await).await;
        Self {
            api,
            name: name.to_owned(),
            words: Mutex::new(vec![name.to_owned()]),
        }
    }

    /// The path of an object of the core group in this namespace.
    pub(crate) fn path(&self, kind: &str, name: &str) -> String {
        core(&self.name, &format!("{kind}/{name}"))
    }

    /// Waits until the claim is bound.
    pub(crate) async fn bound(&self, claim: &str) -> Volume {
        let path = self.path("persistentvolumeclaims", claim);
        let name = until(&format!("{}/{claim} is bound", self.name), async || {
            let claim = self.api.get(&path).await?;
            let bound = claim["status"]["phase"] == "Bound";
            bound.then(|| text(&claim, "/spec/volumeName").to_owned())
        })
        .await;
        let path = cluster_scoped(&format!("persistentvolumes/{name}"));
        let volume = self.api.get(&path).await;
        let volume = volume.expect("the PersistentVolume of a bound claim exists");
        let disk = text(&volume, "/spec/csi/volumeHandle").to_owned();
        let mut words = self.words.lock().unwrap();
        words.extend([name.clone(), disk.clone()]);
        drop(words);
        Volume { name, disk }
    }

    /// The messages of the events of an object with this reason.
    pub(crate) async fn events(&self, object: &str, reason: &str) -> Vec<String> {
        let events = self.api.list(&core(&self.name, "events")).await;
        let of = events
            .iter()
            .filter(|e| e["involvedObject"]["name"] == object && e["reason"] == reason);
        of.map(|e| e["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Waits for an event of an object with this reason whose message contains the text.
    pub(crate) async fn wait_for_event(&self, object: &str, reason: &str, words: &str) -> String {
        let what = format!("{}: {object} has an event {reason} with {words:?}", self.name);
        until(&what, async || {
            let messages = self.events(object, reason).await;
            messages.into_iter().find(|message| message.contains(words))
        })
        .await
    }
}

/// A ReadWriteOnce claim of this class with the minimum size of a disk.
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

/// Adds claims to a pod with one container, each mounted at `/NAME`.
pub(crate) fn mount(pod: &mut Value, claims: &[&str]) {
    let volume = |claim: &&str| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}});
    let mount_path = |claim: &&str| json!({"name": claim, "mountPath": format!("/{claim}")});
    let spec = &mut pod["spec"];
    spec["volumes"] = claims.iter().map(volume).collect();
    spec["containers"][0]["volumeMounts"] = claims.iter().map(mount_path).collect();
}
