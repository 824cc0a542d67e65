//! The pods of the driver: their states, logs, and the pages of their HTTP port through the API server.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::list::list_selected;
use super::objects::segment;
use super::{Cluster, Result};

/// The label of the chart that names the application, and the one that names the component.
const NAME_LABEL: &str = "app.kubernetes.io/name=diskplugin";
const COMPONENT_LABEL: &str = "app.kubernetes.io/component";

/// The values of the label of components.
pub const CONTROLLER: &str = "controller";
pub const NODE: &str = "node";

/// The container of the driver.
const CONTAINER: &str = "diskplugin";

/// Lines of a log, from its end.
const TAIL: u32 = 5000;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct DriverPod {
    pub namespace: String,
    pub name: String,
    /// [`CONTROLLER`] or [`NODE`].
    pub component: String,
    /// The node as named in Kubernetes.
    pub node: Option<String>,
    pub is_ready: bool,
    /// Why it is not ready, if Kubernetes states it.
    pub reason: Option<String>,
    /// Name and port of the HTTP port in paths of the API server. None while no container runs: a request would wait
    /// until its timeout.
    pub http: Option<String>,
    pub object: Pod,
}

impl DriverPod {
    /// The pods with the label of the driver, in this namespace or in all.
    pub async fn list(cluster: &Cluster, namespace: Option<&str>) -> Result<Vec<Self>> {
        let api: Api<Pod> = match namespace {
            Some(namespace) => Api::namespaced(cluster.client(), namespace),
            None => Api::all(cluster.client()),
        };
        let selected = ListParams::default().labels(NAME_LABEL);
        let pods = list_selected(&api, "the pods of the driver", &selected).await?;
        Ok(pods.into_iter().map(Self::of).collect())
    }

    fn of(object: Pod) -> Self {
        let status = object.status.clone().unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let condition = |kind: &str| conditions.iter().find(|one| one.type_ == kind);
        let is_ready = condition("Ready").is_some_and(|ready| ready.status == "True");
        let initial = status.init_container_statuses.unwrap_or_default();
        let mut containers = status.container_statuses.unwrap_or_default();
        // Sidecars fail without the driver.
        containers.sort_by_key(|container| container.name != CONTAINER);
        let unscheduled = condition("PodScheduled")
            .filter(|one| one.status == "False")
            .and_then(|one| one.message.clone());
        let mut containers = initial.iter().chain(&containers);
        let reason = containers.find_map(not_ready).or(unscheduled);
        let is_pending = status.phase.as_deref() == Some("Pending");
        Self {
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
            component: object.labels().get(COMPONENT_LABEL).cloned().unwrap_or_default(),
            node: object.spec.as_ref().and_then(|spec| spec.node_name.clone()),
            is_ready: is_ready && object.metadata.deletion_timestamp.is_none(),
            reason: reason.filter(|_| !is_ready),
            http: http(&object).filter(|_| !is_pending),
            object,
        }
    }

    /// Whether a container runs, and the driver has an HTTP port.
    pub fn has_pages(&self) -> bool {
        self.http.is_some()
    }

    /// The text of a page of its HTTP port; none if it does not exist.
    pub async fn page(&self, cluster: &Cluster, path: &str) -> Result<Option<String>> {
        let Self { namespace, name, .. } = self;
        let http = self.http.as_deref().unwrap_or(name);
        let url = format!("/api/v1/namespaces/{namespace}/pods/{http}/proxy{path}");
        let step = format!("read {path} of the pod {namespace}/{name} through the API server");
        cluster.text(&step, &url).await
    }

    /// The last lines of the log of a container, or of the process before its last restart; none if the pod is gone.
    pub async fn log(
        &self,
        cluster: &Cluster,
        container: &str,
        since: Duration,
        is_previous: bool,
    ) -> Result<Option<String>> {
        let Self { namespace, name, .. } = self;
        let url = format!(
            "/api/v1/namespaces/{namespace}/pods/{name}/log?container={}&timestamps=true&tailLines={TAIL}\
             &sinceSeconds={}&previous={is_previous}",
            segment(container),
            since.as_secs().max(1)
        );
        let step = format!("read the log of {container} in the pod {namespace}/{name}");
        cluster.text(&step, &url).await
    }
}

fn not_ready(container: &ContainerStatus) -> Option<String> {
    if container.ready {
        return None;
    }
    let name = &container.name;
    let state = container.state.as_ref()?;
    let waiting = state.waiting.as_ref().and_then(|one| one.reason.clone());
    let terminated = state.terminated.as_ref().and_then(|one| one.reason.clone());
    Some(match waiting.or(terminated) {
        Some(reason) => format!("container {name}: {reason}"),
        None => format!("container {name} is not ready"),
    })
}

/// Name and port of `--http-address`, after the scheme if it is HTTPS.
fn http(pod: &Pod) -> Option<String> {
    let mut containers = pod.spec.as_ref()?.containers.iter();
    let driver = containers.find(|container| container.name == CONTAINER)?;
    let (_, port) = argument(driver, "--http-address=")?.rsplit_once(':')?;
    let scheme = argument(driver, "--http-tls-cert-file=").map_or("", |_| "https:");
    Some(format!("{scheme}{}:{port}", pod.name_any()))
}

fn argument<'a>(container: &'a Container, flag: &str) -> Option<&'a str> {
    let mut arguments = container.args.iter().flatten();
    arguments.find_map(|argument| argument.strip_prefix(flag))
}
