//! Snapshots, group snapshots, restores and clones.

use serde_json::{Value, json};

use crate::api::text;
use crate::path::grouped;
use crate::scene::Scene;
use crate::wait::until;

const SNAPSHOTS: &str = "snapshot.storage.k8s.io";
const GROUPS: &str = "groupsnapshot.storage.k8s.io";
/// The chart's VolumeSnapshotClass and VolumeGroupSnapshotClass.
const CLASS: &str = "plain";

/// A snapshot of a volume in use is restored into a larger volume, and deleted in the cloud.
pub(crate) async fn restored(scene: &Scene<'_>) {
    let machine = scene.machine("one", "a").await;
    let class = scene.class("one", json!({"type": "cloud_essd"}), json!({})).await;
    scene.claim("data", &class, json!({})).await;
    scene.pod("app", &["data"], json!({})).await;
    let volume = scene.bound("data").await;
    scene.attached(&volume, &[&machine]).await;
    let source = json!({"persistentVolumeClaimName": "data"});
    let snapshot = json!({
        "apiVersion": "snapshot.storage.k8s.io/v1",
        "kind": "VolumeSnapshot",
        "metadata": {"name": "now"},
        "spec": {"volumeSnapshotClassName": CLASS, "source": source},
    });
    scene
        .api
        .create(&grouped(SNAPSHOTS, &scene.name, "volumesnapshots"), &snapshot)
        .await;
    wait_ready(scene, SNAPSHOTS, "volumesnapshots", "now").await;
    claim_from(
        scene,
        "restored",
        &class,
        "40Gi",
        &json!({"apiGroup": SNAPSHOTS, "kind": "VolumeSnapshot", "name": "now"}),
    )
    .await;
    scene.pod("second", &["restored"], json!({})).await;
    let restored = scene.bound("restored").await;
    scene.attached(&restored, &[&machine]).await;
    let disk = scene.disk(&restored).await;
    assert_eq!(disk["size"], 40, "{disk}");
    let made = scene.cluster.cloud.control("state").await["snapshots"].to_string();
    assert!(
        made.contains(&volume.disk),
        "no snapshot of {} among {made}",
        volume.disk
    );
    scene.close(&["second"], &["restored"], &[&restored]).await;
    scene
        .api
        .delete(&grouped(SNAPSHOTS, &scene.name, "volumesnapshots/now"))
        .await;
    no_snapshot(scene, &volume.disk).await;
    scene.close(&["app"], &["data"], &[&volume]).await;
}

/// The snapshots of a group are created together, can be restored, and are deleted with the group.
pub(crate) async fn group(scene: &Scene<'_>) {
    let machine = scene.machine("one", "b").await;
    let class = scene.class("one", json!({"type": "cloud_essd"}), json!({})).await;
    let of = json!({"metadata": {"labels": {"app": "both"}}});
    for name in ["data", "log"] {
        scene.claim(name, &class, of.clone()).await;
    }
    scene.pod("app", &["data", "log"], json!({})).await;
    let (data, log) = (scene.bound("data").await, scene.bound("log").await);
    for volume in [&data, &log] {
        scene.attached(volume, &[&machine]).await;
    }
    let group = json!({
        "apiVersion": "groupsnapshot.storage.k8s.io/v1",
        "kind": "VolumeGroupSnapshot",
        "metadata": {"name": "now"},
        "spec": {"volumeGroupSnapshotClassName": CLASS, "source": {"selector": {"matchLabels": {"app": "both"}}}},
    });
    scene
        .api
        .create(&grouped(GROUPS, &scene.name, "volumegroupsnapshots"), &group)
        .await;
    wait_ready(scene, GROUPS, "volumegroupsnapshots", "now").await;
    let members = grouped(SNAPSHOTS, &scene.name, "volumesnapshots");
    let member = until("the group has its two members", async || {
        let members = scene.api.list(&members).await;
        let ready = members.iter().filter(|member| member["status"]["readyToUse"] == true);
        (ready.count() == 2).then(|| text(&members[0], "/metadata/name").to_owned())
    })
    .await;
    claim_from(
        scene,
        "restored",
        &class,
        "20Gi",
        &json!({"apiGroup": SNAPSHOTS, "kind": "VolumeSnapshot", "name": member}),
    )
    .await;
    scene.pod("second", &["restored"], json!({})).await;
    let restored = scene.bound("restored").await;
    scene.close(&["second"], &["restored"], &[&restored]).await;
    scene
        .api
        .delete(&grouped(GROUPS, &scene.name, "volumegroupsnapshots/now"))
        .await;
    for volume in [&data, &log] {
        no_snapshot(scene, &volume.disk).await;
    }
    scene.close(&["app"], &["data", "log"], &[&data, &log]).await;
}

/// A clone is created, and its temporary snapshot is deleted.
pub(crate) async fn clone(scene: &Scene<'_>) {
    let machine = scene.machine("one", "c").await;
    let class = scene.class("one", json!({"type": "cloud_essd"}), json!({})).await;
    scene.claim("data", &class, json!({})).await;
    scene.pod("app", &["data"], json!({})).await;
    let volume = scene.bound("data").await;
    scene.attached(&volume, &[&machine]).await;
    claim_from(
        scene,
        "copy",
        &class,
        "20Gi",
        &json!({"kind": "PersistentVolumeClaim", "name": "data"}),
    )
    .await;
    scene.pod("second", &["copy"], json!({})).await;
    let copy = scene.bound("copy").await;
    scene.attached(&copy, &[&machine]).await;
    assert_ne!(copy.disk, volume.disk);
    no_snapshot(scene, &volume.disk).await;
    scene
        .close(&["app", "second"], &["data", "copy"], &[&volume, &copy])
        .await;
}

/// A claim with a data source.
async fn claim_from(scene: &Scene<'_>, name: &str, class: &str, size: &str, source: &Value) {
    let more = json!({"spec": {"dataSource": source, "resources": {"requests": {"storage": size}}}});
    scene.claim(name, class, more).await;
}

async fn wait_ready(scene: &Scene<'_>, group: &str, kind: &str, name: &str) {
    let path = grouped(group, &scene.name, &format!("{kind}/{name}"));
    until(&format!("{}: {kind}/{name} is ready", scene.name), async || {
        let made = scene.api.get(&path).await?;
        (made["status"]["readyToUse"] == true).then_some(())
    })
    .await;
}

/// Waits until the cloud has no snapshot of the disk.
async fn no_snapshot(scene: &Scene<'_>, disk: &str) {
    until(&format!("{disk} has no snapshot"), async || {
        let state = scene.cluster.cloud.control("state").await;
        let snapshots = state["snapshots"].as_array()?;
        snapshots.iter().all(|snapshot| snapshot["disk"] != disk).then_some(())
    })
    .await;
}
