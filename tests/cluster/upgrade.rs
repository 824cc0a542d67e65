//! A release is upgraded while a volume is in use: objects and volumes are kept, and new values take effect.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::api::text;
use crate::cloud;
use crate::cluster::Cluster;
use crate::common::process::Ended;
use crate::helm::helm;
use crate::machine::{Machine, PLAIN};
use crate::namespace::Volume;
use crate::path::{cluster_scoped, core, storage};
use crate::release::{Release, Spec};
use crate::scene::Scene;
use crate::wait::until;

/// The StorageClass of its values.
const CLASS: &str = "upgraded-plain";
/// The same class with another parameter.
const REPLACED: &str = "storageClasses[0].name=upgraded-plain,storageClasses[0].parameters.type=cloud_auto";

/// UIDs of objects by kind and name.
type Uids = BTreeMap<(String, String), String>;

/// Installs the chart of 0.1.0 with optional parts disabled next to another release, and upgrades it while a volume is
/// in use. An upgrade that Kubernetes would refuse changes nothing. Otherwise objects keep their UIDs, the volume stays
/// attached, and a claim created during the upgrade is provisioned, with a class that was replaced.
pub(crate) async fn upgraded_in_use(scene: &Scene<'_>) {
    let cluster = scene.cluster;
    let plane = &cluster.plane;
    let spec = Spec {
        name: "upgraded",
        namespace: &scene.name,
        driver: "upgraded.csi.example",
        values: "tests/cluster/upgrade.yaml",
        chart: Some("tests/cluster/diskplugin-0.1.0.tgz"),
    };
    let mut release = Release::install(plane, &cluster.cloud, &spec).await;
    let pod = release.start(plane, 0).await;
    let machine = scene.machine_for(&release, "one", ("a", PLAIN)).await;
    scene.claim("data", CLASS, json!({})).await;
    let volume = scene.attached_pod("app", "data", &machine).await;

    assert_refused(cluster, &release).await;
    let (mut objects, users) = (uids(cluster, &release).await, used(scene, &volume).await);
    objects.retain(|(kind, _), _| kind != "StorageClass");
    let before = machine.node_info(cluster, &release).await;
    pod.kill().await;
    scene.claim("meanwhile", CLASS, json!({})).await;
    scene.pod("later", &["meanwhile"], json!({})).await;
    let ended = plane.kubectl(["delete", "storageclass", CLASS]).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    release
        .upgrade(plane, &["--set", "instanceTypes.publish=true", "--set", REPLACED])
        .await;

    let (objects_now, users_now) = (uids(cluster, &release).await, used(scene, &volume).await);
    assert_eq!(users, users_now, "an object that uses the volume was recreated");
    let lost = objects.iter().filter(|(at, uid)| objects_now.get(*at) != Some(*uid));
    let lost: Vec<_> = lost.map(|(at, _)| at).collect();
    assert!(lost.is_empty(), "deleted or recreated: {lost:?}");
    assert_attached(cluster, &volume, &machine).await;
    wait_replaced(scene, &release).await;
    // The new pod reports the topology that the volume has.
    let (_, segments) = machine.node_info(cluster, &release).await;
    for (key, value) in &before.1 {
        assert_eq!(segments.get(key), Some(value), "{key} of the node");
    }

    let pod = release.start(plane, 0).await;
    let second = scene.bound("meanwhile").await;
    scene.attached(&second, &[&machine]).await;
    wait_until_published(scene).await;
    assert_attached(cluster, &volume, &machine).await;
    scene
        .close(&["app", "later"], &["data", "meanwhile"], &[&volume, &second])
        .await;
    pod.kill().await;
    release.uninstall(plane).await;
}

/// Asserts that upgrades that Kubernetes would refuse are refused by Helm, with the fields, and change nothing.
async fn assert_refused(cluster: &Cluster, release: &Release) {
    let plane = &cluster.plane;
    let before = contents(cluster, release).await;
    for (set, texts) in [
        (
            REPLACED,
            [
                "StorageClass upgraded-plain, storageClasses[0]",
                "parameters.type is \"cloud_essd,cloud_auto\", and \"cloud_auto\"",
            ],
        ),
        (
            "volumeAttributesClasses[0].name=upgraded-fast,volumeAttributesClasses[0].parameters.type=cloud_essd",
            [
                "VolumeAttributesClass upgraded-fast, volumeAttributesClasses[0]",
                "parameters.provisionedIops is \"1000\", and not set",
            ],
        ),
        (
            "fullnameOverride=other",
            [
                "DaemonSet upgraded-diskplugin-node",
                "set fullnameOverride to \"upgraded-diskplugin\"",
            ],
        ),
        (
            "nameOverride=n,fullnameOverride=upgraded-diskplugin",
            ["Deployment upgraded-diskplugin-controller", "matchLabels"],
        ),
        (
            "clusterId=other",
            ["--cluster-id=upgraded is installed", "restore the value"],
        ),
    ] {
        let Ended { code, stderr, .. } = release.try_upgrade(plane, &["--set", set]).await;
        assert_eq!(code, Some(1), "{set}: {stderr}");
        assert!(texts.iter().all(|text| stderr.contains(text)), "{set}: {stderr}");
    }
    assert_eq!(before, contents(cluster, release).await);
    let history = helm(plane, &release.namespace, ["history", "upgraded", "--output=json"]).await;
    let history: Value = serde_json::from_str(&history).unwrap();
    assert_eq!(history.as_array().map(Vec::len), Some(1), "{history}");
}

/// The release's objects without what controllers write.
async fn contents(cluster: &Cluster, release: &Release) -> Vec<Value> {
    let mut objects = release.objects(&cluster.plane).await;
    for object in &mut objects {
        let body = object.as_object_mut().unwrap();
        body.remove("status");
        let metadata = body["metadata"].as_object_mut().unwrap();
        metadata.retain(|key, _| !["resourceVersion", "managedFields"].contains(&key.as_str()));
    }
    objects
}

/// The UIDs of the release's objects.
async fn uids(cluster: &Cluster, release: &Release) -> Uids {
    let objects = release.objects(&cluster.plane).await;
    assert!(objects.len() > 20, "only {} objects", objects.len());
    let at = |object: &Value| {
        (
            text(object, "/kind").to_owned(),
            text(object, "/metadata/name").to_owned(),
        )
    };
    let uid = |object: &Value| text(object, "/metadata/uid").to_owned();
    objects.iter().map(|object| (at(object), uid(object))).collect()
}

/// The UIDs of the objects that use the volume.
async fn used(scene: &Scene<'_>, volume: &Volume) -> Uids {
    let attachments = scene.api.list(&storage("volumeattachments")).await;
    let attachment = attachments
        .iter()
        .find(|one| one["spec"]["source"]["persistentVolumeName"] == volume.name.as_str());
    let attachment = text(attachment.expect("the volume is attached"), "/metadata/name");
    let paths = [
        storage(&format!("volumeattachments/{attachment}")),
        cluster_scoped(&format!("persistentvolumes/{}", volume.name)),
        scene.path("persistentvolumeclaims", "data"),
        scene.path("pods", "app"),
    ];
    let mut uids = Uids::new();
    for path in paths {
        let object = scene.api.get(&path).await;
        let object = object.unwrap_or_else(|| panic!("{path} is missing"));
        uids.insert((path, String::new()), text(&object, "/metadata/uid").to_owned());
    }
    uids
}

/// Asserts that the disk is attached to the machine in the cloud.
async fn assert_attached(cluster: &Cluster, volume: &Volume, machine: &Machine) {
    let disk = cloud::disk(&cluster.cloud, &volume.disk).await;
    let disk = disk.expect("the disk exists");
    let held = cloud::holders(&disk);
    assert_eq!(held, std::slice::from_ref(&machine.instance), "{disk}");
}

/// Waits until the DaemonSet has a new pod on the machine. There is no kubelet to terminate the old one.
async fn wait_replaced(scene: &Scene<'_>, release: &Release) {
    let labels = "app.kubernetes.io%2Fcomponent%3Dnode";
    let pods = core(&scene.name, &format!("pods?labelSelector={labels}"));
    let wanted = &release.node["spec"]["containers"][0];
    until("the DaemonSet has its new pod", async || {
        let pods = scene.api.list(&pods).await;
        for pod in &pods {
            if pod["metadata"]["deletionTimestamp"].is_string() {
                scene.end(text(pod, "/metadata/name")).await;
            }
        }
        let new = pods.iter().all(|pod| {
            let found = &pod["spec"]["containers"][0];
            ["command", "args", "image"].iter().all(|key| found[key] == wanted[key])
        });
        (new && pods.len() == 1).then_some(())
    })
    .await;
}

/// Waits until the feature that the upgrade enabled works.
async fn wait_until_published(scene: &Scene<'_>) {
    let map = scene.path("configmaps", "upgraded-diskplugin-instance-types");
    until("the ConfigMap has the attachment limits", async || {
        let map = scene.api.get(&map).await?;
        let content = map["data"]["instance-types.json"].as_str()?;
        content.contains(PLAIN).then_some(())
    })
    .await;
}
