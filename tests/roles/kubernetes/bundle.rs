//! `diskplugin bundle` through the API server.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::common::archive::{assert_without, members};
use crate::common::process::diskplugin;
use crate::kubernetes::kit::{DRIVER, Kit};
use crate::text::{assert_has, assert_lacks, assert_succeeded};

const PODS: &str = "/api/v1/pods";
const NAMESPACE: &str = "/api/v1/namespaces/storage";
const STORAGE: &str = "/apis/storage.k8s.io/v1";
/// In every field that may hold a secret.
const PLANTED: [&str; 3] = [
    "hunter2-planted",
    // The token of the kubeconfig.
    "no-secret",
    "value-of-variable",
];

fn pod(name: &str, component: &str) -> Value {
    json!({
        "metadata": {
            "namespace": "storage",
            "labels": {"app.kubernetes.io/name": "diskplugin", "app.kubernetes.io/component": component},
        },
        "spec": {
            "nodeName": format!("node-of-{name}"),
            "containers": [
                {
                    "name": "diskplugin", "image": "r/diskplugin:1",
                    "args": [component, "--http-address=0.0.0.0:9808", "--password=hunter2-planted"],
                    "env": [
                        {"name": "DISKPLUGIN_ZONE", "value": "cn-beijing-b"},
                        {"name": "DISKPLUGIN_TOKEN", "value": "value-of-variable"},
                        {"name": "OTHER", "value": "value-of-variable"},
                    ],
                },
                {"name": "csi-attacher", "image": "r/csi-attacher:v4", "args": ["--worker-threads=100"]},
                {"name": "mesh", "image": "r/mesh:1", "args": ["hunter2-planted"]},
            ],
        },
        "status": {"phase": "Running", "containerStatuses": [{
            "name": "diskplugin", "image": "", "imageID": "sha256:1", "ready": true, "restartCount": 1,
        }, {
            "name": "mesh", "image": "", "imageID": "sha256:2", "ready": true, "restartCount": 1,
            "lastState": {"terminated": {"exitCode": 1, "message": "hunter2-planted"}},
        }]},
    })
}

/// A controller, as many nodes, and a volume.
async fn installed(nodes: usize) -> Kit {
    let kit = Kit::new(&[]).await;
    let text = |path: String, text: &str| kit.api.change(|world| world.texts.insert(path, text.to_owned()));
    let names = (0..nodes).map(|index| (format!("n{index:03}"), "node"));
    for (name, component) in names.chain([("ctl".to_owned(), "controller")]) {
        kit.put(&format!("{PODS}/{name}"), pod(&name, component));
        for (page, content) in [
            ("/metrics", "diskplugin_calls_total 1"),
            ("/readyz", "ok"),
            ("/debug/volumes", r#"{"volumes": ["d-1"]}"#),
            ("/debug/volumes/d-1", r#"{"volume": "d-1", "calls": []}"#),
        ] {
            text(format!("{NAMESPACE}/pods/{name}:9808/proxy{page}"), content);
        }
        text(format!("{NAMESPACE}/pods/{name}/log"), "1 INFO started");
    }
    kit.put("/version", json!({"gitVersion": "v1.34.0"}));
    let annotations = json!({"annotations": {"a": PLANTED[0]}});
    let event = json!({
        "metadata": annotations, "reason": "BackOff",
        "involvedObject": {"name": "database-0"}, "message": PLANTED[0],
    });
    kit.put(&format!("{NAMESPACE}/events/e"), event);
    for (name, driver) in [("own", DRIVER), ("foreign", "other")] {
        let parameters = json!({"type": "cloud_essd", "password": PLANTED[0]});
        let class = json!({"metadata": {}, "provisioner": driver, "parameters": parameters});
        kit.put(&format!("{STORAGE}/storageclasses/{name}"), class);
    }
    let volume = json!({"metadata": annotations, "spec": {
        "csi": {"driver": DRIVER, "volumeHandle": "d-1", "volumeAttributes": {"k": PLANTED[0]}},
        "claimRef": {"namespace": "team", "name": "data"},
    }});
    kit.put("/api/v1/persistentvolumes/pv-1", volume);
    let claim = json!({"metadata": {}, "spec": {"volumeName": "pv-1"}});
    kit.put("/api/v1/namespaces/team/persistentvolumeclaims/data", claim);
    let attachment = json!({"metadata": {}, "spec": {
        "attacher": DRIVER, "nodeName": "node-of-n050", "source": {"persistentVolumeName": "pv-1"},
    }});
    kit.put(&format!("{STORAGE}/volumeattachments/va"), attachment);
    kit
}

/// The members of the archive, and the output.
async fn bundle(kit: &Kit, flags: &[&str]) -> (BTreeMap<String, String>, String) {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("bundle.tar.gz");
    let ended = diskplugin(["bundle", "--volume=team/data", "--out"])
        .args([file.to_str().unwrap(), "--kubeconfig"])
        .args([kit.kubeconfig().to_str().unwrap()])
        .args(flags)
        .ended()
        .await;
    assert_succeeded(&ended);
    let members = members(&file);
    assert_without(&members, &PLANTED);
    for call in kit.api.read(|world| world.calls.clone()) {
        assert_lacks(&call.to_lowercase(), &["secrets"]);
    }
    (members, ended.stdout)
}

#[tokio::test]
async fn the_archive_of_a_cluster_has_the_objects_of_the_driver_and_no_secret() {
    let kit = installed(1).await;
    let (members, _) = bundle(&kit, &[]).await;
    for pod in ["ctl", "n000"] {
        let folder = format!("pods/storage/{pod}");
        let text = |name: &str| members[&format!("{folder}/{name}")].as_str();
        assert_eq!(text("metrics.txt"), "diskplugin_calls_total 1");
        assert!(text("volume-d-1.json").contains("d-1"));
        for log in ["diskplugin", "diskplugin-previous", "csi-attacher"] {
            assert_eq!(text(&format!("log-{log}.txt")), "1 INFO started");
        }
        assert!(!members.contains_key(&format!("{folder}/log-mesh.txt")));
        let report: Value = serde_json::from_str(text("pod.json")).unwrap();
        let containers = &report["spec"]["containers"];
        let env = json!([
            {"name": "DISKPLUGIN_ZONE", "value": "cn-beijing-b"},
            {"name": "DISKPLUGIN_TOKEN", "value": "[not included]"},
            {"name": "OTHER", "value": "[not included]"},
        ]);
        assert_eq!(containers[0]["env"], env);
        let args = &containers[0]["args"];
        assert_eq!(args[1], "--http-address=0.0.0.0:9808");
        assert_eq!(args[2], "--password=[not included]");
        assert_eq!(containers[1]["args"][0], "--worker-threads=100");
        assert_eq!(containers[1]["image"], "r/csi-attacher:v4");
    }
    let classes = &members["objects/storageclasses.json"];
    assert_has(classes, &["own", "cloud_essd", "[not included]"]);
    assert_lacks(classes, &["foreign"]);
    for (member, part) in [
        ("kubernetes.json", "v1.34.0"),
        ("events/storage.json", "BackOff"),
        ("volumes/team_data/persistentvolume.json", "d-1"),
        ("volumes/team_data/persistentvolumeclaim.json", "pv-1"),
        ("volumes/team_data/volumeattachments.json", "node-of-n050"),
    ] {
        assert_has(&members[member], &[part]);
    }
}

#[tokio::test]
async fn the_manifest_lists_omitted_parts() {
    let kit = installed(52).await;
    kit.forbid(&[&format!("GET {NAMESPACE}/events")]);
    let (members, printed) = bundle(&kit, &[]).await;
    assert_has(&members["manifest.json"], &["pod storage/n051"]);
    assert_has(&printed, &["storage/events", "only 50 pods of nodes are read"]);
    // The volume is attached there.
    assert!(members.contains_key("pods/storage/n050/pod.json"));
    assert!(!members.contains_key("pods/storage/n051/pod.json"));
}

#[tokio::test]
async fn objects_of_a_volume_need_no_right_to_events_and_pods_of_its_namespace() {
    let kit = installed(1).await;
    let team = "GET /api/v1/namespaces/team";
    kit.forbid(&[&format!("{team}/events"), &format!("{team}/pods"), "GET /api/v1/events"]);
    let (members, printed) = bundle(&kit, &[]).await;
    assert_lacks(&printed, &["team"]);
    for name in ["persistentvolume", "persistentvolumeclaim", "volumeattachments"] {
        let member = format!("volumes/team_data/{name}.json");
        assert!(members.contains_key(&member), "{member}: {printed}");
    }
    assert!(members.contains_key("pods/storage/ctl/volume-d-1.json"));
}

const ADVICE: &str = "Grant the user of the kubeconfig this right";

#[tokio::test]
async fn a_claim_is_read_without_the_right_to_its_volume() {
    let kit = installed(1).await;
    kit.forbid(&["GET /api/v1/persistentvolumes"]);
    let (members, printed) = bundle(&kit, &[]).await;
    assert_has(&members["volumes/team_data/persistentvolumeclaim.json"], &["pv-1"]);
    assert_has(
        &printed,
        &["volume team/data: cannot read the PersistentVolume pv-1", ADVICE],
    );
}

#[tokio::test]
async fn without_the_pods_of_the_driver_its_events_are_read() {
    let kit = installed(1).await;
    let (pods, nodes) = (format!("GET {NAMESPACE}/pods"), format!("GET {STORAGE}/csinodes"));
    kit.forbid(&["GET /api/v1/pods", &pods, &nodes]);
    let (members, printed) = bundle(&kit, &["--namespace=storage"]).await;
    assert_has(&members["events/storage.json"], &["BackOff"]);
    assert_has(&printed, &["pods of the driver: cannot"]);
    assert_lacks(&printed, &["no pod has the label", "chart"]);
    assert_eq!(printed.matches(ADVICE).count(), 2, "{printed}");

    let (members, printed) = bundle(&kit, &[]).await;
    for text in [&printed, &members["manifest.json"]] {
        assert_has(text, &["events of the driver", "or set --namespace to list"]);
    }
}
