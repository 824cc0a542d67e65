//! Categories that are out of stock, and fallbacks.

use serde_json::json;

use crate::cloud::set_out_of_stock;
use crate::path::grouped;
use crate::plane::NAMESPACE;
use crate::scene::Scene;
use crate::wait::until;

/// A pod that prefers a zone where its category is out of stock is scheduled in the other zone.
pub(crate) async fn elsewhere(scene: &Scene<'_>) {
    scene.machine("one", "a").await;
    let other = scene.machine("two", "b").await;
    let class = scene.class("rare", json!({"type": "cloud_ssd"}), json!({})).await;
    // The capacity that the scheduler uses is stale, as after a recent stock-out.
    let path = grouped("storage.k8s.io", NAMESPACE, "csistoragecapacities");
    until("CSIStorageCapacity lists the zones of the class", async || {
        let all = scene.api.list(&path).await;
        let of = all
            .iter()
            .filter(|capacity| capacity["storageClassName"] == class.as_str());
        (of.count() >= 2).then_some(())
    })
    .await;
    set_out_of_stock(&scene.cluster.cloud, &["cn-beijing-a/cloud_ssd"]).await;
    scene.claim("data", &class, json!({})).await;
    let preferred = json!({"spec": {"affinity": {"nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "preference": {
            "matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["cn-beijing-a"]},
            ],
        }}],
    }}}});
    scene.pod("app", &["data"], preferred).await;
    let volume = scene.bound("data").await;
    scene.attached(&volume, &[&other]).await;
    assert_eq!(scene.disk(&volume).await["zone"], "cn-beijing-b");
    scene.close(&["app"], &["data"], &[&volume]).await;
}

/// If the first category of `available` is out of stock, the next one is used.
pub(crate) async fn fallback(scene: &Scene<'_>) {
    let machine = scene.machine("one", "c").await;
    let class = scene.class("any", json!({"type": "available"}), json!({})).await;
    scene.claim("data", &class, json!({})).await;
    let volume = scene.attached_pod("app", "data", &machine).await;
    let disk = scene.disk(&volume).await;
    assert_eq!(
        (&disk["category"], &disk["zone"]),
        (&json!("cloud_ssd"), &json!("cn-beijing-c")),
        "{disk}"
    );
    scene.close(&["app"], &["data"], &[&volume]).await;
}
