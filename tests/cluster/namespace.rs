//! A namespace of the scenario's own, and what both clusters' scenarios do in one: claims, their volumes, and events.

use std::sync::Mutex;

use serde_json::{Value, json};

use crate::api::{Api, text};
use crate::path::{core, whole};
use crate::patience::until;

/// Where a scenario has its objects.
#[derive(Debug)]
pub(crate) struct Namespace<'a> {
    pub(crate) api: &'a Api,
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

impl<'a> Namespace<'a> {
    /// Makes it, and waits until pods can be in it.
    pub(crate) async fn open(api: &'a Api, name: &str) -> Self {
        let object = json!({"metadata": {"name": name}});
        api.create("/api/v1/namespaces", &object).await;
        let account = core(name, "serviceaccounts/default");
        let what = format!("namespace {name} takes pods");
        until(&what, async || api.get(&account).await).await;
        Self {
            api,
            name: name.to_owned(),
            words: Mutex::new(vec![name.to_owned()]),
        }
    }

    /// The path of an object of the core group in it.
    pub(crate) fn path(&self, kind: &str, name: &str) -> String {
        core(&self.name, &format!("{kind}/{name}"))
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
        let path = whole(&format!("persistentvolumes/{name}"));
        let volume = self.api.get(&path).await;
        let volume = volume.expect("a claim is bound to what is there");
        let disk = text(&volume, "/spec/csi/volumeHandle").to_owned();
        let mut words = self.words.lock().unwrap();
        words.extend([name.clone(), disk.clone()]);
        drop(words);
        Volume { name, disk }
    }

    /// The messages of the events about an object with this reason.
    pub(crate) async fn events(&self, object: &str, reason: &str) -> Vec<String> {
        let events = self.api.list(&core(&self.name, "events")).await;
        let of = events
            .iter()
            .filter(|e| e["involvedObject"]["name"] == object && e["reason"] == reason);
        of.map(|e| e["message"].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    /// Waits for an event about an object with this reason, whose message has these words.
    pub(crate) async fn told(&self, object: &str, reason: &str, words: &str) -> String {
        let what = format!("{}: {object} is told {reason} with {words:?}", self.name);
        until(&what, async || {
            let told = self.events(object, reason).await;
            told.into_iter().find(|message| message.contains(words))
        })
        .await
    }
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

/// Puts claims into a pod that has none yet and one container, each in the root by its name.
pub(crate) fn mount(pod: &mut Value, claims: &[&str]) {
    let volume =
        |claim: &&str| json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}});
    let place = |claim: &&str| json!({"name": claim, "mountPath": format!("/{claim}")});
    let spec = &mut pod["spec"];
    spec["volumes"] = claims.iter().map(volume).collect();
    spec["containers"][0]["volumeMounts"] = claims.iter().map(place).collect();
}
