//! The startup taint.

use serde_json::{Value, json};

use crate::kubernetes::api::Api;
use crate::kubernetes::kit::{Kit, NODES, TAINT, logged};

/// A Node that has just joined, with a taint of somebody else's too.
fn join(kit: &Kit, name: &str) {
    let taints = json!([
        {"key": "other", "effect": "NoSchedule"},
        {"key": TAINT, "effect": "NoExecute"},
        {"key": TAINT, "effect": "NoSchedule"},
    ]);
    let node =
        json!({"metadata": {"uid": format!("uid-{name}")}, "spec": {"taints": taints, "podCIDR": "10.0.0.0/24"}});
    kit.api
        .change(|world| world.store.put(&format!("{NODES}/{name}"), node));
}

fn taints(api: &Api, name: &str) -> Vec<String> {
    let node = api.see(|world| world.store.get(&format!("{NODES}/{name}")).cloned());
    let taints = node.unwrap()["spec"]["taints"].as_array().cloned().unwrap_or_default();
    let keys = taints
        .iter()
        .map(|taint: &Value| taint["key"].as_str().unwrap().to_owned());
    keys.collect()
}

#[tokio::test]
async fn it_goes_when_the_driver_is_registered_and_nothing_else_goes() {
    let kit = Kit::new(&[]).await;
    let flag = format!("--startup-taint={TAINT}");
    join(&kit, "a");
    join(&kit, "b");
    // Another driver is no reason.
    kit.register("b", "other.csi.example", "i-two", None);
    let (controller, _) = kit.ready(&[&flag]).await;
    kit.register("a", "diskplugin.csi.example", "i-one", None);
    kit.until("the taint is gone", |api| (taints(api, "a") == ["other"]).then_some(()))
        .await;
    logged(&controller, "removed the startup taint").await;
    let cidr = kit.api.see(|world| world.store.get(&format!("{NODES}/a")).cloned());
    assert_eq!(cidr.unwrap()["spec"]["podCIDR"], "10.0.0.0/24");
    assert_eq!(taints(&kit.api, "b").len(), 3);
    // A node that is done is let be.
    assert_eq!(kit.api.count("PATCH"), 1);
}

#[tokio::test]
async fn a_taint_that_comes_meanwhile_stays() {
    let kit = Kit::new(&[]).await;
    join(&kit, "a");
    let came = json!({"spec": {"taints": [
        {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
        {"key": TAINT, "effect": "NoExecute"},
    ]}});
    kit.api
        .change(|world| world.overtaken.push((format!("{NODES}/a"), came)));
    kit.register("a", "diskplugin.csi.example", "i-one", None);
    let (_controller, _) = kit.ready(&[&format!("--startup-taint={TAINT}")]).await;
    let wanted = ["node.kubernetes.io/unreachable"];
    kit.until("the taint is gone", |api| (taints(api, "a") == wanted).then_some(()))
        .await;
}

#[tokio::test]
async fn a_node_that_came_again_keeps_it_until_the_driver_is_registered_on_it() {
    let kit = Kit::new(&[]).await;
    let driver = "diskplugin.csi.example";
    join(&kit, "a");
    join(&kit, "b");
    join(&kit, "c");
    // Of c is left what was said of the former one. a comes again while its taint is being taken off.
    kit.register_of("c", Some("former"), driver, "i-one", None);
    let again = json!({"metadata": {"uid": "again"}});
    kit.api
        .change(|world| world.overtaken.push((format!("{NODES}/a"), again)));
    kit.register("a", driver, "i-one", None);
    let (_controller, _) = kit.ready(&[&format!("--startup-taint={TAINT}")]).await;
    kit.until("that of a was tried", |api| {
        (api.count(&format!("PATCH {NODES}/a")) == 1).then_some(())
    })
    .await;
    // The nodes are seen to one after the other.
    kit.register("b", driver, "i-two", None);
    kit.until("that of b is gone", |api| (taints(api, "b") == ["other"]).then_some(()))
        .await;
    assert_eq!(taints(&kit.api, "a").len(), 3);
    assert_eq!(taints(&kit.api, "c").len(), 3);
    assert_eq!(kit.api.count("PATCH"), 2);
    kit.register("a", driver, "i-one", None);
    kit.register("c", driver, "i-one", None);
    kit.until("those of a and c are gone", |api| {
        let gone = taints(api, "a").len() + taints(api, "c").len() == 2;
        gone.then_some(())
    })
    .await;
}

#[tokio::test]
async fn where_limits_are_published_a_node_first_tells_its_own() {
    let kit = Kit::new(&[]).await;
    kit.config_map();
    join(&kit, "a");
    join(&kit, "b");
    kit.register("a", "diskplugin.csi.example", "i-one", None);
    kit.register("b", "diskplugin.csi.example", "i-two", Some(16));
    let flags = [&format!("--startup-taint={TAINT}"), "--instance-types-config-map=types"];
    let (_controller, _) = kit.ready(&flags).await;
    kit.until("that of b is gone", |api| (taints(api, "b") == ["other"]).then_some(()))
        .await;
    assert_eq!(taints(&kit.api, "a").len(), 3);
    kit.register("a", "diskplugin.csi.example", "i-one", Some(16));
    kit.until("that of a is gone", |api| (taints(api, "a") == ["other"]).then_some(()))
        .await;
}

#[tokio::test]
async fn who_may_not_is_told_what_to_grant_and_makes_up_for_it() {
    let kit = Kit::new(&[]).await;
    join(&kit, "a");
    kit.register("a", "diskplugin.csi.example", "i-one", None);
    kit.api.change(|world| world.forbidden.push("PATCH".to_owned()));
    let (controller, _) = kit.ready(&[&format!("--startup-taint={TAINT}")]).await;
    logged(&controller, "cannot remove the taint").await;
    logged(&controller, "Grant it").await;
    kit.api.change(|world| world.forbidden.clear());
    kit.until("the taint is gone", |api| (taints(api, "a") == ["other"]).then_some(()))
        .await;
}
