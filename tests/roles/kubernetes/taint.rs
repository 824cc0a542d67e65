//! The startup taint.

use serde_json::{Value, json};

use crate::kubernetes::kit::{DRIVER, Kit, NODES, TAINT};
use crate::running::logged;

/// A Node that has just joined, which also has a taint of another owner.
fn join(kit: &Kit, name: &str) {
    let taints = json!([
        {"key": "other", "effect": "NoSchedule"},
        {"key": TAINT, "effect": "NoExecute"},
        {"key": TAINT, "effect": "NoSchedule"},
    ]);
    let spec = json!({"taints": taints, "podCIDR": "10.0.0.0/24"});
    let node = json!({"metadata": {"uid": format!("uid-{name}")}, "spec": spec});
    kit.put(&format!("{NODES}/{name}"), node);
}

fn taints(kit: &Kit, name: &str) -> Vec<String> {
    let node = kit.get(&format!("{NODES}/{name}")).unwrap();
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let keys = taints.map(|taint: &Value| taint["key"].as_str().unwrap().to_owned());
    keys.collect()
}

async fn wait_until_removed(kit: &Kit, name: &str) {
    let what = format!("the taint of {name} is removed");
    kit.wait(&what, |kit| taints(kit, name) == ["other"]).await;
}

/// The flag of the controller.
fn flag() -> String {
    format!("--startup-taint={TAINT}")
}

#[tokio::test]
async fn only_this_taint_is_removed_when_the_driver_is_registered() {
    let kit = Kit::new(&[]).await;
    join(&kit, "a");
    join(&kit, "b");
    kit.register("b", "other.csi.example", "i-two", None);
    let (controller, _) = kit.ready(&[&flag()]).await;
    kit.register("a", DRIVER, "i-one", None);
    wait_until_removed(&kit, "a").await;
    logged(&controller, "removed the startup taint").await;
    let node = kit.get(&format!("{NODES}/a")).unwrap();
    assert_eq!(node["spec"]["podCIDR"], "10.0.0.0/24");
    assert_eq!(taints(&kit, "b").len(), 3);
    assert_eq!(kit.api.count("PATCH"), 1);
}

#[tokio::test]
async fn a_taint_that_is_added_in_the_meantime_remains() {
    let kit = Kit::new(&[]).await;
    join(&kit, "a");
    let added = json!({"spec": {"taints": [
        {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
        {"key": TAINT, "effect": "NoExecute"},
    ]}});
    kit.api
        .change(|world| world.overtaken.push((format!("{NODES}/a"), added)));
    kit.register("a", DRIVER, "i-one", None);
    let (_controller, _) = kit.ready(&[&flag()]).await;
    let expected = ["node.kubernetes.io/unreachable"];
    kit.wait("the taint is removed", |kit| taints(kit, "a") == expected)
        .await;
}

#[tokio::test]
async fn a_recreated_node_keeps_it_until_the_driver_is_registered_on_it() {
    let kit = Kit::new(&[]).await;
    for name in ["a", "b", "c"] {
        join(&kit, name);
    }
    // The CSINode of c is that of its predecessor. a is recreated while its taint is being removed.
    kit.register_of("c", Some("former"), DRIVER, "i-one", None);
    let again = json!({"metadata": {"uid": "again"}});
    kit.api
        .change(|world| world.overtaken.push((format!("{NODES}/a"), again)));
    kit.register("a", DRIVER, "i-one", None);
    let (_controller, _) = kit.ready(&[&flag()]).await;
    let patch = format!("PATCH {NODES}/a");
    kit.wait("a is patched", |kit| kit.api.count(&patch) == 1).await;
    // The controller handles one node after the other.
    kit.register("b", DRIVER, "i-two", None);
    wait_until_removed(&kit, "b").await;
    assert_eq!([taints(&kit, "a").len(), taints(&kit, "c").len()], [3, 3]);
    assert_eq!(kit.api.count("PATCH"), 2);
    for name in ["a", "c"] {
        kit.register(name, DRIVER, "i-one", None);
        wait_until_removed(&kit, name).await;
    }
}

#[tokio::test]
async fn if_limits_are_published_the_node_must_report_its_limit_first() {
    let kit = Kit::new(&[]).await;
    kit.config_map();
    join(&kit, "a");
    join(&kit, "b");
    kit.register("a", DRIVER, "i-one", None);
    kit.register("b", DRIVER, "i-two", Some(16));
    let flags = [&flag(), "--instance-types-config-map=types"];
    let (_controller, _) = kit.ready(&flags).await;
    wait_until_removed(&kit, "b").await;
    assert_eq!(taints(&kit, "a").len(), 3);
    kit.register("a", DRIVER, "i-one", Some(16));
    wait_until_removed(&kit, "a").await;
}

#[tokio::test]
async fn a_missing_permission_is_logged_with_advice_and_the_removal_is_retried() {
    let kit = Kit::new(&[]).await;
    join(&kit, "a");
    kit.register("a", DRIVER, "i-one", None);
    kit.forbid(&["PATCH"]);
    let (controller, _) = kit.ready(&[&flag()]).await;
    logged(&controller, "cannot remove the taint").await;
    logged(&controller, "Grant it").await;
    kit.forbid(&[]);
    wait_until_removed(&kit, "a").await;
}
