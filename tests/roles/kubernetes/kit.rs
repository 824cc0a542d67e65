//! A controller between the fake cloud and the fake API server.

use serde_json::{Value, json};
use tempfile::TempDir;
use tonic::transport::Channel;

use crate::common::csi::socket;
use crate::common::fake::Fake;
use crate::common::process::{Process, Start};
use crate::common::wait::until;
use crate::kubernetes::api::Api;
use crate::running::SOON;

pub(crate) const DRIVER: &str = "diskplugin.csi.example";
pub(crate) const TAINT: &str = "diskplugin.csi.example/agent-not-ready";
pub(crate) const NODES: &str = "/api/v1/nodes";
pub(crate) const CSI_NODES: &str = "/apis/storage.k8s.io/v1/csinodes";
pub(crate) const CONFIG_MAP: &str = "/api/v1/namespaces/storage/configmaps/types";
pub(crate) const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces";

/// The servers that a controller calls.
#[derive(Debug)]
pub(crate) struct Kit {
    pub(crate) api: Api,
    pub(crate) fake: Fake,
    pub(crate) dir: TempDir,
}

impl Kit {
    /// The fake cloud and the API server, without a controller.
    pub(crate) async fn new(flags: &[&str]) -> Self {
        let kit = Self {
            api: Api::start(),
            fake: Fake::start(flags).await,
            dir: tempfile::tempdir().unwrap(),
        };
        std::fs::write(kit.kubeconfig(), config(&kit.api.url())).unwrap();
        kit
    }

    pub(crate) fn kubeconfig(&self) -> std::path::PathBuf {
        self.dir.path().join("kubeconfig")
    }

    /// A controller with these flags.
    pub(crate) fn start(&self, flags: &[&str]) -> Start {
        let kubeconfig = format!("--kubeconfig={}", self.kubeconfig().display());
        let start = self.fake.controller(&socket(&self.dir)).keys();
        start.args([kubeconfig]).args(flags)
    }

    /// The same, when it is ready.
    pub(crate) async fn ready(&self, flags: &[&str]) -> (Process, Channel) {
        self.start(flags).ready(&socket(&self.dir)).await
    }

    /// A Node with this label, and a CSINode for this instance.
    pub(crate) fn node(&self, name: &str, instance_type: Option<&str>, id: Option<&str>) {
        let mut node = json!({"metadata": {"labels": {}}, "spec": {}, "status": {"images": []}});
        if let Some(instance_type) = instance_type {
            node["metadata"]["labels"]["node.kubernetes.io/instance-type"] = json!(instance_type);
        }
        self.put(&format!("{NODES}/{name}"), node);
        if let Some(id) = id {
            self.register(name, DRIVER, id, Some(9));
        }
    }

    /// Registers a driver on the current Node, as kubelet does.
    pub(crate) fn register(&self, name: &str, driver: &str, id: &str, count: Option<u32>) {
        let node = self.get(&format!("{NODES}/{name}"));
        let uid = node.and_then(|node| Some(node["metadata"]["uid"].as_str()?.to_owned()));
        self.register_of(name, uid.as_deref(), driver, id, count);
    }

    /// The same, on the Node with this UID.
    pub(crate) fn register_of(&self, name: &str, uid: Option<&str>, driver: &str, id: &str, count: Option<u32>) {
        let mut row = json!({"name": driver, "nodeID": id, "topologyKeys": []});
        if let Some(count) = count {
            row["allocatable"] = json!({"count": count});
        }
        let owner = uid.map(|uid| json!({"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}));
        let owners = Vec::from_iter(owner);
        let object = json!({"metadata": {"ownerReferences": owners}, "spec": {"drivers": [row]}});
        self.put(&format!("{CSI_NODES}/{name}"), object);
    }

    /// Creates the ConfigMap as the chart does.
    pub(crate) fn config_map(&self) {
        self.put(CONFIG_MAP, json!({"metadata": {"labels": {"app": "chart"}}}));
    }

    pub(crate) fn put(&self, path: &str, object: Value) {
        self.api.change(|world| world.store.put(path, object));
    }

    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        self.api.read(|world| world.store.get(path).cloned())
    }

    /// Forbids the calls with these beginnings, such as `GET /api/v1/pods`, and no others.
    pub(crate) fn forbid(&self, calls: &[&str]) {
        let calls = calls.iter().map(|call| (*call).to_owned()).collect();
        self.api.change(|world| world.forbidden = calls);
    }

    /// Waits until the function returns a value.
    pub(crate) async fn until<T>(&self, what: &str, find: impl Fn(&Self) -> Option<T> + Send + Sync) -> T {
        until(what, SOON, async || find(self)).await
    }

    pub(crate) async fn wait(&self, what: &str, is_true: impl Fn(&Self) -> bool + Send + Sync) {
        self.until(what, |kit| is_true(kit).then_some(())).await;
    }

    /// All events.
    pub(crate) fn events(&self) -> Vec<Value> {
        let namespaces = ["default", "team"];
        let lists = namespaces.iter().map(|namespace| {
            let path = format!("{EVENTS}/{namespace}/events");
            self.api.read(|world| world.store.list(&path).1)
        });
        lists.flatten().collect()
    }
}

/// A kubeconfig for this server.
pub(crate) fn config(url: &str) -> String {
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "it",
        "clusters": [{"name": "it", "cluster": {"server": url}}],
        "users": [{"name": "it", "user": {"token": "no-secret"}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it", "namespace": "storage"}}],
    })
    .to_string()
}
