//! Nodes whose instance was stopped.

use serde_json::json;

use crate::api::Api;
use crate::attach::{at, attached_to_one_of_two};
use crate::machine::{DRIVER, Machine};
use crate::path::grouped;
use crate::scene::Scene;
use crate::wait::until;

/// The value of the out-of-service taint of the machine.
async fn taint(api: &Api, machine: &Machine) -> Option<String> {
    let node = api.get(&machine.path()).await?;
    let mut taints = node["spec"]["taints"].as_array()?.iter();
    let taint = taints.find(|taint| taint["key"] == "node.kubernetes.io/out-of-service")?;
    assert_eq!(taint["effect"], "NoExecute");
    Some(taint["value"].as_str()?.to_owned())
}

/// The pod and the volume of a stopped instance are removed from it, and the machine is used again when it runs.
/// Nothing happens to a machine that is not ready and whose instance runs.
pub(crate) async fn stopped(scene: &Scene<'_>) {
    let (one, two, volume) = attached_to_one_of_two(scene).await;
    let silent = scene.machine("silent", "a").await;
    silent.set_ready(scene.api, "Unknown").await;
    let power = |op: &str| json!({"op": op, "id": one.instance});
    scene.cluster.cloud.instance(power("stop")).await;
    one.set_ready(scene.api, "Unknown").await;
    until("the machine is out of service", async || {
        let value = taint(scene.api, &one).await?;
        assert_eq!(value, DRIVER);
        Some(())
    })
    .await;
    let pod = scene.path("pods", "first");
    until("the pod is deleted", async || {
        scene.api.get(&pod).await.is_none().then_some(())
    })
    .await;
    scene.pod("second", &["data"], at(&two)).await;
    scene.attached(&volume, &[&two]).await;
    assert_eq!(taint(scene.api, &silent).await, None);

    let events = grouped("events.k8s.io", "default", "events");
    until("the node has an event with the reason", async || {
        let events = scene.api.list(&events).await;
        let mut of_node = events
            .iter()
            .filter(|event| event["regarding"]["name"] == one.name.as_str());
        let event = of_node.find(|event| event["reason"] == "NodeOutOfService")?;
        let note = event["note"].as_str()?;
        assert!(note.contains("the cloud reports its instance as Stopped"), "{note}");
        Some(())
    })
    .await;
    scene.cluster.cloud.instance(power("start")).await;
    one.set_ready(scene.api, "True").await;
    until("the machine is in service", async || {
        taint(scene.api, &one).await.is_none().then_some(())
    })
    .await;
    scene.close(&["second"], &["data"], &[&volume]).await;
}
