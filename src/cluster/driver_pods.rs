//! The pods of the driver, and the pages of their HTTP port through the API server.

use k8s_openapi::api::core::v1::{Container, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::list::list_selected;
use super::{Cluster, Result};

/// The label of the chart that names the application, and the one that names the component.
const NAME_LABEL: &str = "app.kubernetes.io/name=diskplugin";
pub(super) const COMPONENT_LABEL: &str = "app.kubernetes.io/component";

/// The container of the driver.
pub(super) const CONTAINER: &str = "diskplugin";

/// A pod of the driver with an HTTP port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverPod {
    pub namespace: String,
    pub name: String,
    /// The role of the pod: `controller` or `node`.
    pub component: String,
    /// The node as Kubernetes names it.
    pub node: Option<String>,
    port: u16,
    is_tls: bool,
}

impl DriverPod {
    pub(super) fn of(pod: &Pod) -> Option<Self> {
        let spec = pod.spec.as_ref()?;
        let mut containers = spec.containers.iter();
        let driver = containers.find(|container| container.name == CONTAINER)?;
        Some(Self {
            namespace: pod.namespace()?,
            name: pod.name_any(),
            component: pod.labels().get(COMPONENT_LABEL)?.clone(),
            node: spec.node_name.clone(),
            port: http_port(driver)?,
            is_tls: argument(driver, "--http-tls-cert-file=").is_some(),
        })
    }

    /// The text of a page of its HTTP port; none if it does not exist.
    pub async fn page(&self, cluster: &Cluster, path: &str) -> Result<Option<String>> {
        let scheme = if self.is_tls { "https:" } else { "" };
        let Self {
            namespace, name, port, ..
        } = self;
        let url = format!("/api/v1/namespaces/{namespace}/pods/{scheme}{name}:{port}/proxy{path}");
        let step = format!("read {path} of the pod {namespace}/{name} through the API server");
        cluster.text(&step, &url).await
    }
}

/// The pods with the label of the driver, in this namespace or in all.
pub(super) async fn list_pods(cluster: &Cluster, namespace: Option<&str>) -> Result<Vec<Pod>> {
    let api: Api<Pod> = match namespace {
        Some(namespace) => Api::namespaced(cluster.client(), namespace),
        None => Api::all(cluster.client()),
    };
    list_selected(
        &api,
        "the pods of the driver",
        &ListParams::default().labels(NAME_LABEL),
    )
    .await
}

fn argument<'a>(container: &'a Container, flag: &str) -> Option<&'a str> {
    let mut arguments = container.args.iter().flatten();
    arguments.find_map(|argument| argument.strip_prefix(flag))
}

/// The port of `--http-address`.
fn http_port(container: &Container) -> Option<u16> {
    let (_, port) = argument(container, "--http-address=")?.rsplit_once(':')?;
    port.parse().ok()
}
