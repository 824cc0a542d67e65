//! Provisioning in the right zone, and attaching to the machine of the pod.

use serde_json::json;

use crate::path::cluster_scoped;
use crate::scene::Scene;

/// With immediate binding the disk is created before any pod exists, and it is deleted with the claim.
pub(crate) async fn immediate(scene: &Scene<'_>) {
    scene.machine("one", "a").await;
    let immediate = json!({"volumeBindingMode": "Immediate"});
    let class = scene.class("now", json!({"type": "cloud_essd"}), immediate).await;
    scene.claim("data", &class, json!({})).await;
    let volume = scene.bound("data").await;
    let disk = scene.disk(&volume).await;
    assert_eq!(
        (&disk["category"], &disk["size"]),
        (&json!("cloud_essd"), &json!(20)),
        "{disk}"
    );
    scene.close(&[], &["data"], &[&volume]).await;
}

/// A claim of the chart's class waits for its pod; the disk is created in the zone of the pod's machine, attached
/// there, and tagged with the names of claim and cluster.
pub(crate) async fn first_consumer(scene: &Scene<'_>) {
    let machine = scene.machine("one", "b").await;
    scene.claim("data", "plain", json!({})).await;
    scene
        .wait_for_event("data", "WaitForFirstConsumer", "waiting for first consumer")
        .await;
    let volume = scene.attached_pod("app", "data", &machine).await;
    let disk = scene.disk(&volume).await;
    assert_eq!(disk["zone"], "cn-beijing-b", "{disk}");
    let tags = disk["tags"].to_string();
    for word in ["tier1", &scene.name, "data", &volume.name] {
        assert!(tags.contains(word), "{word} is not in {tags}");
    }
    scene.close(&["app"], &["data"], &[&volume]).await;
}

/// Pods in different zones get disks in their zones.
pub(crate) async fn three_zones(scene: &Scene<'_>) {
    let class = scene.class("zonal", json!({"type": "cloud_essd"}), json!({})).await;
    let mut volumes = Vec::new();
    for letter in ["a", "b", "c"] {
        let machine = scene.machine(letter, letter).await;
        scene.claim(letter, &class, json!({})).await;
        let zone = format!("cn-beijing-{letter}");
        let only = json!({"spec": {"nodeSelector": {"topology.kubernetes.io/zone": zone}}});
        scene.pod(letter, &[letter], only).await;
        volumes.push((letter, zone, machine));
    }
    for (letter, zone, machine) in volumes {
        let volume = scene.bound(letter).await;
        scene.attached(&volume, &[&machine]).await;
        assert_eq!(scene.disk(&volume).await["zone"], *zone);
        let path = cluster_scoped(&format!("persistentvolumes/{}", volume.name));
        let bound = scene.api.get(&path).await.unwrap();
        let terms = bound["spec"]["nodeAffinity"].to_string();
        assert!(terms.contains(&zone), "{terms}");
        scene.close(&[letter], &[letter], &[&volume]).await;
    }
}
