//! Volumes that follow their pods from node to node.

use serde_json::json;

use crate::cloud;
use crate::cluster::{INSTANCE, SECOND_INSTANCE};
use crate::keep::{self, CLAIM};
use crate::path::grouped;
use crate::scene::Scene;
use crate::wait::until;

/// By what a pod says where it wants to be.
const HOST: &str = "kubernetes.io/hostname";

/// A second node comes. A StatefulSet is told to be there, and then to be back: its disk is detached here and attached
/// there, and all that was written before is in it.
pub(crate) async fn to_another_node(scene: &Scene<'_>) {
    let first = &scene.cluster.worker;
    let second = scene.cluster.grow().await;
    let sets = grouped("apps", &scene.name, "statefulsets");
    let mut set = keep::stateful_set();
    set["spec"]["template"]["spec"]["nodeSelector"] = json!({HOST: first.name});
    scene.api.create(&sets, &set).await;
    scene.running("db-0").await;
    let volume = scene.bound(CLAIM).await;
    keep::write(scene, "db-0").await;
    for (node, instance) in [(second.name, SECOND_INSTANCE), (first.name, INSTANCE)] {
        let there = json!({"spec": {"template": {"spec": {"nodeSelector": {HOST: node}}}}});
        scene.api.change(&format!("{sets}/db"), &there).await;
        until(&format!("its pod is on {node}"), async || {
            let pod = scene.api.get(&scene.path("pods", "db-0")).await?;
            (pod["spec"]["nodeName"] == node).then_some(())
        })
        .await;
        scene.running("db-0").await;
        keep::intact(scene, "db-0").await;
        let more = format!("echo {node} >> /data/more && sync");
        scene.sh("db-0", &more).await;
        let disk = cloud::disk(&scene.cluster.cloud, &volume.disk).await;
        assert_eq!(cloud::holders(&disk.expect("it is used")), [instance]);
    }
    let nodes = format!("{}\n{}", second.name, first.name);
    assert_eq!(scene.sh("db-0", "cat /data/more").await, nodes);
    scene.api.delete(&format!("{sets}/db")).await;
    until("the pod is gone", async || {
        let pod = scene.api.get(&scene.path("pods", "db-0")).await;
        pod.is_none().then_some(())
    })
    .await;
    scene.close(&[CLAIM]).await;
}
