//! All examples work in one cluster, applied as their pages describe.

use std::collections::BTreeMap;
use std::path::Path;

use diskplugin::csi::proto::controller_client::ControllerClient;
use diskplugin::csi::proto::{Topology, TopologyRequirement};
use serde_json::{Value, json};

use crate::api::text;
use crate::cloud;
use crate::common::csi::{try_connect, volume};
use crate::machine::{OF, SHARING};
use crate::manifests;
use crate::path::{cluster_scoped, core, grouped, storage};
use crate::scene::Scene;
use crate::wait::until;

/// The default namespace of `kubectl apply -f`, as in the static volumes of the examples.
const PLACE: &str = "default";
/// The zone of the static volumes.
const ZONE: &str = "cn-beijing-c";
/// The placeholder of a disk ID in the examples.
const PLACEHOLDER: &str = "d-2zeexample";
/// Machines by zone; each has a limit of three volumes. One zone must hold all pods whose volumes bind there.
const MACHINES: &str = "aaaaabbbbbccccc";

/// Applies each folder as its page describes, step by step; then every claim is bound, every volume is attached where
/// its pod is, and every snapshot is ready.
pub(crate) async fn work(scene: &Scene<'_>) {
    // Existing volumes cannot be applied with another disk.
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
    let most = steps.values().map(Vec::len).max().unwrap_or_default();
    assert!(steps.len() > 13 && most == 3, "{:?}", steps.keys());
    for step in 0..most {
        let files = steps.values().filter_map(|files| files.get(step));
        let files = files.flat_map(|file| ["--filename", file]);
        let args: Vec<&str> = ["--namespace", PLACE].into_iter().chain(files).collect();
        scene.cluster.plane.apply(&args).await;
        until(&format!("the examples work, step {}", step + 1), async || {
            work_now(scene).await.then_some(())
        })
        .await;
    }
    for (folder, key, wanted) in [("expand", "size", 40), ("performance", "provisioned_iops", 1000)] {
        changed(scene, folder, key, wanted).await;
    }
    open_to_all(scene, &machines, false).await;
    let bound = scene.api.list(&core(PLACE, "persistentvolumeclaims")).await;
    assert!(bound.len() > 17, "only {} claims", bound.len());
}

/// Runs the command of a folder's page that changes its claim, and waits until the disk has changed.
async fn changed(scene: &Scene<'_>, folder: &str, key: &str, wanted: u64) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("examples/{folder}/README.md"));
    let page = std::fs::read_to_string(page).expect("each folder has a page");
    let order = format!("\nkubectl patch pvc {folder} -p '");
    let (before, after) = page
        .split_once(&order)
        .expect("the page has the command that changes it");
    let apply = format!("\nkubectl apply -f examples/{folder} ");
    assert!(before.contains(&apply), "{folder} is changed before it is there");
    let (patch, _) = after.split_once("'\n").expect("the patch ends with its line");
    let args = ["patch", "pvc", folder, "-p", patch, "--namespace", PLACE];
    let logs = scene.cluster.plane.kubectl(args).await;
    assert_eq!(logs.code, Some(0), "{args:?}: {}", logs.stderr);
    let claims = core(PLACE, &format!("persistentvolumeclaims/{folder}"));
    let claim = scene.api.get(&claims).await.expect("it was applied");
    let volume = cluster_scoped(&format!("persistentvolumes/{}", text(&claim, "/spec/volumeName")));
    let volume = scene.api.get(&volume).await.expect("it is bound");
    let id = text(&volume, "/spec/csi/volumeHandle");
    until(&format!("{key} of {folder} is {wanted}"), async || {
        let disk = cloud::disk(&scene.cluster.cloud, id).await?;
        (disk[key] == wanted).then_some(())
    })
    .await;
}

/// Adds or removes the taint that keeps other pods away from these machines.
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
    let folders = folders.expect("the folder is there").map(|entry| entry.unwrap().path());
    let copies = scene.cluster.plane.directory("examples");
    let mut all = BTreeMap::new();
    for folder in folders.filter(|path| path.is_dir()) {
        let name = folder.file_name().unwrap().display().to_string();
        let files = std::fs::read_dir(&folder).expect("the folder is there");
        let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|end| end == "yaml"));
        files.sort();
        let mut steps = Vec::new();
        for file in files {
            let mut yaml = std::fs::read_to_string(&file).expect("it can be read");
            if let Some((_, rest)) = yaml.split_once(PLACEHOLDER) {
                let end: String = rest.chars().take_while(char::is_ascii_alphanumeric).collect();
                let disk = disk(scene, &name).await;
                yaml = yaml.replace(&format!("{PLACEHOLDER}{end}"), &disk);
            }
            let copy = copies.join(format!("{name}-{}", file.file_name().unwrap().display()));
            std::fs::write(&copy, yaml).expect("the directory can be written");
            steps.push(copy.display().to_string());
        }
        all.insert(name, steps);
    }
    all
}

/// A disk without the tags of this cluster.
async fn disk(scene: &Scene<'_>, name: &str) -> String {
    let running = scene.cluster.replica.lock().await;
    let socket = running.as_ref().expect("a pod runs").socket();
    drop(running);
    let channel = try_connect(&socket).await.expect("the driver serves");
    let mut request = volume(&format!("before-{name}"));
    let segments = [("topology.kubernetes.io/zone".to_owned(), ZONE.to_owned())];
    request.accessibility_requirements = Some(TopologyRequirement {
        requisite: vec![Topology {
            segments: segments.into(),
        }],
        preferred: Vec::new(),
    });
    let made = ControllerClient::new(channel).create_volume(request).await;
    let made = made.expect("a disk can be made").into_inner();
    made.volume.expect("a volume was made").volume_id
}

/// Whether all that is there by now works. Pods are logs to be ready when their volumes are there: a StatefulSet waits
/// for that.
async fn work_now(scene: &Scene<'_>) -> bool {
    let claims = scene.api.list(&core(PLACE, "persistentvolumeclaims")).await;
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
    let mut works = volume_of.len() == claims.len();
    let pods = scene.api.list(&core(PLACE, "pods")).await;
    for pod in &pods {
        let volumes = pod["spec"]["volumes"].as_array().into_iter().flatten();
        let claims = volumes.filter_map(|volume| volume.pointer("/persistentVolumeClaim/claimName")?.as_str());
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        let mut there = claims.map(|claim| {
            volume_of
                .get(claim)
                .is_some_and(|volume| attached.contains(&((*volume).to_owned(), node.to_owned())))
        });
        if there.all(|there| there) {
            ready(scene, pod).await;
        } else {
            works = false;
        }
    }
    works && sets_are_complete(scene).await && snapshots_are_ready(scene).await
}

/// Marks the pod as ready, as kubelet does.
async fn ready(scene: &Scene<'_>, pod: &Value) {
    let conditions = pod["status"]["conditions"].as_array();
    let is_ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
    if conditions.into_iter().flatten().any(is_ready) {
        return;
    }
    let path = core(PLACE, &format!("pods/{}/status", text(pod, "/metadata/name")));
    let ready = json!({"status": {
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
    }});
    scene.api.change_if_exists(&path, &ready).await;
}

/// Whether StatefulSets and Deployments have all their pods.
async fn sets_are_complete(scene: &Scene<'_>) -> bool {
    let mut cluster_scoped = true;
    for kind in ["statefulsets", "deployments"] {
        let path = grouped("apps", PLACE, kind);
        let sets = scene.api.list(&path).await;
        cluster_scoped &= sets
            .iter()
            .all(|set| set["status"]["readyReplicas"] == set["spec"]["replicas"]);
    }
    cluster_scoped
}

async fn snapshots_are_ready(scene: &Scene<'_>) -> bool {
    let mut ready = true;
    for (group, kind) in [
        ("snapshot.storage.k8s.io", "volumesnapshots"),
        ("groupsnapshot.storage.k8s.io", "volumegroupsnapshots"),
    ] {
        let path = grouped(group, PLACE, kind);
        let all = scene.api.list(&path).await;
        ready &= all.iter().all(|one| one["status"]["readyToUse"] == true);
    }
    ready
}
