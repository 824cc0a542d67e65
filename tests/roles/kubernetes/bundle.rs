//! `diskplugin bundle` through the API server.

use serde_json::{Value, json};

use crate::common::archive::{assert_without, members};
use crate::common::process::diskplugin;
use crate::kubernetes::kit::{DRIVER, Kit};

const PODS: &str = "/api/v1/pods";
const PLACE: &str = "/api/v1/namespaces/storage";
const STORAGE: &str = "/apis/storage.k8s.io/v1";
/// In everything that is not known to hold no secret.
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
    kit.api.change(|world| {
        let names = (0..nodes).map(|index| (format!("n{index:03}"), "node"));
        let all = names.chain([("ctl".to_owned(), "controller")]);
        for (name, component) in all {
            world.store.put(&format!("{PODS}/{name}"), pod(&name, component));
            let proxy = format!("{PLACE}/pods/{name}:9808/proxy");
            for (page, text) in [
                ("/metrics", "diskplugin_calls_total 1"),
                ("/readyz", "ok"),
                ("/debug/volumes", r#"{"volumes": ["d-1"]}"#),
                ("/debug/volumes/d-1", r#"{"volume": "d-1", "calls": []}"#),
            ] {
                world.texts.insert(format!("{proxy}{page}"), text.to_owned());
            }
            let log = "1 INFO started".to_owned();
            world.texts.insert(format!("{PLACE}/pods/{name}/log"), log);
        }
        let version = json!({"gitVersion": "v1.34.0"});
        world.store.put("/version", version);
        let event = json!({
            "metadata": {"annotations": {"a": PLANTED[0]}}, "reason": "BackOff",
            "involvedObject": {"name": "database-0"}, "message": PLANTED[0],
        });
        world.store.put(&format!("{PLACE}/events/e"), event);
        for (name, driver) in [("own", DRIVER), ("foreign", "other")] {
            let place = format!("{STORAGE}/storageclasses/{name}");
            let parameters = json!({"type": "cloud_essd", "password": PLANTED[0]});
            let class = json!({"metadata": {}, "provisioner": driver, "parameters": parameters});
            world.store.put(&place, class);
        }
        let volume = json!({"metadata": {"annotations": {"a": PLANTED[0]}}, "spec": {
            "csi": {"driver": DRIVER, "volumeHandle": "d-1", "volumeAttributes": {"k": PLANTED[0]}},
            "claimRef": {"namespace": "team", "name": "data"},
        }});
        world.store.put("/api/v1/persistentvolumes/pv-1", volume);
        let claim = json!({"metadata": {}, "spec": {"volumeName": "pv-1"}});
        let place = "/api/v1/namespaces/team/persistentvolumeclaims/data";
        world.store.put(place, claim);
        let attachment = json!({"metadata": {}, "spec": {
            "attacher": DRIVER, "nodeName": "node-of-n050", "source": {"persistentVolumeName": "pv-1"},
        }});
        world.store.put(&format!("{STORAGE}/volumeattachments/va"), attachment);
    });
    kit
}

/// The archive, by member, and what was printed.
async fn bundle(kit: &Kit, flags: &[&str]) -> (std::collections::BTreeMap<String, String>, String) {
    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("bundle.tar.gz");
    let ended = diskplugin(["bundle", "--volume=team/data", "--out"])
        .args([file.to_str().unwrap(), "--kubeconfig"])
        .args([kit.kubeconfig().to_str().unwrap()])
        .args(flags)
        .ended()
        .await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let members = members(&file);
    assert_without(&members, &PLANTED);
    let secrets = kit.api.see(|world| {
        let mut calls = world.calls.iter();
        calls.any(|call| call.to_lowercase().contains("secrets"))
    });
    assert!(!secrets, "Secrets were read");
    (members, ended.stdout)
}

#[tokio::test]
async fn the_archive_of_a_cluster_has_what_concerns_the_driver_and_no_secret() {
    let kit = installed(1).await;
    let (members, _) = bundle(&kit, &[]).await;
    for pod in ["ctl", "n000"] {
        let folder = format!("pods/storage/{pod}");
        let text = |name: &str| members[&format!("{folder}/{name}")].as_str();
        assert_eq!(text("metrics.txt"), "diskplugin_calls_total 1");
        assert!(text("volume-d-1.json").contains("d-1"));
        for log in [
            "log-diskplugin.txt",
            "log-diskplugin-previous.txt",
            "log-csi-attacher.txt",
        ] {
            assert_eq!(text(log), "1 INFO started");
        }
        assert!(!members.contains_key(&format!("{folder}/log-mesh.txt")));
        let report: Value = serde_json::from_str(text("pod.json")).unwrap();
        let env = json!({"DISKPLUGIN_ZONE": "cn-beijing-b", "DISKPLUGIN_TOKEN": null, "OTHER": null});
        assert_eq!(report["containers"][0]["env"], env);
        let args = &report["containers"][0]["args"];
        assert_eq!(args[1], "--http-address=0.0.0.0:9808");
        assert_eq!(args[2], "--password=[not included]");
        assert_eq!(report["containers"][1]["args"][0], "--worker-threads=100");
        assert_eq!(report["containers"][1]["image"], "r/csi-attacher:v4");
    }
    let classes = &members["objects/storageclasses.json"];
    let parts = ["own", "cloud_essd", "[not included]"];
    assert!(parts.iter().all(|part| classes.contains(part)), "{classes}");
    assert!(!classes.contains("foreign"), "{classes}");
    for (member, part) in [
        ("kubernetes.json", "v1.34.0"),
        ("events/storage.json", "BackOff"),
        ("volumes/team_data/persistentvolume.json", "d-1"),
        ("volumes/team_data/persistentvolumeclaim.json", "pv-1"),
        ("volumes/team_data/volumeattachments.json", "node-of-n050"),
    ] {
        assert!(members[member].contains(part), "{member}: {}", members[member]);
    }
}

#[tokio::test]
async fn what_is_not_included_is_in_the_manifest() {
    let kit = installed(52).await;
    kit.api.change(|world| {
        world.forbidden = vec![format!("GET {PLACE}/events")];
    });
    let (members, printed) = bundle(&kit, &[]).await;
    let manifest = &members["manifest.json"];
    assert!(manifest.contains("pod storage/n051"), "{manifest}");
    assert!(printed.contains("storage/events"), "{printed}");
    assert!(printed.contains("only 50 pods of nodes are read"), "{printed}");
    // The volume is attached there.
    assert!(members.contains_key("pods/storage/n050/pod.json"));
    assert!(!members.contains_key("pods/storage/n051/pod.json"));
}

#[tokio::test]
async fn objects_of_a_volume_need_no_right_to_events_and_pods_of_its_namespace() {
    let kit = installed(1).await;
    kit.api.change(|world| {
        world.forbidden = vec![
            "GET /api/v1/namespaces/team/events".to_owned(),
            "GET /api/v1/namespaces/team/pods".to_owned(),
            "GET /api/v1/events".to_owned(),
        ];
    });
    let (members, printed) = bundle(&kit, &[]).await;
    assert!(!printed.contains("team"), "{printed}");
    for name in ["persistentvolume", "persistentvolumeclaim", "volumeattachments"] {
        let member = format!("volumes/team_data/{name}.json");
        assert!(members.contains_key(&member), "{member}: {printed}");
    }
    assert!(members.contains_key("pods/storage/ctl/volume-d-1.json"));
}

#[tokio::test]
async fn a_claim_is_read_without_the_right_to_its_volume() {
    let kit = installed(1).await;
    kit.api.change(|world| {
        world.forbidden = vec!["GET /api/v1/persistentvolumes".to_owned()];
    });
    let (members, printed) = bundle(&kit, &[]).await;
    let claim = &members["volumes/team_data/persistentvolumeclaim.json"];
    assert!(claim.contains("pv-1"), "{claim}");
    assert!(
        printed.contains("volume team/data: cannot read the PersistentVolume pv-1"),
        "{printed}"
    );
    assert!(printed.contains(ADVICE), "{printed}");
}

const ADVICE: &str = "Grant the user of the kubeconfig this right";

#[tokio::test]
async fn without_the_pods_of_the_driver_its_events_are_read() {
    let kit = installed(1).await;
    kit.api.change(|world| {
        world.forbidden = vec![
            "GET /api/v1/pods".to_owned(),
            format!("GET {PLACE}/pods"),
            format!("GET {STORAGE}/csinodes"),
        ];
    });
    let (members, printed) = bundle(&kit, &["--namespace=storage"]).await;
    assert!(members["events/storage.json"].contains("BackOff"), "{printed}");
    assert!(printed.contains("pods of the driver: cannot"), "{printed}");
    assert!(!printed.contains("no pod has the label"), "{printed}");
    assert_eq!(printed.matches(ADVICE).count(), 2, "{printed}");
    assert!(!printed.contains("chart"), "{printed}");

    let (members, printed) = bundle(&kit, &[]).await;
    let manifest = &members["manifest.json"];
    for text in [&printed, manifest] {
        assert!(text.contains("events of the driver"), "{text}");
        assert!(text.contains("or set --namespace to list"), "{text}");
    }
}
