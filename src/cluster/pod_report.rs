//! The pods of the driver for the report of a defect: images, flags, states, and logs.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use kube::ResourceExt;
use serde::Serialize;
use serde_json::Value;

use super::driver_pods::{COMPONENT_LABEL, DriverPod, list_pods};
use super::objects::segment;
use super::{Cluster, Result};

/// Lines of a log, from its end.
const TAIL: u32 = 5000;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PodReport {
    pub namespace: String,
    pub name: String,
    /// The role of the pod: `controller` or `node`.
    pub component: Option<String>,
    /// The node as Kubernetes names it.
    pub node: Option<String>,
    pub phase: Option<String>,
    pub containers: Vec<ContainerReport>,
    /// None without an HTTP port.
    #[serde(skip)]
    pub http: Option<DriverPod>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContainerReport {
    pub name: String,
    pub image: Option<String>,
    pub image_id: Option<String>,
    pub command: Vec<String>,
    pub args: Vec<String>,
    /// The variables, without values that are read from other objects.
    pub env: BTreeMap<String, Option<String>>,
    pub restarts: i32,
    pub ready: bool,
    pub state: Option<Value>,
    pub last_state: Option<Value>,
}

impl PodReport {
    /// The pods of the driver, in this namespace or in all.
    pub async fn list(cluster: &Cluster, namespace: Option<&str>) -> Result<Vec<Self>> {
        let pods = list_pods(cluster, namespace).await?;
        Ok(pods.iter().map(Self::of).collect())
    }

    fn of(pod: &Pod) -> Self {
        let spec = pod.spec.clone().unwrap_or_default();
        let status = pod.status.clone().unwrap_or_default();
        let initial = status.init_container_statuses.unwrap_or_default();
        let statuses = status.container_statuses.unwrap_or_default();
        let statuses: Vec<_> = initial.into_iter().chain(statuses).collect();
        let containers = spec.init_containers.iter().flatten();
        let containers = containers.chain(&spec.containers).map(|container| {
            let mut known = statuses.iter();
            let status = known.find(|status| status.name == container.name);
            ContainerReport::of(container, status)
        });
        Self {
            namespace: pod.namespace().unwrap_or_default(),
            name: pod.name_any(),
            component: pod.labels().get(COMPONENT_LABEL).cloned(),
            containers: containers.collect(),
            node: spec.node_name,
            phase: status.phase,
            http: DriverPod::of(pod),
        }
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

impl ContainerReport {
    /// Removes the messages of states.
    pub fn without_messages(&mut self) {
        let states = [&mut self.state, &mut self.last_state].into_iter().flatten();
        for state in states.filter_map(Value::as_object_mut) {
            for fields in state.values_mut().filter_map(Value::as_object_mut) {
                fields.remove("message");
            }
        }
    }

    fn of(container: &Container, status: Option<&ContainerStatus>) -> Self {
        let variables = container.env.iter().flatten();
        let variables = variables.map(|variable| (variable.name.clone(), variable.value.clone()));
        let state = |state: &Option<_>| {
            let state = state.as_ref()?;
            serde_json::to_value(state).ok()
        };
        Self {
            name: container.name.clone(),
            image: container.image.clone(),
            image_id: status.map(|status| status.image_id.clone()),
            command: container.command.clone().unwrap_or_default(),
            args: container.args.clone().unwrap_or_default(),
            env: variables.collect(),
            restarts: status.map_or(0, |status| status.restart_count),
            ready: status.is_some_and(|status| status.ready),
            state: status.and_then(|status| state(&status.state)),
            last_state: status.and_then(|status| state(&status.last_state)),
        }
    }
}
