//! Volumes that follow their pods from node to node.

use serde_json::json;

use crate::cloud;
use crate::cluster::{INSTANCE, SECOND_INSTANCE};
use crate::keep::{self, CLAIM};
use crate::path::grouped;
use crate::scene::Scene;

const HOST: &str = "kubernetes.io/hostname";

/// A StatefulSet moves to a second node and back: its disk is detached and attached each time, with its content.
pub(crate) async fn to_another_node(scene: &Scene<'_>) {
    let first = &scene.cluster.worker;
    let second = scene.cluster.second().await;
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
        scene.running_on("db-0", node).await;
        keep::intact(scene, "db-0").await;
        let more = format!("echo {node} >> /data/more && sync");
        scene.sh("db-0", &more).await;
        let disk = cloud::disk(&scene.cluster.cloud, &volume.disk).await;
        assert_eq!(cloud::holders(&disk.expect("the disk exists")), [instance]);
    }
    let nodes = format!("{}\n{}", second.name, first.name);
    assert_eq!(scene.sh("db-0", "cat /data/more").await, nodes);
    keep::delete(scene).await;
}
