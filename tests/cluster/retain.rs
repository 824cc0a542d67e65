//! Retained disks and static volumes.

use serde_json::{Value, json};

use crate::cloud;
use crate::common::csi::create;
use crate::machine::DRIVER;
use crate::namespace::Volume;
use crate::path::cluster_scoped;
use crate::scene::Scene;
use crate::wait::until;

/// With `Retain` the disk remains after claim and volume are deleted; a static volume makes it available again.
pub(crate) async fn retained(scene: &Scene<'_>) {
    let machine = scene.machine("one", "a").await;
    let retain = json!({"reclaimPolicy": "Retain", "volumeBindingMode": "Immediate"});
    let class = scene
        .class("kept", json!({"type": "cloud_essd", "zoneId": "cn-beijing-a"}), retain)
        .await;
    scene.claim("data", &class, json!({})).await;
    let volume = scene.bound("data").await;
    scene.api.delete(&scene.path("persistentvolumeclaims", "data")).await;
    let path = cluster_scoped(&format!("persistentvolumes/{}", volume.name));
    until(&format!("{} is released", volume.name), async || {
        let volume = scene.api.get(&path).await?;
        (volume["status"]["phase"] == "Released").then_some(())
    })
    .await;
    scene.api.delete(&path).await;
    until(&format!("{} is deleted", volume.name), async || {
        scene.api.get(&path).await.is_none().then_some(())
    })
    .await;
    assert!(cloud::disk(&scene.cluster.cloud, &volume.disk).await.is_some());
    let back = static_volume(scene, "back", &volume.disk).await;
    scene.pod("app", &["back"], json!({})).await;
    scene.attached(&back, &[&machine]).await;
    scene.close(&["app"], &["back"], &[&back]).await;
}

/// A static volume with a disk ID is attached like any other.
pub(crate) async fn by_id(scene: &Scene<'_>) {
    let machine = scene.machine("one", "a").await;
    let channel = scene.cluster.connect().await;
    // Without topology the disk is created in the controller's zone, `a`.
    let disk = create(&channel, "made-elsewhere").await.expect("CreateVolume succeeds");
    let volume = static_volume(scene, "static", &disk).await;
    scene.pod("app", &["static"], json!({})).await;
    scene.attached(&volume, &[&machine]).await;
    scene.close(&["app"], &["static"], &[&volume]).await;
}

/// Creates a static volume for this disk in the zone `a`, and its claim.
async fn static_volume(scene: &Scene<'_>, claim: &str, disk: &str) -> Volume {
    let name = format!("{}-{claim}", scene.name);
    scene
        .api
        .create("/api/v1/persistentvolumes", &volume(&name, &scene.name, claim, disk))
        .await;
    let more = json!({"spec": {"storageClassName": "", "volumeName": name}});
    scene.claim(claim, "", more).await;
    let bound = scene.bound(claim).await;
    assert_eq!((bound.name.as_str(), bound.disk.as_str()), (name.as_str(), disk));
    bound
}

fn volume(name: &str, namespace: &str, claim: &str, disk: &str) -> Value {
    json!({
        // With this annotation the provisioner deletes the disk with the claim.
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": DRIVER}},
        "spec": {
            "capacity": {"storage": "20Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": "",
            "claimRef": {"namespace": namespace, "name": claim},
            "csi": {"driver": DRIVER, "volumeHandle": disk, "fsType": "ext4"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["cn-beijing-a"]},
            ]}]}},
        },
    })
}
