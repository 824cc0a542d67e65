//! `diskplugin timeline` through the API server: events, attachments, and the histories of the driver's pods.

use serde_json::{Value, json};

use crate::common::process::{Ended, diskplugin};
use crate::kubernetes::kit::{DRIVER, Kit};
use crate::text::{assert_failed, assert_has, assert_lacks, assert_succeeded};

const PV: &str = "/api/v1/persistentvolumes/pvc-1";
const CLAIM: &str = "/api/v1/namespaces/default/persistentvolumeclaims/data";
const CONTROLLER: &str = "/api/v1/pods/controller-1";
const ZONE: &str = "topology.kubernetes.io/zone";
const CSI_NODE: &str = "/apis/storage.k8s.io/v1/csinodes/worker-1";
const EVENTS: &str = "/api/v1/namespaces/default/events";

/// A claim with a volume that a pod waits for, and a driver with a controller and two nodes.
async fn fixture() -> Kit {
    let kit = Kit::new(&[]).await;
    let pod = |component: &str, node: &str| {
        json!({
            "metadata": {"namespace": "storage", "labels": {
                "app.kubernetes.io/name": "diskplugin", "app.kubernetes.io/component": component,
            }},
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
    let spec = json!({
        "csi": {"driver": DRIVER, "volumeHandle": "d-1"},
        "claimRef": {"namespace": "default", "name": "data"},
    });
    let attachment = json!({
        "metadata": {"creationTimestamp": "2026-01-01T00:00:15Z"},
        "spec": {"attacher": DRIVER, "nodeName": "worker-1", "source": {"persistentVolumeName": "pvc-1"}},
        "status": {"attached": false},
    });
    let uses = json!({"name": "v", "persistentVolumeClaim": {"claimName": "data"}});
    let registered = json!([{"name": DRIVER, "nodeID": "i-1", "topologyKeys": []}]);
    let storage = "/apis/storage.k8s.io/v1";
    let page = "/api/v1/namespaces/storage/pods/controller-1:9808/proxy/debug/volumes/d-1";
    for (path, object) in [
        (PV, json!({"spec": spec})),
        (
            CLAIM,
            json!({"metadata": {"uid": "1"}, "spec": {"volumeName": "pvc-1"}}),
        ),
        (&format!("{storage}/volumeattachments/csi-1"), attachment),
        (
            "/api/v1/namespaces/default/pods/db-0",
            json!({"spec": {"containers": [], "volumes": [uses]}}),
        ),
        (
            "/api/v1/nodes/worker-1",
            json!({"metadata": {"labels": {ZONE: "cn-a"}}}),
        ),
        (CSI_NODE, json!({"spec": {"drivers": registered}})),
        (CONTROLLER, pod("controller", "worker-9")),
        ("/api/v1/pods/node-1", pod("node", "worker-1")),
        ("/api/v1/pods/node-2", pod("node", "worker-2")),
        (page, history),
    ] {
        kit.put(path, object);
    }
    let events = [
        event("data", "PersistentVolumeClaim", "ProvisioningSucceeded", 0),
        event("db-0", "Pod", "FailedMount", 1),
        event("db-0", "Pod", "Pulled", 2),
        event("other", "Pod", "FailedMount", 3),
    ];
    for (number, event) in events.into_iter().enumerate() {
        kit.put(&format!("{EVENTS}/e-{number}"), event);
    }
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
        assert_succeeded(&ended);
        let text = &ended.stdout;
        let first = text.lines().next().unwrap();
        assert_eq!(first, "disk d-1, PersistentVolume pvc-1, claim default/data");
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
        // A pod without a history of the volume is not a source that cannot be read.
        assert_lacks(text, &["Pulled", "other", "not available"]);
        let conclusion = text.trim_end().lines().last().unwrap();
        assert_eq!(
            conclusion,
            "ControllerPublishVolume on controller controller-1 failed 4 times since 2026-01-01T00:00:20Z with \
             FailedPrecondition: IN_USE_ELSEWHERE: disk d-1 is in use on i-2"
        );
    }
    // Only the node of the attachment is read.
    let reads = |node: &str| kit.api.count(&format!("GET /api/v1/namespaces/storage/pods/{node}:"));
    assert!(reads("node-1") > 0);
    assert_eq!(reads("node-2"), 0);
}

#[tokio::test]
async fn sources_that_cannot_be_read_are_named() {
    let kit = fixture().await;
    kit.forbid(&["GET /api/v1/namespaces/storage/pods/"]);
    let ended = timeline(&kit, "pvc-1").await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let source = "not available: cannot read /debug/volumes/d-1 of the pod storage/controller-1";
    assert_has(&ended.stdout, &[source, "ProvisioningSucceeded"]);
    // Kubernetes has neither the volume nor an event.
    let ended = timeline(&kit, "pvc-unknown").await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_has(&ended.stdout, &["not available: "]);
    kit.forbid(&["GET /"]);
    assert_failed(&timeline(&kit, "pvc-1").await, 1, &["no source could be read"]);
}

#[tokio::test]
async fn the_conclusion_begins_with_the_reason_that_prevents_all_calls() {
    let kit = fixture().await;
    let change = |path: &str, patch: Value| {
        kit.api.change(|world| world.store.patch(path, &patch).unwrap());
    };
    let assert_begins = async |beginning: &str| {
        let ended = timeline(&kit, "default/data").await;
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let (_, conclusion) = ended.stdout.rsplit_once("\n\n").unwrap();
        assert!(conclusion.starts_with(beginning), "{conclusion}");
        conclusion.to_owned()
    };
    let affinity = json!({"required": {"nodeSelectorTerms": [{"matchExpressions": [
        {"key": ZONE, "operator": "In", "values": ["cn-b"]},
    ]}]}});
    change(PV, json!({"spec": {"nodeAffinity": affinity}}));
    let zone = "No node is in a zone of the volume: the PersistentVolume pvc-1 allows cn-b, and the nodes are in";
    assert_begins(zone).await;
    change(CSI_NODE, json!({"spec": {"drivers": []}}));
    let conditions = json!([{"type": "Ready", "status": "False"}]);
    let mut standby = kit.get(CONTROLLER).unwrap();
    standby["status"]["conditions"] = conditions.clone();
    kit.put("/api/v1/pods/controller-2", standby);
    assert_begins("The driver is not registered on the node worker-1").await;
    change(
        CONTROLLER,
        json!({"status": {"phase": "Pending", "conditions": conditions}}),
    );
    let page = "GET /api/v1/namespaces/storage/pods/controller-1:";
    let reads = kit.api.count(page);
    let text = assert_begins("No controller of the driver is ready to create, attach").await;
    assert_eq!(kit.api.count(page), reads, "a pod that is not ready has no page");
    assert_has(&text, &["the pod storage/controller-1 is not ready."]);
}
