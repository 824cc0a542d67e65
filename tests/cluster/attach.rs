//! Attaching volumes to machines, and volume limits.

use serde_json::{Value, json};

use crate::machine::{Machine, SHARING};
use crate::namespace::Volume;
use crate::scene::{Scene, with};
use crate::wait::until;

/// A pod spec for this machine.
pub(crate) fn at(machine: &Machine) -> Value {
    json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": machine.name}}})
}

/// Two machines, and a volume that the pod `first` uses on the first one.
pub(crate) async fn attached_to_one_of_two(scene: &Scene<'_>) -> (Machine, Machine, Volume) {
    let (one, two) = (scene.machine("one", "a").await, scene.machine("two", "a").await);
    let class = scene.class("one", json!({"type": "cloud_essd"}), json!({})).await;
    scene.claim("data", &class, json!({})).await;
    scene.pod("first", &["data"], at(&one)).await;
    let volume = scene.bound("data").await;
    scene.attached(&volume, &[&one]).await;
    (one, two, volume)
}

/// A ReadWriteOnce volume is attached to another node only after it was detached from the first one.
pub(crate) async fn moved(scene: &Scene<'_>) {
    let (one, two, volume) = attached_to_one_of_two(scene).await;
    scene.pod("second", &["data"], at(&two)).await;
    scene
        .wait_for_event("second", "FailedAttachVolume", "Multi-Attach error")
        .await;
    scene.attached(&volume, &[&one]).await;
    scene.end("first").await;
    scene.attached(&volume, &[&two]).await;
    scene.close(&["second"], &["data"], &[&volume]).await;
}

/// A multi-attach disk is attached to each node with a pod that uses it.
pub(crate) async fn shared(scene: &Scene<'_>) {
    let one = scene.machine_of("one", "b", SHARING).await;
    let two = scene.machine_of("two", "b", SHARING).await;
    let parameters = json!({"type": "cloud_essd", "multiAttach": "true"});
    let class = scene.class("shared", parameters, json!({})).await;
    let shared = json!({"spec": {"accessModes": ["ReadWriteMany"], "volumeMode": "Block"}});
    scene.claim("data", &class, shared).await;
    let container = json!({
        "name": "c", "image": "none", "volumeDevices": [{"name": "data", "devicePath": "/dev/data"}],
    });
    let raw = json!({"spec": {"containers": [container]}});
    scene.pod("first", &["data"], with(at(&one), raw.clone())).await;
    scene.pod("second", &["data"], with(at(&two), raw)).await;
    let volume = scene.bound("data").await;
    scene.attached(&volume, &[&one, &two]).await;
    scene.end("first").await;
    scene.attached(&volume, &[&two]).await;
    scene.close(&["second"], &["data"], &[&volume]).await;
}

/// The scheduler places no pod on a machine at its volume limit until a volume is detached.
pub(crate) async fn limit(scene: &Scene<'_>) {
    let machine = scene.machine("one", "c").await;
    assert!(machine.volumes > 0, "{machine:?} reports no limit");
    let class = scene.class("few", json!({"type": "cloud_essd"}), json!({})).await;
    let names: Vec<String> = (0..=machine.volumes).map(|number| format!("p{number}")).collect();
    let (last, fit) = names.split_last().unwrap();
    for name in fit {
        scene.claim(name, &class, json!({})).await;
        scene.pod(name, &[name], json!({})).await;
    }
    let mut volumes = Vec::new();
    for name in fit {
        let volume = scene.bound(name).await;
        scene.attached(&volume, &[&machine]).await;
        volumes.push(volume);
    }
    scene.claim(last, &class, json!({})).await;
    scene.pod(last, &[last], json!({})).await;
    let path = scene.path("pods", last);
    until("the last pod is unschedulable", async || {
        let pod = scene.api.get(&path).await?;
        let conditions = pod["status"]["conditions"].as_array()?;
        let at_limit = |c: &Value| {
            c["reason"] == "Unschedulable" && c["message"].as_str().is_some_and(|m| m.contains("max volume count"))
        };
        conditions.iter().any(at_limit).then_some(())
    })
    .await;
    scene.end(&fit[0]).await;
    let volume = scene.bound(last).await;
    scene.attached(&volume, &[&machine]).await;
    volumes.push(volume);
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    scene.close(&names, &names, &volumes.iter().collect::<Vec<_>>()).await;
}

/// A volume of a deleted node and instance is attached to another node.
pub(crate) async fn node_deleted(scene: &Scene<'_>) {
    let (one, two, volume) = attached_to_one_of_two(scene).await;
    // Volumes that kubelet reports as in use delay a detach for six minutes; nothing is mounted here. The controller
    // reads that list at the next change of the Node after the attach.
    until("the Node lists the volume as attached", async || {
        let node = scene.api.get(&one.path()).await?;
        node["status"]["volumesAttached"]
            .to_string()
            .contains(&volume.disk)
            .then_some(())
    })
    .await;
    let label = json!({"metadata": {"labels": {"example.com/leaving": "yes"}}});
    scene.api.change(&one.path(), &label).await;
    one.leave(scene.cluster).await;
    scene.end("first").await;
    scene.pod("second", &["data"], at(&two)).await;
    scene.attached(&volume, &[&two]).await;
    scene.close(&["second"], &["data"], &[&volume]).await;
}
