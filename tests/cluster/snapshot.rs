//! Snapshots, group snapshots, restores and clones.

use serde_json::{Value, json};

use crate::api::text;
use crate::machine::Machine;
use crate::namespace::Volume;
use crate::path::grouped;
use crate::scene::Scene;
use crate::wait::until;

const SNAPSHOTS: &str = "snapshot.storage.k8s.io";
const GROUPS: &str = "groupsnapshot.storage.k8s.io";
/// The chart's VolumeSnapshotClass and VolumeGroupSnapshotClass.
const CLASS: &str = "plain";

/// A snapshot of a volume in use is restored into a larger volume, and deleted in the cloud.
pub(crate) async fn restored(scene: &Scene<'_>) {
    let (machine, class, volume) = source_volume(scene, "a").await;
    let source = json!({"persistentVolumeClaimName": "data"});
    let spec = json!({"volumeSnapshotClassName": CLASS, "source": source});
    let snapshot = create(scene, SNAPSHOTS, "VolumeSnapshot", &spec).await;
    claim_from(scene, "restored", &class, "40Gi", &of_snapshot("now")).await;
    let restored = scene.attached_pod("second", "restored", &machine).await;
    let disk = scene.disk(&restored).await;
    assert_eq!(disk["size"], 40, "{disk}");
    let made = scene.cluster.cloud.control("state").await["snapshots"].to_string();
    assert!(
        made.contains(&volume.disk),
        "no snapshot of {} among {made}",
        volume.disk
    );
    scene.close(&["second"], &["restored"], &[&restored]).await;
    scene.api.delete(&snapshot).await;
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
    let source = json!({"selector": {"matchLabels": {"app": "both"}}});
    let spec = json!({"volumeGroupSnapshotClassName": CLASS, "source": source});
    let group = create(scene, GROUPS, "VolumeGroupSnapshot", &spec).await;
    let members = grouped(SNAPSHOTS, &scene.name, "volumesnapshots");
    let member = until("the group has its two members", async || {
        let members = scene.api.list(&members).await;
        let ready = members.iter().filter(|member| member["status"]["readyToUse"] == true);
        (ready.count() == 2).then(|| text(&members[0], "/metadata/name").to_owned())
    })
    .await;
    claim_from(scene, "restored", &class, "20Gi", &of_snapshot(&member)).await;
    scene.pod("second", &["restored"], json!({})).await;
    let restored = scene.bound("restored").await;
    scene.close(&["second"], &["restored"], &[&restored]).await;
    scene.api.delete(&group).await;
    for volume in [&data, &log] {
        no_snapshot(scene, &volume.disk).await;
    }
    scene.close(&["app"], &["data", "log"], &[&data, &log]).await;
}

/// A clone is created, and its temporary snapshot is deleted.
pub(crate) async fn clone(scene: &Scene<'_>) {
    let (machine, class, volume) = source_volume(scene, "c").await;
    let source = json!({"kind": "PersistentVolumeClaim", "name": "data"});
    claim_from(scene, "copy", &class, "20Gi", &source).await;
    let copy = scene.attached_pod("second", "copy", &machine).await;
    assert_ne!(copy.disk, volume.disk);
    no_snapshot(scene, &volume.disk).await;
    scene
        .close(&["app", "second"], &["data", "copy"], &[&volume, &copy])
        .await;
}

/// A machine in the zone of this letter, a class, and the attached volume of the pod `app` and the claim `data`.
async fn source_volume(scene: &Scene<'_>, letter: &str) -> (Machine, String, Volume) {
    let machine = scene.machine("one", letter).await;
    let class = scene.class("one", json!({"type": "cloud_essd"}), json!({})).await;
    scene.claim("data", &class, json!({})).await;
    let volume = scene.attached_pod("app", "data", &machine).await;
    (machine, class, volume)
}

/// The data source of a claim that is restored from this snapshot.
fn of_snapshot(name: &str) -> Value {
    json!({"apiGroup": SNAPSHOTS, "kind": "VolumeSnapshot", "name": name})
}

/// A claim with a data source.
async fn claim_from(scene: &Scene<'_>, name: &str, class: &str, size: &str, source: &Value) {
    let more = json!({"spec": {"dataSource": source, "resources": {"requests": {"storage": size}}}});
    scene.claim(name, class, more).await;
}

/// Creates the object `now`, waits until it is ready, and returns its path.
async fn create(scene: &Scene<'_>, group: &str, kind: &str, spec: &Value) -> String {
    let object = json!({
        "apiVersion": format!("{group}/v1"),
        "kind": kind,
        "metadata": {"name": "now"},
        "spec": spec,
    });
    let all = grouped(group, &scene.name, &format!("{}s", kind.to_lowercase()));
    scene.api.create(&all, &object).await;
    let path = format!("{all}/now");
    until(&format!("{path} is ready"), async || {
        let made = scene.api.get(&path).await?;
        (made["status"]["readyToUse"] == true).then_some(())
    })
    .await;
    path
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
