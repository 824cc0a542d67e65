//! Expanding and modifying volumes in use.

use serde_json::{Value, json};

use crate::path::cluster_scoped;
use crate::scene::Scene;
use crate::wait::until;

/// A larger claim expands the disk; kubelet expands the filesystem.
pub(crate) async fn expanded(scene: &Scene<'_>) {
    let machine = scene.pod_with_claim().await;
    let volume = scene.bound("data").await;
    scene.attached(&volume, &[&machine]).await;
    let path = scene.path("persistentvolumeclaims", "data");
    let larger = json!({"spec": {"resources": {"requests": {"storage": "45Gi"}}}});
    scene.api.change(&path, &larger).await;
    let volume_path = cluster_scoped(&format!("persistentvolumes/{}", volume.name));
    until("the filesystem expansion is pending", async || {
        let (volume, claim) = (scene.api.get(&volume_path).await?, scene.api.get(&path).await?);
        let conditions = claim["status"]["conditions"].as_array()?;
        let pending = conditions
            .iter()
            .any(|c| c["type"] == "FileSystemResizePending" && c["status"] == "True");
        (volume["spec"]["capacity"]["storage"] == "45Gi" && pending).then_some(())
    })
    .await;
    assert_eq!(scene.disk(&volume).await["size"], 45);
    scene.close(&["app"], &["data"], &[&volume]).await;
}

/// Another VolumeAttributesClass modifies the disk; an infeasible one is rejected permanently and can be reverted.
pub(crate) async fn modified(scene: &Scene<'_>) {
    let machine = scene.machine("one", "b").await;
    let class = scene.class("auto", json!({"type": "cloud_auto"}), json!({})).await;
    scene.claim("data", &class, of_class("normal")).await;
    let volume = scene.attached_pod("app", "data", &machine).await;
    assert_eq!(iops(&scene.disk(&volume).await), 0);
    let path = scene.path("persistentvolumeclaims", "data");
    scene.api.change(&path, &of_class("fast")).await;
    current(scene, &path, "fast").await;
    assert_eq!(iops(&scene.disk(&volume).await), 1000);
    scene.api.change(&path, &of_class("impossible")).await;
    until("the class is infeasible", async || {
        let claim = scene.api.get(&path).await?;
        (claim["status"]["modifyVolumeStatus"]["status"] == "Infeasible").then_some(())
    })
    .await;
    scene
        .wait_for_event("data", "VolumeModifyFailed", "MODIFY_REJECTED")
        .await;
    assert_eq!(iops(&scene.disk(&volume).await), 1000);
    scene.api.change(&path, &of_class("normal")).await;
    current(scene, &path, "normal").await;
    assert_eq!(iops(&scene.disk(&volume).await), 0);
    scene.close(&["app"], &["data"], &[&volume]).await;
}

fn of_class(class: &str) -> Value {
    json!({"spec": {"volumeAttributesClassName": class}})
}

fn iops(disk: &Value) -> u64 {
    disk["provisioned_iops"].as_u64().unwrap_or(0)
}

/// Waits until the claim has the class and no modification is in progress.
async fn current(scene: &Scene<'_>, path: &str, class: &str) {
    until(&format!("the volume is of class {class}"), async || {
        let claim = scene.api.get(path).await?;
        let status = &claim["status"];
        (status["currentVolumeAttributesClassName"] == class && status["modifyVolumeStatus"].is_null()).then_some(())
    })
    .await;
}
