//! From a claim to a disk in the right zone, and to the machine of the pod.

use serde_json::json;

use crate::path::whole;
use crate::scene::Scene;

/// A claim of a class that binds at once has its disk before there is any pod, and loses it with the claim.
pub(crate) async fn immediate(scene: &Scene<'_>) {
    scene.machine("one", "a").await;
    let at_once = json!({"volumeBindingMode": "Immediate"});
    let class = scene
        .class("now", json!({"type": "cloud_essd"}), at_once)
        .await;
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

/// A claim of the chart's own class waits for its pod; the disk is made in the zone of the pod's machine, is
/// attached there, and carries the names of claim and cluster.
pub(crate) async fn first_consumer(scene: &Scene<'_>) {
    let machine = scene.machine("one", "b").await;
    scene.claim("data", "plain", json!({})).await;
    scene
        .told("data", "WaitForFirstConsumer", "waiting for first consumer")
        .await;
    scene.pod("app", &["data"], json!({})).await;
    let volume = scene.bound("data").await;
    scene.attached(&volume, &[&machine]).await;
    let disk = scene.disk(&volume).await;
    assert_eq!(disk["zone"], "cn-beijing-b", "{disk}");
    let tags = disk["tags"].to_string();
    for word in ["tier1", &scene.name, "data", &volume.name] {
        assert!(tags.contains(word), "{word} is not in {tags}");
    }
    scene.close(&["app"], &["data"], &[&volume]).await;
}

/// Pods that must be in different zones get their disks there, and a volume goes nowhere else.
pub(crate) async fn three_zones(scene: &Scene<'_>) {
    let class = scene
        .class("zonal", json!({"type": "cloud_essd"}), json!({}))
        .await;
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
        let path = whole(&format!("persistentvolumes/{}", volume.name));
        let bound = scene.api.get(&path).await.unwrap();
        let terms = bound["spec"]["nodeAffinity"].to_string();
        assert!(terms.contains(&zone), "{terms}");
        scene.close(&[letter], &[letter], &[&volume]).await;
    }
}
