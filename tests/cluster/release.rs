//! The chart, installed by Helm into the cluster as a user would do it, and the pods that come of it.

use std::path::Path;

use serde_json::{Value, json};

use crate::common::fake::{Fake, KEY, SECRET};
use crate::common::process::Start;
use crate::path::{core, grouped};
use crate::patience::until;
use crate::plane::{NAMESPACE, Plane};
use crate::replica::{Place, Replica, text};
use crate::secret;

/// What the release is called: not as in the goldens, whose objects are to find their names free.
pub(crate) const NAME: &str = "tier1";
/// The Secret that it takes its key from; `values.yaml` says so too.
pub(crate) const KEYS: &str = "disk-key";
/// What its ServiceAccounts are called, and the pods' own objects.
pub(crate) const CONTROLLER: &str = "tier1-diskplugin-controller";
pub(crate) const NODE: &str = "tier1-diskplugin-node";

/// An installed chart.
#[derive(Debug)]
pub(crate) struct Release {
    /// The controller's pods, as the Deployment made them.
    pods: Vec<Value>,
    /// Of a pod of the DaemonSet, before anything is filled in.
    pub(crate) node: Value,
    kubeconfig: String,
}

impl Release {
    /// Makes the namespace and the Secret, and installs the chart.
    pub(crate) async fn install(plane: &Plane, cloud: &Fake) -> Self {
        let api = &plane.api;
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        api.create("/api/v1/namespaces", &namespace).await;
        let keys = json!({
            "metadata": {"name": KEYS},
            "stringData": {"access-key-id": KEY, "access-key-secret": SECRET},
        });
        api.create(&core(NAMESPACE, "secrets"), &keys).await;
        helm(plane, cloud).await;
        let daemon = grouped("apps", NAMESPACE, &format!("daemonsets/{NODE}"));
        let daemon = api.get(&daemon).await.expect("the chart has a DaemonSet");
        Self {
            pods: pods(plane).await,
            node: daemon["spec"]["template"].clone(),
            kubeconfig: account(plane, CONTROLLER).await,
        }
    }

    /// Starts the pod of this number.
    pub(crate) async fn start(&self, plane: &Plane, number: usize, own_name: bool) -> Replica {
        let pod = &self.pods[number];
        let place = Place {
            address: &plane.address,
            volumes: plane.directory(text(pod, "/metadata/name")),
            kubeconfig: &self.kubeconfig,
            own_name,
        };
        mount(plane, &place.volumes.join("credentials")).await;
        Replica::start(pod, &place)
    }
}

/// Brings the Secret into a pod, also anew when it has changed.
pub(crate) async fn mount(plane: &Plane, volume: &Path) {
    let path = core(NAMESPACE, &format!("secrets/{KEYS}"));
    let keys = plane.api.get(&path).await.expect("it was made");
    secret::publish(&keys, volume);
}

async fn helm(plane: &Plane, cloud: &Fake) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let file = |path: &str| root.join(path).display().to_string();
    let home = plane.directory("helm");
    let mut start = Start::of(&file("tests/helm/bin/helm"));
    // Nothing of the machine's own Helm.
    for name in [
        "HOME",
        "HELM_CONFIG_HOME",
        "HELM_CACHE_HOME",
        "HELM_DATA_HOME",
    ] {
        start = start.env(name, &home);
    }
    let start = start.args([
        "install",
        NAME,
        &file("deploy/helm/diskplugin"),
        "--namespace",
        NAMESPACE,
        "--kubeconfig",
        &plane.kubeconfig(),
        "--values",
        &file("tests/cluster/values.yaml"),
        "--set",
        &format!("ecsEndpoint={}", cloud.url),
    ]);
    let ended = start.ended().await;
    assert_eq!(
        ended.code,
        Some(0),
        "helm install: {}{}",
        ended.stdout,
        ended.stderr
    );
}

/// Waits for the pods that the Deployment wants: what is in them is the API server's word, with all defaults.
async fn pods(plane: &Plane) -> Vec<Value> {
    let labels = "app.kubernetes.io%2Fcomponent%3Dcontroller";
    let path = core(NAMESPACE, &format!("pods?labelSelector={labels}"));
    until("the Deployment has its two pods", async || {
        let pods = plane.api.list(&path).await;
        (pods.len() == 2).then_some(pods)
    })
    .await
}

/// A kubeconfig with a token of the ServiceAccount, which has no rights but what the chart gives it.
async fn account(plane: &Plane, name: &str) -> String {
    let path = core(NAMESPACE, &format!("serviceaccounts/{name}/token"));
    let wanted = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 86_400},
    });
    let token = plane.api.ask(&path, &wanted).await;
    plane
        .keys
        .kubeconfig(name, &plane.server, text(&token, "/status/token"))
}
