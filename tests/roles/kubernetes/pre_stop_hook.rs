//! `diskplugin pre-stop-hook`: how long the pod of the node plugin stays on a node.

use serde_json::{Value, json};

use crate::common::process::{Process, Start, diskplugin};
use crate::kubernetes::kit::{DRIVER, Kit, NODES};
use crate::running::logged;
use crate::text::{assert_failed, assert_has, assert_lacks, assert_succeeded};

const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";
const WAITS: &str = "waiting until no volume is attached to the node";

fn hook(kit: &Kit, timeout: &str) -> Start {
    let kubeconfig = format!("--kubeconfig={}", kit.kubeconfig().display());
    let timeout = format!("--timeout={timeout}");
    diskplugin(["pre-stop-hook", &kubeconfig, &timeout]).env("DISKPLUGIN_NODE_NAME", "worker-1")
}

fn node(kit: &Kit, spec: &Value, status: &Value) {
    let node = json!({"metadata": {}, "spec": spec, "status": status});
    kit.put(&format!("{NODES}/worker-1"), node);
}

fn attach(kit: &Kit, name: &str, driver: &str, node: &str) {
    let attachment = json!({"metadata": {}, "spec": {
        "attacher": driver, "nodeName": node, "source": {"persistentVolumeName": name},
    }});
    kit.put(&format!("{ATTACHMENTS}/{name}"), attachment);
}

fn detach(kit: &Kit, name: &str) {
    kit.api
        .change(|world| world.store.remove(&format!("{ATTACHMENTS}/{name}")));
}

/// Asserts that the hook ends with code 0 and this text in its log.
async fn assert_ends(start: Start, text: &str) {
    assert_failed(&start.ended().await, 0, &[text]);
}

#[tokio::test]
async fn it_does_not_wait_on_a_node_that_is_not_drained() {
    let kit = Kit::new(&[]).await;
    attach(&kit, "one", DRIVER, "worker-1");
    let others = json!({"taints": [{"key": "dedicated", "effect": "NoSchedule"}]});
    let ready = json!({"conditions": [{"type": "Ready", "status": "True", "message": "kubelet is ready"}]});
    node(&kit, &others, &ready);
    assert_ends(hook(&kit, "1h"), "the node is not drained").await;
    assert_eq!(kit.api.count(&format!("GET {ATTACHMENTS}")), 0);
}

#[tokio::test]
async fn it_waits_on_a_drained_node_for_the_volumes_of_the_driver_on_this_node() {
    let taint = |key: &str| json!({"taints": [{"key": key, "effect": "NoSchedule"}]});
    let shutdown = json!({"conditions": [
        {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": "node is shutting down"},
    ]});
    let cases = [
        (json!({"unschedulable": true}), json!({})),
        (taint("node.kubernetes.io/unschedulable"), json!({})),
        (taint("ToBeDeletedByClusterAutoscaler"), json!({})),
        (taint("karpenter.sh/disrupted"), json!({})),
        (taint("karpenter.sh/disruption"), json!({})),
        (taint("node.cloudprovider.kubernetes.io/shutdown"), json!({})),
        (json!({}), shutdown),
        // The Node no longer exists.
        (Value::Null, Value::Null),
    ];
    let mut started: Vec<(Kit, Process)> = Vec::new();
    for (spec, status) in &cases {
        let kit = Kit::new(&[]).await;
        attach(&kit, "one", DRIVER, "worker-1");
        attach(&kit, "two", DRIVER, "worker-1");
        attach(&kit, "elsewhere", DRIVER, "worker-2");
        attach(&kit, "other", "other.csi.example", "worker-1");
        if !spec.is_null() {
            node(&kit, spec, status);
        }
        let process = hook(&kit, "1h").spawn();
        started.push((kit, process));
    }
    for ((mut kit, mut process), case) in started.into_iter().zip(&cases) {
        logged(&process, WAITS).await;
        let watches = |kit: &Kit| kit.api.count(&format!("WATCH {ATTACHMENTS}"));
        kit.wait("it watches", |kit| watches(kit) > 0).await;
        detach(&kit, "one");
        detach(&kit, "elsewhere");
        // The watch survives a restart of the API server.
        kit.api.stop();
        kit.api.restart();
        kit.wait("it watches again", |kit| watches(kit) > 1).await;
        assert!(!process.is_over(), "{case:?}: {}", process.stderr());
        detach(&kit, "two");
        let ended = process.ended().await;
        assert_failed(&ended, 0, &["no volume is attached to the node"]);
        assert_lacks(&ended.stderr, &["the pod stops"]);
    }
}

#[tokio::test]
async fn it_ends_at_its_deadline_or_without_volumes_of_the_driver() {
    for (driver, timeout, text) in [
        (DRIVER, "1s", "volumes are still attached after 1s: the pod stops"),
        ("other.csi.example", "1h", "no volume is attached to the node"),
    ] {
        let kit = Kit::new(&[]).await;
        attach(&kit, "one", driver, "worker-1");
        node(&kit, &json!({"unschedulable": true}), &json!({}));
        assert_ends(hook(&kit, timeout), text).await;
    }
}

#[tokio::test]
async fn failures_do_not_delay_the_end_of_the_pod() {
    let mut kit = Kit::new(&[]).await;
    attach(&kit, "one", DRIVER, "worker-1");
    node(&kit, &json!({"unschedulable": true}), &json!({}));
    let stops = "the pod stops without waiting for the detach of its volumes: cannot ";
    for (forbidden, step) in [
        (NODES, "read the Node worker-1"),
        (ATTACHMENTS, "list VolumeAttachments"),
    ] {
        kit.forbid(&[&format!("GET {forbidden}")]);
        let parts = [&format!("{stops}{step}"), "docs/reference/kubernetes-rights.md"];
        assert_failed(&hook(&kit, "1h").ended().await, 0, &parts);
    }
    // kubelet discards the output, so that the lines are written to the log of the container.
    kit.api.stop();
    let log = kit.dir.path().join("log");
    std::fs::write(&log, "before\n").unwrap();
    let flag = format!("--log-file={}", log.display());
    let ended = hook(&kit, "1h").args([flag]).ended().await;
    assert_succeeded(&ended);
    let text = std::fs::read_to_string(log).unwrap();
    assert!(text.starts_with("before\n"), "{text}");
    assert_has(&text, &[&format!("{stops}read the Node worker-1")]);
}
