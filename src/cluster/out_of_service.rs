//! The out-of-service taint of a node that is down, with the name of the driver as its value: that of an administrator
//! is never changed.

use k8s_openapi::api::core::v1::{Pod, Toleration};
use kube::Api;
use kube::api::ListParams;
use serde_json::json;
use tokio::time::Instant;

use super::list::list_selected;
use super::nodes::{Member, OUT_OF_SERVICE, Taint, is_ready};
use super::taint::change;
use super::{Cluster, Result};
use crate::model::DriverName;

/// Sets the taint, unless the Node was replaced, is ready, or has the taint already, or `valid_until` has passed: each
/// is verified with the version of the Node that is changed. Returns whether it was set.
pub async fn add(cluster: &Cluster, member: &Member, driver: &DriverName, valid_until: Instant) -> Result<bool> {
    let step = format!("set the taint {OUT_OF_SERVICE} on Node {}", member.node);
    change(cluster, &member.node, &step, |node| {
        let mut taints = node.spec.taints.clone();
        let is_same = node.metadata.uid.as_ref() == Some(&member.uid);
        let is_tainted = taints.iter().any(|taint| taint.key == OUT_OF_SERVICE);
        taints.push(Taint {
            key: OUT_OF_SERVICE.to_owned(),
            value: driver.to_string(),
            rest: [("effect".to_owned(), json!("NoExecute"))].into_iter().collect(),
        });
        (is_same && !is_tainted && !is_ready(node) && Instant::now() < valid_until).then_some(taints)
    })
    .await
}

/// Removes the driver's taint from a Node that is ready. Returns whether it was removed.
pub async fn remove(cluster: &Cluster, member: &Member, driver: &DriverName) -> Result<bool> {
    let step = format!("remove the taint {OUT_OF_SERVICE} from Node {}", member.node);
    change(cluster, &member.node, &step, |node| {
        let is_same = node.metadata.uid.as_ref() == Some(&member.uid);
        let is_own = |taint: &Taint| taint.key == OUT_OF_SERVICE && taint.value == driver.as_str();
        let others = node.spec.taints.iter().filter(|taint| !is_own(taint));
        (is_same && is_ready(node)).then(|| others.cloned().collect())
    })
    .await
}

/// Whether the node has pods that its taint removes and has not removed yet.
pub async fn has_evicted_pods(cluster: &Cluster, member: &Member, driver: &DriverName) -> Result<bool> {
    let api: Api<Pod> = Api::all(cluster.client());
    let of_node = ListParams::default().fields(&format!("spec.nodeName={}", member.node));
    let pods = list_selected(&api, "the pods of a node", &of_node).await?;
    Ok(pods.iter().any(|pod| is_evicted(pod, driver)))
}

fn is_evicted(pod: &Pod, driver: &DriverName) -> bool {
    let tolerates = |one: &Toleration| {
        let fields = [&one.key, &one.operator, &one.value, &one.effect];
        let [key, operator, value, effect] = fields.map(|field| field.as_deref().unwrap_or_default());
        let is_key = key == OUT_OF_SERVICE || (key.is_empty() && operator == "Exists");
        let is_value = operator == "Exists" || value == driver.as_str();
        is_key && is_value && ["", "NoExecute"].contains(&effect)
    };
    let mut tolerations = pod.spec.iter().flat_map(|spec| &spec.tolerations).flatten();
    pod.metadata.deletion_timestamp.is_some() || !tolerations.any(tolerates)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn pods_without_a_toleration_and_terminating_pods_are_evicted() {
        let driver = DriverName::default();
        let pod = |metadata: Value, tolerations: Value| -> Pod {
            let spec = json!({"tolerations": tolerations});
            serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
        };
        for (tolerations, expected) in [
            (json!([]), true),
            (json!([{"operator": "Exists"}]), false),
            (json!([{"operator": "Exists", "effect": "NoSchedule"}]), true),
            (
                json!([{"key": OUT_OF_SERVICE, "operator": "Exists", "effect": "NoExecute"}]),
                false,
            ),
            (json!([{"key": OUT_OF_SERVICE, "value": driver.as_str()}]), false),
            (
                json!([{"key": OUT_OF_SERVICE, "operator": "Equal", "value": "nodeshutdown"}]),
                true,
            ),
            (
                json!([{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "tolerationSeconds": 300}]),
                true,
            ),
        ] {
            let pod = pod(json!({"name": "p"}), tolerations.clone());
            assert_eq!(is_evicted(&pod, &driver), expected, "{tolerations}");
        }
        let deleted = json!({"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        assert!(is_evicted(&pod(deleted, json!([{"operator": "Exists"}])), &driver));
    }
}
