//! `diskplugin timeline` through the API server: events, attachments, and the histories of the driver's pods.

use serde_json::json;

use crate::common::process::{Ended, diskplugin};
use crate::kubernetes::kit::{DRIVER, Kit};

const PV: &str = "/api/v1/persistentvolumes/pvc-1";
const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/data";
const CONTROLLER: &str = "/api/v1/pods/controller-1";
const ZONE: &str = "topology.kubernetes.io/zone";
const EVENTS: &str = "/api/v1/namespaces/default/events";

/// A claim with a volume that a pod waits for, and a driver with a controller and two nodes.
async fn fixture() -> Kit {
    let kit = Kit::new(&[]).await;
    let pod = |component: &str, node: &str| {
        json!({
            "metadata": {
                "namespace": "storage",
                "labels": {
                    "app.kubernetes.io/name": "diskplugin", "app.kubernetes.io/component": component,
                },
            },
            "spec": {"nodeName": node, "containers": [{
                "name": "diskplugin", "args": [component, "--http-address=0.0.0.0:9808"],
            }]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        })
    };
    let history = json!({"volume": "d-1", "names": ["pvc-1"], "calls": [{
        "method": "ControllerPublishVolume", "started": "2026-01-01T00:00:30Z", "seconds": 20.0,
        "code": "FailedPrecondition", "message": "IN_USE_ELSEWHERE: disk d-1 is in use on i-2",
        "node": "i-1", "repeated": 3, "first_started": "2026-01-01T00:00:20Z", "steps": [
            {"name": "AttachDisk", "after": 0.1, "seconds": 0.2, "code": "IncorrectDiskStatus", "request_id": "R-7"},
        ],
    }]});
    let event = |name: &str, kind: &str, reason: &str, second: u32| {
        json!({
            "involvedObject": {"kind": kind, "name": name}, "reason": reason, "type": "Normal",
            "message": format!("{reason} of {name}"), "count": 1,
            "lastTimestamp": format!("2026-01-01T00:00:{second:02}Z"),
        })
    };
    kit.api.change(|world| {
        let store = &mut world.store;
        store.put(
            PV,
            json!({"spec": {
                "csi": {"driver": DRIVER, "volumeHandle": "d-1"},
                "claimRef": {"namespace": "default", "name": "data"},
            }}),
        );
        store.put(
            CLAIM,
            json!({"metadata": {"uid": "1"}, "spec": {"volumeName": "pvc-1"}}),
        );
        store.put(
            "/apis/storage.k8s.io/v1/volumeattachments/csi-1",
            json!({
                "metadata": {"creationTimestamp": "2026-01-01T00:00:15Z"},
                "spec": {"attacher": DRIVER, "nodeName": "worker-1", "source": {"persistentVolumeName": "pvc-1"}},
                "status": {"attached": false},
            }),
        );
        let uses = json!({"name": "v", "persistentVolumeClaim": {"claimName": "data"}});
        store.put(
            "/api/v1/namespaces/default/pods/db-0",
            json!({"spec": {"containers": [], "volumes": [uses]}}),
        );
        for (number, (name, kind, reason)) in [
            ("data", "PersistentVolumeClaim", "ProvisioningSucceeded"),
            ("db-0", "Pod", "FailedMount"),
            ("db-0", "Pod", "Pulled"),
            ("other", "Pod", "FailedMount"),
        ]
        .into_iter()
        .enumerate()
        {
            let second = u32::try_from(number).unwrap();
            store.put(&format!("{EVENTS}/e-{number}"), event(name, kind, reason, second));
        }
        store.put(
            "/api/v1/nodes/worker-1",
            json!({"metadata": {"labels": {ZONE: "cn-a"}}}),
        );
        store.put(
            "/apis/storage.k8s.io/v1/csinodes/worker-1",
            json!({"spec": {"drivers": [{"name": DRIVER, "nodeID": "i-1", "topologyKeys": []}]}}),
        );
        store.put(CONTROLLER, pod("controller", "worker-9"));
        store.put("/api/v1/pods/node-1", pod("node", "worker-1"));
        store.put("/api/v1/pods/node-2", pod("node", "worker-2"));
        let page = "/api/v1/namespaces/storage/pods/controller-1:9808/proxy/debug/volumes";
        store.put(&format!("{page}/d-1"), history);
    });
    kit
}

async fn timeline(kit: &Kit, volume: &str) -> Ended {
    let kubeconfig = format!("--kubeconfig={}", kit.kubeconfig().display());
    diskplugin(["timeline", volume, &kubeconfig]).ended().await
}

#[tokio::test]
async fn a_volume_is_found_by_claim_by_name_and_by_disk() {
    let kit = fixture().await;
    for volume in ["default/data", "pvc-1", "d-1"] {
        let ended = timeline(&kit, volume).await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{volume}");
        let text = &ended.stdout;
        assert!(
            text.starts_with("disk d-1, PersistentVolume pvc-1, claim default/data\n"),
            "{text}"
        );
        let parts = [
            "PersistentVolumeClaim/data  ProvisioningSucceeded",
            "Pod/db-0  FailedMount",
            "VolumeAttachment to worker-1: waits for the attach",
            "controller controller-1  ControllerPublishVolume on i-1  20.000 s  FailedPrecondition (after 3 calls",
            "+0.100 s  AttachDisk  0.200 s  IncorrectDiskStatus  RequestId R-7",
        ];
        let mut rest = text.as_str();
        for part in parts {
            let at = rest.find(part);
            rest = &rest[at.unwrap_or_else(|| panic!("no {part:?} in order\n{text}"))..];
        }
        assert!(!text.contains("Pulled") && !text.contains("other"), "{text}");
        let conclusion = text.trim_end().lines().last().unwrap();
        assert_eq!(
            conclusion,
            "ControllerPublishVolume on controller controller-1 failed 4 times since 2026-01-01T00:00:20Z with \
             FailedPrecondition: IN_USE_ELSEWHERE: disk d-1 is in use on i-2"
        );
        // A pod without a history of the volume is not a source that cannot be read.
        assert!(!text.contains("not available"), "{text}");
    }
    // Only the node of the attachment is read.
    let reads = |node: &str| kit.api.count(&format!("GET /api/v1/namespaces/storage/pods/{node}:"));
    assert!(reads("node-1") > 0);
    assert_eq!(reads("node-2"), 0);
}

#[tokio::test]
async fn sources_that_cannot_be_read_are_named() {
    let kit = fixture().await;
    kit.api.change(|world| {
        world.forbidden = vec!["GET /api/v1/namespaces/storage/pods/".to_owned()];
    });
    let ended = timeline(&kit, "pvc-1").await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let text = &ended.stdout;
    assert!(
        text.contains("not available: cannot read /debug/volumes/d-1 of the pod storage/controller-1"),
        "{text}"
    );
    assert!(text.contains("ProvisioningSucceeded"), "{text}");
    // Kubernetes has neither the volume nor an event.
    let ended = timeline(&kit, "pvc-unknown").await;
    assert!(ended.stdout.contains("not available: "), "{ended:?}");
    assert_eq!(ended.code, Some(0), "{ended:?}");
    kit.api.change(|world| world.forbidden = vec!["GET /".to_owned()]);
    let ended = timeline(&kit, "pvc-1").await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("no source could be read"), "{ended:?}");
}

#[tokio::test]
async fn what_prevents_all_calls_is_the_first_line_of_the_conclusion() {
    let kit = fixture().await;
    let conclusion = async || {
        let ended = timeline(&kit, "default/data").await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let (_, conclusion) = ended.stdout.rsplit_once("\n\n").unwrap();
        conclusion.to_owned()
    };
    kit.api.change(|world| {
        let affinity = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [
            {"key": ZONE, "operator": "In", "values": ["cn-b"]},
        ]}]}});
        let patch = json!({"spec": {"nodeAffinity": affinity}});
        world.store.patch(PV, &patch).unwrap();
    });
    let text = conclusion().await;
    assert!(
        text.starts_with(
            "No node is in a zone of the volume: the PersistentVolume pvc-1 allows cn-b, and the nodes are in"
        ),
        "{text}"
    );
    kit.api.change(|world| {
        let csi_node = "/apis/storage.k8s.io/v1/csinodes/worker-1";
        let patch = json!({"spec": {"drivers": []}});
        world.store.patch(csi_node, &patch).unwrap();
    });
    let text = conclusion().await;
    assert!(
        text.starts_with("The driver is not registered on the node worker-1"),
        "{text}"
    );
    kit.api.change(|world| {
        let patch = json!({"status": {
            "phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}],
        }});
        world.store.patch(CONTROLLER, &patch).unwrap();
    });
    let page = "GET /api/v1/namespaces/storage/pods/controller-1:";
    let reads = kit.api.count(page);
    let text = conclusion().await;
    assert_eq!(kit.api.count(page), reads, "nothing serves its page");
    assert!(
        text.starts_with("No controller of the driver is ready to create, attach"),
        "{text}"
    );
    assert!(text.contains("the pod storage/controller-1 is not ready."), "{text}");
}
