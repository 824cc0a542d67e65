//! All examples work in one cluster, applied as their pages describe.

use std::collections::BTreeMap;
use std::path::Path;

use diskplugin::csi::proto::controller_client::ControllerClient;
use diskplugin::csi::proto::{DeleteVolumeRequest, ListSnapshotsRequest, Topology, TopologyRequirement};
use serde_json::{Value, json};

use crate::api::text;
use crate::cloud;
use crate::common::csi::volume;
use crate::machine::{OF, SHARING};
use crate::manifests;
use crate::path::{cluster_scoped, core, grouped, storage};
use crate::scene::Scene;
use crate::wait::until;

/// The default namespace of `kubectl apply -f`, as in the static volumes of the examples.
const NAMESPACE: &str = "default";
/// The zone of the static volumes.
const ZONE: &str = "cn-beijing-c";
/// The placeholder of a disk ID in the examples.
const PLACEHOLDER: &str = "d-2zeexample";
/// The placeholder of the ID of a snapshot that was taken before a deletion.
const SNAPSHOT: &str = "s-2zeexample";
/// Machines by zone; each has a limit of three volumes. All pods of a zone must fit on its machines.
const MACHINES: &str = "aaaaabbbbbccccc";

/// Applies each folder as its page describes, step by step; then every claim is bound, every volume is attached to
/// the node of its pod, and every snapshot is ready.
pub(crate) async fn work(scene: &Scene<'_>) {
    // Before the steps: an existing volume cannot be applied with another disk.
    manifests::examples(scene).await;
    let mut machines = Vec::new();
    for (number, zone) in MACHINES.chars().enumerate() {
        let name = format!("open-{number}");
        let machine = scene.machine_of(&name, &zone.to_string(), SHARING).await;
        machines.push(machine.path());
    }
    // Their pods have no tolerations; other scenarios use their own machines.
    open_to_all(scene, &machines, true).await;
    let steps = steps(scene).await;
    let max_steps = steps.values().map(Vec::len).max().unwrap_or_default();
    assert!(steps.len() > 13 && max_steps == 3, "{:?}", steps.keys());
    for step in 0..max_steps {
        let files = steps.values().filter_map(|files| files.get(step));
        let files = files.flat_map(|file| ["--filename", file]);
        let args: Vec<&str> = ["--namespace", NAMESPACE].into_iter().chain(files).collect();
        scene.cluster.plane.apply(&args).await;
        until(&format!("the examples work, step {}", step + 1), async || {
            is_ready_now(scene).await.then_some(())
        })
        .await;
    }
    for (folder, key, wanted) in [("expand", "size", 40), ("performance", "provisioned_iops", 1000)] {
        changed(scene, folder, key, wanted).await;
    }
    open_to_all(scene, &machines, false).await;
    let bound = scene.api.list(&core(NAMESPACE, "persistentvolumeclaims")).await;
    assert!(bound.len() > 17, "only {} claims", bound.len());
}

/// Runs the command of a folder's page that changes its claim, and waits until the disk has changed.
async fn changed(scene: &Scene<'_>, folder: &str, key: &str, wanted: u64) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{folder}/README.md"));
    let page = std::fs::read_to_string(page).expect("each folder has a page");
    let order = format!("\nkubectl patch pvc {folder} -p '");
    let (before, after) = page.split_once(&order).expect("the page has the command");
    let apply = format!("\nkubectl apply -f examples/{folder} ");
    assert!(before.contains(&apply), "{folder} is changed before it is created");
    let (patch, _) = after.split_once("'\n").expect("the patch ends at the end of the line");
    let args = ["patch", "pvc", folder, "-p", patch, "--namespace", NAMESPACE];
    let logs = scene.cluster.plane.kubectl(args).await;
    assert_eq!(logs.code, Some(0), "{args:?}: {}", logs.stderr);
    let claims = core(NAMESPACE, &format!("persistentvolumeclaims/{folder}"));
    let claim = scene.api.get(&claims).await.expect("the claim exists");
    let volume = cluster_scoped(&format!("persistentvolumes/{}", text(&claim, "/spec/volumeName")));
    let volume = scene.api.get(&volume).await.expect("the volume exists");
    let id = text(&volume, "/spec/csi/volumeHandle");
    until(&format!("{key} of {folder} is {wanted}"), async || {
        let disk = cloud::disk(&scene.cluster.cloud, id).await?;
        (disk[key] == wanted).then_some(())
    })
    .await;
}

/// Removes or adds the taint of these machines.
async fn open_to_all(scene: &Scene<'_>, machines: &[String], open: bool) {
    let closed = json!([{"key": OF, "value": scene.name, "effect": "NoSchedule"}]);
    let taints = if open { Value::Null } else { closed };
    for path in machines {
        let change = json!({"spec": {"taints": taints}});
        scene.api.change(path, &change).await;
    }
}

/// The files of each folder in the order of application, with IDs of existing disks.
async fn steps(scene: &Scene<'_>) -> BTreeMap<String, Vec<String>> {
    let folders = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples"));
    let folders = folders.expect("the folder exists").map(|entry| entry.unwrap().path());
    let copies = scene.cluster.plane.directory("examples");
    let mut all = BTreeMap::new();
    for folder in folders.filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap().display().to_string();
        let files = std::fs::read_dir(&folder).expect("the folder exists");
        let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|end| end == "yaml"));
        files.sort();
        let mut steps = Vec::new();
        for file in files {
            let mut yaml = std::fs::read_to_string(&file).expect("the file can be read");
            for placeholder in [PLACEHOLDER, SNAPSHOT] {
                if let Some((_, rest)) = yaml.split_once(placeholder) {
                    let end: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
                    let id = match placeholder {
                        SNAPSHOT => deletion_snapshot(scene, &name).await,
                        _ => disk(scene, &name, None).await,
                    };
                    yaml = yaml.replace(&format!("{placeholder}{end}"), &id);
                }
            }
            let copy = copies.join(format!("{name}-{}", file.file_name().unwrap().display()));
            std::fs::write(&copy, yaml).expect("the directory can be written");
            steps.push(copy.display().to_string());
        }
        all.insert(name, steps);
    }
    all
}

/// The snapshot that the driver takes before it deletes a disk.
async fn deletion_snapshot(scene: &Scene<'_>, name: &str) -> String {
    let volume_id = disk(scene, name, Some(("volumeDeleteSnapshotRetentionDays", "7"))).await;
    let client = ControllerClient::new(scene.cluster.connect().await);
    until(&format!("{volume_id} is deleted"), async || {
        let request = DeleteVolumeRequest {
            volume_id: volume_id.clone(),
            ..DeleteVolumeRequest::default()
        };
        client.clone().delete_volume(request).await.ok()
    })
    .await;
    let request = ListSnapshotsRequest {
        source_volume_id: volume_id,
        ..ListSnapshotsRequest::default()
    };
    let listed = client.clone().list_snapshots(request).await;
    let mut entries = listed.expect("ListSnapshots succeeds").into_inner().entries;
    assert_eq!(entries.len(), 1, "{entries:?}");
    let snapshot = entries.remove(0).snapshot;
    snapshot.expect("the entry has a snapshot").snapshot_id
}

/// The disk of no claim, of a class with this parameter.
async fn disk(scene: &Scene<'_>, name: &str, parameter: Option<(&str, &str)>) -> String {
    let channel = scene.cluster.connect().await;
    let mut request = volume(&format!("before-{name}"));
    let parameter = parameter.map(|(key, value)| (key.to_owned(), value.to_owned()));
    request.parameters.extend(parameter);
    let segments = [("topology.kubernetes.io/zone".to_owned(), ZONE.to_owned())];
    request.accessibility_requirements = Some(TopologyRequirement {
        requisite: vec![Topology {
            segments: segments.into(),
        }],
        preferred: Vec::new(),
    });
    let response = ControllerClient::new(channel).create_volume(request).await;
    let response = response.expect("CreateVolume succeeds").into_inner();
    response.volume.expect("the response has a volume").volume_id
}

/// Whether all objects applied so far are ready. Marks pods as ready when their volumes are attached: a StatefulSet
/// waits for that.
async fn is_ready_now(scene: &Scene<'_>) -> bool {
    let claims = scene.api.list(&core(NAMESPACE, "persistentvolumeclaims")).await;
    let volume_of: BTreeMap<&str, &str> = claims
        .iter()
        .filter(|claim| claim["status"]["phase"] == "Bound")
        .map(|claim| (text(claim, "/metadata/name"), text(claim, "/spec/volumeName")))
        .collect();
    let attached: Vec<(String, String)> = scene
        .api
        .list(&storage("volumeattachments"))
        .await
        .iter()
        .filter(|one| one["status"]["attached"] == true)
        .map(|one| {
            let volume = text(one, "/spec/source/persistentVolumeName").to_owned();
            (volume, text(one, "/spec/nodeName").to_owned())
        })
        .collect();
    let mut ready_now = volume_of.len() == claims.len();
    let pods = scene.api.list(&core(NAMESPACE, "pods")).await;
    for pod in &pods {
        let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let claims = volumes.filter_map(|volume| volume.pointer("/persistentVolumeClaim/claimName")?.as_str());
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let mut attached = claims.map(|claim| {
            volume_of
                .get(claim)
                .is_some_and(|volume| attached.contains(&((*volume).to_owned(), node.to_owned())))
        });
        if attached.all(|attached| attached) {
            ready(scene, pod).await;
        } else {
            ready_now = false;
        }
    }
    ready_now && sets_are_complete(scene).await && snapshots_are_ready(scene).await
}

/// Marks the pod as ready, as kubelet does.
async fn ready(scene: &Scene<'_>, pod: &Value) {
    let conditions = pod["status"]["conditions"].as_array();
    let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
    if conditions.into_iter().flatten().any(is_ready) {
        return;
    }
    let path = core(NAMESPACE, &format!("pods/{}/status", text(pod, "/metadata/name")));
    let ready = json!({"status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
    }});
    scene.api.patch_if_exists(&path, &ready).await;
}

/// Whether StatefulSets and Deployments have all their pods.
async fn sets_are_complete(scene: &Scene<'_>) -> bool {
    let mut complete = true;
    for kind in ["statefulsets", "deployments"] {
        let path = grouped("apps", NAMESPACE, kind);
        let sets = scene.api.list(&path).await;
        complete &= sets
            .iter()
            .all(|set| set["status"]["readyReplicas"] == set["spec"]["replicas"]);
    }
    complete
}

async fn snapshots_are_ready(scene: &Scene<'_>) -> bool {
    let mut ready = true;
    for (group, kind) in [
        ("snapshot.storage.k8s.io", "volumesnapshots"),
        ("groupsnapshot.storage.k8s.io", "volumegroupsnapshots"),
    ] {
        let path = grouped(group, NAMESPACE, kind);
        let all = scene.api.list(&path).await;
        ready &= all.iter().all(|one| one["status"]["readyToUse"] == true);
    }
    ready
}
