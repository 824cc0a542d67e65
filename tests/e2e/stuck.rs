//! Volumes that are stuck: `diskplugin timeline` of the claim names the cause.

use std::io::{Seek, SeekFrom, Write};

use serde_json::{Value, json};

use crate::cloud;
use crate::cluster::Cluster;
use crate::command::succeed;
use crate::common::process::diskplugin;
use crate::install::{self, CONTROLLER, DRIVER};
use crate::path::{grouped, storage};
use crate::plane::NAMESPACE;
use crate::scene::Scene;
use crate::stay;
use crate::wait::until;

/// A class with immediate binding.
const IMMEDIATE: &str = "disk-at-once";
/// A class for a zone without nodes, and its zone.
const ELSEWHERE: &str = "elsewhere";
const OTHER_ZONE: &str = "cn-beijing-a";

/// Each volume is stuck for another reason, and becomes usable without it.
pub(crate) async fn the_cause_is_named(scene: &Scene<'_>) {
    let cloud = &scene.cluster.cloud;

    cloud.configure(json!({"out_of_stock": ["*/*"]})).await;
    scene.want("out-of-stock", IMMEDIATE).await;
    named(scene, "out-of-stock", &["OUT_OF_STOCK", "add categories to `type`"]).await;
    cloud.configure(json!({"out_of_stock": []})).await;

    cloud.configure(json!({"denied": ["CreateDisk"]})).await;
    scene.want("denied", IMMEDIATE).await;
    named(scene, "denied", &["ACCESS_DENIED", "check the RAM policy"]).await;
    cloud.configure(json!({"denied": []})).await;

    foreign_data(scene).await;
    stuck_detach(scene).await;
    wrong_zone(scene).await;
    no_controller(scene).await;
    let claims = ["out-of-stock", "denied", "foreign", "detach", "no-controller"];
    scene.close(&claims).await;
}

async fn foreign_data(scene: &Scene<'_>) {
    scene.want("foreign", IMMEDIATE).await;
    let volume = scene.bound("foreign").await;
    let serial = volume.disk.trim_start_matches("d-");
    let image = scene.cluster.devices().join(format!("disks/{serial}.img"));
    let mut image = std::fs::OpenOptions::new().write(true).open(image).unwrap();
    image.seek(SeekFrom::Start(8192)).unwrap();
    image.write_all(b"data of another owner").unwrap();
    image.sync_all().unwrap();
    scene.make("pods", &Scene::shell("foreign", &["foreign"])).await;
    let advice = "wipe the disk manually only if nobody needs it";
    named(scene, "foreign", &["FOREIGN_DATA", advice]).await;
    scene.end("foreign").await;
    scene.detached(&volume).await;
}

async fn stuck_detach(scene: &Scene<'_>) {
    let cloud = &scene.cluster.cloud;
    scene.want("detach", IMMEDIATE).await;
    scene.start("detach", &["detach"]).await;
    let volume = scene.bound("detach").await;
    let fault = json!({"action": "DetachDisk", "kind": "fails-later"});
    cloud.configure(json!({"faults": [fault]})).await;
    scene.end("detach").await;
    named(scene, "detach", &["waiting for the cloud to finish DetachDisk"]).await;
    cloud.configure(json!({"faults": []})).await;
    cloud.release(&volume.disk).await;
    scene.detached(&volume).await;
    let disk = cloud::disk(cloud, &volume.disk).await.unwrap();
    assert_eq!(cloud::holders(&disk), [""; 0]);
}

async fn wrong_zone(scene: &Scene<'_>) {
    let class = json!({
        "metadata": {"name": ELSEWHERE},
        "provisioner": DRIVER,
        "volumeBindingMode": "WaitForFirstConsumer",
        "parameters": {"type": "cloud_essd", "zoneId": OTHER_ZONE},
    });
    scene.api.create(&storage("storageclasses"), &class).await;
    scene.want("zone", ELSEWHERE).await;
    scene.make("pods", &Scene::shell("zone", &["zone"])).await;
    let cause = format!("the StorageClass {ELSEWHERE} allows {OTHER_ZONE}, and the nodes are in");
    named(scene, "zone", &[&cause, "FailedScheduling for Pod/zone"]).await;
    scene.end("zone").await;
    for path in [
        scene.path("persistentvolumeclaims", "zone"),
        storage(&format!("storageclasses/{ELSEWHERE}")),
    ] {
        scene.api.delete(&path).await;
    }
}

async fn no_controller(scene: &Scene<'_>) {
    let deployment = grouped("apps", NAMESPACE, &format!("deployments/{CONTROLLER}"));
    let scale = async |replicas: u32| -> Value {
        let patch = json!({"spec": {"replicas": replicas}});
        scene.api.change(&deployment, &patch).await
    };
    scale(0).await;
    scene.want("no-controller", IMMEDIATE).await;
    let cause = format!("the Deployment {NAMESPACE}/{CONTROLLER} is scaled to 0 replicas");
    named(scene, "no-controller", &[&cause, "kubectl -n"]).await;
    scale(1).await;
    install::ready(scene.cluster).await;
}

/// Waits until the conclusion for the claim contains these parts.
async fn named(scene: &Scene<'_>, claim: &str, parts: &[&str]) {
    let what = format!("the conclusion for {claim} contains {parts:?}");
    let mut last = String::new();
    until(&what, async || {
        let conclusion = conclusion(scene.cluster, &format!("{}/{claim}", scene.name)).await;
        if last != conclusion {
            println!("{claim}: {conclusion}");
            last.clone_from(&conclusion);
        }
        let has_all = parts.iter().all(|part| conclusion.contains(part));
        has_all.then_some(())
    })
    .await;
}

async fn conclusion(cluster: &Cluster, claim: &str) -> String {
    let kubeconfig = stay::kubeconfig(cluster, &cluster.plane.server);
    let kubeconfig = format!("--kubeconfig={kubeconfig}");
    let text = succeed(diskplugin(["timeline", claim, &kubeconfig])).await;
    let (_, conclusion) = text.rsplit_once("\n\n").expect("a conclusion");
    conclusion.to_owned()
}
