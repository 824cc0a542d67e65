//! Failures of the API server and of an access key.

use serde_json::json;

use crate::common::fake::KEY;
use crate::namespace::Volume;
use crate::path::core;
use crate::plane::NAMESPACE;
use crate::release::KEYS;
use crate::scene::Scene;
use crate::wait::until;

/// A restart of the API server does not change the outcome.
pub(crate) async fn apiserver_restarted(scene: &Scene<'_>) {
    let machine = scene.machine("one", "b").await;
    let class = scene.class("one", json!({"type": "cloud_essd"}), json!({})).await;
    for name in ["before", "after"] {
        scene.claim(name, &class, json!({})).await;
    }
    scene.pod("before", &["before"], json!({})).await;
    until("the first disk exists", async || {
        let disks = scene.cluster.cloud.disks().await;
        (!disks.is_empty()).then_some(())
    })
    .await;
    scene.cluster.plane.restart_apiserver().await;
    scene.pod("after", &["after"], json!({})).await;
    let volumes = [scene.bound("before").await, scene.bound("after").await];
    for volume in &volumes {
        scene.attached(volume, &[&machine]).await;
        created_once(scene, volume).await;
    }
    scene
        .close(&["before", "after"], &["before", "after"], &volumes.each_ref())
        .await;
}

/// If the access key is disabled, the event of the claim contains the advice; a new key in the Secret takes
/// effect in the running pod.
pub(crate) async fn key_rotated(scene: &Scene<'_>) {
    let cluster = scene.cluster;
    let machine = scene.machine("one", "c").await;
    // The only other credentials that the fake cloud accepts are those of an instance role.
    let keys = cluster.cloud.role_keys(&machine.instance).await;
    let text = |name: &str| crate::api::text(&keys, &format!("/{name}")).to_owned();
    cluster.cloud.configure(json!({"inactive_keys": [KEY]})).await;
    let class = scene.class("one", json!({"type": "cloud_essd"}), json!({})).await;
    scene.claim("data", &class, json!({})).await;
    scene.pod("app", &["data"], json!({})).await;
    // The class waits for its pod, which is scheduled although the stock cannot be queried.
    let message = scene
        .wait_for_event("data", "ProvisioningFailed", "ACCESS_KEY_INACTIVE")
        .await;
    assert!(message.contains("enable it"), "{message}");
    let changed = json!({"stringData": {
        "access-key-id": text("AccessKeyId"),
        "access-key-secret": text("AccessKeySecret"),
        "security-token": text("SecurityToken"),
    }});
    let secret = core(NAMESPACE, &format!("secrets/{KEYS}"));
    cluster.plane.api.change(&secret, &changed).await;
    let running = cluster.replica.lock().await;
    let replica = running.as_ref().expect("a pod runs");
    let mount_path = replica.volumes.join("credentials");
    cluster.release.mount(&cluster.plane, &mount_path).await;
    let before = replica.container("diskplugin").restarts();
    drop(running);
    let volume = scene.bound("data").await;
    scene.attached(&volume, &[&machine]).await;
    scene.close(&["app"], &["data"], &[&volume]).await;
    let running = cluster.replica.lock().await;
    let replica = running.as_ref().expect("a pod runs");
    let after = replica.container("diskplugin").restarts();
    assert_eq!(after, before, "the driver restarted");
}

/// Asserts that the cloud created one disk for the volume despite all retries.
pub(crate) async fn created_once(scene: &Scene<'_>, volume: &Volume) {
    let audit = scene.cluster.cloud.control("audit").await;
    let all = audit["created"].as_array().expect("a list").iter();
    let created: Vec<_> = all
        .filter(|created| created["action"] == "CreateDisk" && created["name"] == volume.name.as_str())
        .collect();
    assert_eq!(created.len(), 1, "{volume:?}: {audit}");
    assert_eq!(created[0]["ids"], json!([volume.disk]), "{volume:?}: {created:?}");
}
