//! A chart installed by Helm, and its pods.

use std::path::Path;

use serde_json::{Value, json};

use crate::api::text;
use crate::common::fake::{Fake, KEY, SECRET};
use crate::common::process::Ended;
use crate::helm::{file, helm, packaged_chart, start};
use crate::machine::DRIVER;
use crate::path::{core, grouped};
use crate::plane::{NAMESPACE, Plane};
use crate::replica::{PodEnvironment, Replica};
use crate::secret;
use crate::wait::until;

/// Name of the release of all scenarios. It differs from that of the goldens, whose objects are created too.
pub(crate) const NAME: &str = "tier1";
/// The credentials Secret, as in the values.
pub(crate) const KEYS: &str = "disk-key";
/// Names of its ServiceAccounts and objects.
pub(crate) const CONTROLLER: &str = "tier1-diskplugin-controller";
pub(crate) const NODE: &str = "tier1-diskplugin-node";

/// An installed chart.
#[derive(Debug)]
pub(crate) struct Release {
    name: String,
    pub(crate) namespace: String,
    /// The driver name.
    pub(crate) driver: String,
    /// The controller's pods, as created by the Deployment.
    pods: Vec<Value>,
    /// The spec of a pod of the DaemonSet.
    pub(crate) node: Value,
    kubeconfig: String,
}

/// The release to install.
#[derive(Debug)]
pub(crate) struct Spec<'a> {
    pub(crate) name: &'a str,
    pub(crate) namespace: &'a str,
    /// The driver name, as in the values.
    pub(crate) driver: &'a str,
    /// The file of values.
    pub(crate) values: &'a str,
    /// The chart, unless it is the current one.
    pub(crate) chart: Option<&'a str>,
}

/// The release of all scenarios.
pub(crate) const SPEC: Spec<'static> = Spec {
    name: NAME,
    namespace: NAMESPACE,
    driver: DRIVER,
    values: "tests/cluster/values.yaml",
    chart: None,
};

impl Release {
    /// Creates the namespace and the Secret, and installs the chart.
    pub(crate) async fn install(plane: &Plane, cloud: &Fake, spec: &Spec<'_>) -> Self {
        let api = &plane.api;
        let namespace = json!({"metadata": {"name": spec.namespace}});
        api.create("/api/v1/namespaces", &namespace).await;
        let keys = json!({
            "metadata": {"name": KEYS},
            "stringData": {"access-key-id": KEY, "access-key-secret": SECRET},
        });
        api.create(&core(spec.namespace, "secrets"), &keys).await;
        let chart = match spec.chart {
            Some(path) => file(path),
            None => packaged_chart(plane).await,
        };
        let args = [
            "install",
            spec.name,
            &chart,
            "--values",
            &file(spec.values),
            "--set",
            &format!("ecsEndpoint={}", cloud.url),
        ];
        helm(plane, spec.namespace, args).await;
        let account = format!("{}-diskplugin-controller", spec.name);
        let mut release = Self {
            name: spec.name.to_owned(),
            namespace: spec.namespace.to_owned(),
            driver: spec.driver.to_owned(),
            pods: Vec::new(),
            node: Value::Null,
            kubeconfig: kubeconfig(plane, spec.namespace, &account).await,
        };
        release.read_pods(plane).await;
        release
    }

    /// Upgrades the release as in the guide, with further arguments, and reads the new pods.
    pub(crate) async fn upgrade(&mut self, plane: &Plane, more: &[&str]) {
        let Ended { code, stderr, .. } = self.try_upgrade(plane, more).await;
        assert_eq!(code, Some(0), "helm upgrade {more:?}: {stderr}");
        self.read_pods(plane).await;
    }

    /// Upgrades the release, if Helm does not refuse it.
    pub(crate) async fn try_upgrade(&self, plane: &Plane, more: &[&str]) -> Ended {
        let chart = packaged_chart(plane).await;
        let args = ["upgrade", &self.name, &chart, "--reset-then-reuse-values"];
        start(plane, &self.namespace, &[&args[..], more].concat()).ended().await
    }

    /// Uninstalls the release, and waits until all its objects are deleted.
    pub(crate) async fn uninstall(&self, plane: &Plane) {
        let file = self.manifest(plane).await;
        helm(plane, &self.namespace, ["uninstall", &self.name]).await;
        let args = ["get", "--output=name", "--ignore-not-found", "--filename", &file];
        until("all objects of the release are deleted", async || {
            let logs = plane.kubectl(args).await;
            assert_eq!(logs.code, Some(0), "{}", logs.stderr);
            logs.stdout.trim().is_empty().then_some(())
        })
        .await;
    }

    /// The release's objects in the cluster.
    pub(crate) async fn objects(&self, plane: &Plane) -> Vec<Value> {
        let file = self.manifest(plane).await;
        let args = ["get", "--output=json", "--filename", &file];
        let logs = plane.kubectl(args).await;
        assert_eq!(logs.code, Some(0), "an object is missing: {}", logs.stderr);
        let mut list: Value = serde_json::from_str(&logs.stdout).expect("kubectl writes JSON");
        serde_json::from_value(list["items"].take()).expect("a list has items")
    }

    /// A file with the manifest of the release.
    async fn manifest(&self, plane: &Plane) -> String {
        let manifest = helm(plane, &self.namespace, ["get", "manifest", &self.name]).await;
        let path = plane.directory("helm").join(format!("{}.yaml", self.name));
        std::fs::write(&path, manifest).expect("the directory can be written");
        path.display().to_string()
    }

    /// Reads the workloads, and waits for the new pods of the Deployment. Pods are read from the API server, which adds
    /// defaults.
    async fn read_pods(&mut self, plane: &Plane) {
        let daemon = format!("daemonsets/{}-diskplugin-node", self.name);
        let daemon = grouped("apps", &self.namespace, &daemon);
        let daemon = plane.api.get(&daemon).await;
        self.node = daemon.expect("the chart has a DaemonSet")["spec"]["template"].take();
        let labels = "app.kubernetes.io%2Fcomponent%3Dcontroller";
        let path = core(&self.namespace, &format!("pods?labelSelector={labels}"));
        let before = std::mem::take(&mut self.pods);
        let is_new = |pod: &Value| {
            let uid = text(pod, "/metadata/uid");
            before.iter().all(|old| text(old, "/metadata/uid") != uid)
        };
        self.pods = until("the Deployment has two new pods", async || {
            let pods = plane.api.list(&path).await;
            if pods.len() == 2 && pods.iter().all(is_new) {
                return Some(pods);
            }
            if !before.is_empty() {
                // The test marks the pods as ready; until then the old pods remain.
                for pod in pods.iter().filter(|pod| is_new(pod)) {
                    let path = format!("pods/{}/status", text(pod, "/metadata/name"));
                    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}});
                    let path = core(&self.namespace, &path);
                    plane.api.patch_if_exists(&path, &ready).await;
                }
            }
            None
        })
        .await;
    }

    pub(crate) fn pod_name(&self, number: usize) -> &str {
        text(&self.pods[number], "/metadata/name")
    }

    /// Starts the pod with this number.
    pub(crate) async fn start(&self, plane: &Plane, number: usize) -> Replica {
        let pod = &self.pods[number];
        let environment = PodEnvironment {
            address: &plane.address,
            volumes: plane.directory(text(pod, "/metadata/name")),
            kubeconfig: &self.kubeconfig,
        };
        self.mount(plane, &environment.volumes.join("credentials")).await;
        Replica::start(pod, &environment)
    }

    /// Writes the Secret into the pod's volume, also after a change.
    pub(crate) async fn mount(&self, plane: &Plane, volume: &Path) {
        let path = core(&self.namespace, &format!("secrets/{KEYS}"));
        let keys = plane.api.get(&path).await.expect("the Secret exists");
        secret::publish(&keys, volume);
    }
}

/// A kubeconfig with a token of the ServiceAccount, which has only the permissions that the chart grants.
async fn kubeconfig(plane: &Plane, namespace: &str, account: &str) -> String {
    let token = token(plane, namespace, account).await;
    plane.keys.kubeconfig_in(namespace, account, &plane.server, &token)
}

/// A token of the ServiceAccount, as kubelet requests it for a pod.
pub(crate) async fn token(plane: &Plane, namespace: &str, account: &str) -> String {
    let path = core(namespace, &format!("serviceaccounts/{account}/token"));
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "spec": {"expirationSeconds": 86_400},
    });
    let token = plane.api.post(&path, &request).await;
    text(&token, "/status/token").to_owned()
}
