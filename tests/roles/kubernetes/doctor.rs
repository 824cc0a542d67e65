//! `diskplugin doctor --scope cluster`: defects of an installation.

use serde_json::{Value, json};

use crate::common::process::diskplugin;
use crate::kubernetes::kit::{DRIVER, Kit};
use crate::text::{assert_has, assert_lacks};

const CSI_DRIVER: &str = "/apis/storage.k8s.io/v1/csidrivers/diskplugin.csi.example";
const CLASSES: &str = "/apis/storage.k8s.io/v1/storageclasses";

/// The exit code and the status of each check, by its name.
async fn doctor(kit: &Kit) -> (Option<i32>, Value) {
    let ended = diskplugin(["doctor", "--scope=cluster", "--output=json"])
        .args([format!("--kubeconfig={}", kit.kubeconfig().display())])
        .ended()
        .await;
    let printed = format!("{}{}", ended.stdout, ended.stderr);
    assert_lacks(&printed, &["no-secret"]);
    let document: Value = serde_json::from_str(&ended.stdout).expect(&printed);
    let checks = document["checks"].as_array().unwrap().iter();
    let rows = checks.map(|row| (row["name"].as_str().unwrap().to_owned(), row.clone()));
    (ended.code, Value::Object(rows.collect()))
}

fn status<'a>(checks: &'a Value, name: &str) -> &'a str {
    checks[format!("cluster/{name}")]["status"].as_str().unwrap_or("none")
}

fn found<'a>(checks: &'a Value, name: &str) -> &'a str {
    checks[format!("cluster/{name}")]["found"].as_str().unwrap()
}

fn workload(kit: &Kit, kind: &str, name: &str, driver: &str) {
    let containers = json!([
        {"name": "diskplugin", "image": "r/diskplugin:1", "args": ["x", format!("--driver-name={driver}")]},
        {"name": "csi-attacher", "image": "r/csi-attacher:v4"},
    ]);
    let object = json!({
        "metadata": {"namespace": "storage"},
        "spec": {"selector": {}, "template": {"spec": {"containers": containers}}},
    });
    // The path is that of a list of all namespaces.
    kit.put(&format!("/apis/apps/v1/{kind}/{name}"), object);
}

/// An installation without defects, except that it has no CRDs of snapshots.
async fn installed() -> Kit {
    let kit = Kit::new(&[]).await;
    let spec = json!({"attachRequired": true, "fsGroupPolicy": "File"});
    kit.put(CSI_DRIVER, json!({"metadata": {}, "spec": spec}));
    kit.put("/apis", json!({"groups": []}));
    workload(&kit, "deployments", "controller", DRIVER);
    workload(&kit, "daemonsets", "node", DRIVER);
    kit.node("one", None, Some("i-one"));
    let labels = json!({"topology.kubernetes.io/zone": "cn-beijing-b"});
    kit.put("/api/v1/nodes/one", json!({"metadata": {"labels": labels}}));
    kit
}

#[tokio::test]
async fn a_complete_installation_has_no_failed_check() {
    let kit = installed().await;
    let (code, checks) = doctor(&kit).await;
    assert_eq!(code, Some(0), "{checks}");
    for name in "csidriver deployment daemonset registration zones default-class rights".split(' ') {
        assert_eq!(status(&checks, name), "ok", "{name}: {checks}");
    }
    assert_eq!(status(&checks, "snapshot-crds"), "warning");
    assert_has(found(&checks, "deployment"), &["r/csi-attacher:v4"]);
}

#[tokio::test]
async fn an_empty_cluster_has_failed_checks() {
    let kit = Kit::new(&[]).await;
    kit.put("/apis", json!({"groups": []}));
    workload(&kit, "deployments", "other", "other.csi.example");
    let (code, checks) = doctor(&kit).await;
    assert_eq!(code, Some(1));
    for name in ["csidriver", "deployment", "daemonset"] {
        assert_eq!(status(&checks, name), "failed", "{name}: {checks}");
    }
}

#[tokio::test]
async fn each_defect_of_an_installation_is_named() {
    let kit = installed().await;
    kit.put(CSI_DRIVER, json!({"metadata": {}, "spec": {"attachRequired": false}}));
    workload(&kit, "deployments", "second", DRIVER);
    kit.node("two", None, None);
    let class = json!({
        "metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": DRIVER,
    });
    kit.put(&format!("{CLASSES}/a"), class.clone());
    kit.put(&format!("{CLASSES}/b"), class);
    let right = "patch volumeattachments".to_owned();
    kit.api.change(|world| world.denied_rights.push(right));
    let (code, checks) = doctor(&kit).await;
    assert_eq!(code, Some(1));
    for (name, expected, part) in [
        ("csidriver", "failed", "attachRequired"),
        ("deployment", "failed", "storage/second"),
        ("registration", "warning", "two"),
        ("zones", "warning", "two"),
        ("default-class", "warning", "a, b"),
        ("rights", "warning", "patch volumeattachments"),
    ] {
        assert_eq!(status(&checks, name), expected, "{name}: {checks}");
        assert_has(found(&checks, name), &[part]);
    }
}

#[tokio::test]
async fn unreadable_objects_are_skipped_with_the_reason() {
    let kit = installed().await;
    kit.forbid(&["GET /apis/apps/v1/daemonsets"]);
    let (code, checks) = doctor(&kit).await;
    assert_eq!((code, status(&checks, "daemonset")), (Some(0), "skipped"), "{checks}");
    assert_has(found(&checks, "daemonset"), &["cannot list daemonsets"]);
    assert_eq!(status(&checks, "deployment"), "ok", "{checks}");
}
