//! Limits of instance types, which the controller reads from the cloud and publishes in the ConfigMap.

use diskplugin::model::instance_types::{Document, InstanceTypes};
use serde_json::{Value, json};
use tonic::transport::Channel;

use crate::common::csi::create;
use crate::common::process::Process;
use crate::kubernetes::kit::{CONFIG_MAP, Kit, NODES};
use crate::running::logged;
use crate::text::assert_lacks;

const FLAG: &str = "--instance-types-config-map=types";

/// Two servers, the ConfigMap, and Nodes of these types.
async fn kit_with_nodes(types: &[&str]) -> Kit {
    let kit = Kit::new(&[]).await;
    kit.config_map();
    for (number, name) in types.iter().enumerate() {
        kit.node(&format!("n{number}"), Some(name), None);
    }
    kit
}

async fn publisher(kit: &Kit) -> (Process, Channel) {
    kit.ready(&[FLAG]).await
}

/// The text in the ConfigMap.
fn content(kit: &Kit) -> Option<String> {
    let text = kit.get(CONFIG_MAP)?["data"]["instance-types.json"].take();
    text.as_str().map(str::to_owned)
}

fn published(kit: &Kit) -> Option<InstanceTypes> {
    Some(Document::read(&content(kit)?).unwrap().types().clone())
}

/// Waits until this number of types is published; returns their names.
async fn names(kit: &Kit, count: usize) -> Vec<String> {
    kit.until(&format!("{count} types are published"), |kit| {
        let types = published(kit)?;
        (types.0.len() >= count).then(|| types.0.into_keys().collect())
    })
    .await
}

async fn queries(kit: &Kit) -> u64 {
    kit.fake.count("DescribeInstanceTypes").await
}

#[tokio::test]
async fn the_types_of_all_nodes_are_published_once() {
    let kit = kit_with_nodes(&[]).await;
    // One Node has the label, the type of another one is known to the cloud only, the third is not of this cloud.
    kit.node("labelled", Some("ecs.g7se.16xlarge"), None);
    kit.node("unlabelled", None, Some("i-one"));
    kit.node("virtual", Some("eci"), None);
    let (_controller, _) = publisher(&kit).await;
    assert_eq!(names(&kit, 2).await, ["ecs.g6.large", "ecs.g7se.16xlarge"]);
    let types = published(&kit).unwrap();
    assert_eq!(types.0["ecs.g7se.16xlarge"].disk_quantity, 56);
    assert!(!types.0["ecs.g6.large"].categories.is_empty());
    // The labels of the chart remain.
    assert_eq!(kit.get(CONFIG_MAP).unwrap()["metadata"]["labels"]["app"], "chart");

    // A Node of a known type causes no call, one of a new type one query and one patch.
    let (patches, before) = (kit.api.count("PATCH"), queries(&kit).await);
    kit.node("third", Some("ecs.g6.large"), None);
    kit.node("fourth", Some("ecs.g8i.large"), None);
    assert_eq!(names(&kit, 3).await.len(), 3);
    assert_eq!(kit.api.count("PATCH"), patches + 1);
    assert_eq!(queries(&kit).await, before + 1);
}

#[tokio::test]
async fn a_second_controller_does_not_query_published_types() {
    let kit = kit_with_nodes(&["ecs.g6.large"]).await;
    let (first, _) = publisher(&kit).await;
    names(&kit, 1).await;
    drop(first);
    let get = format!("GET {CONFIG_MAP}");
    let (before, reads) = (queries(&kit).await, kit.api.count(&get));
    let (_second, _) = publisher(&kit).await;
    kit.wait("it has read the ConfigMap", |kit| kit.api.count(&get) > reads)
        .await;
    kit.node("b", Some("ecs.g7.large"), None);
    names(&kit, 2).await;
    assert_eq!(queries(&kit).await, before + 1);
}

#[tokio::test]
async fn types_that_another_replica_published_in_the_meantime_remain() {
    let kit = kit_with_nodes(&["ecs.g6.large"]).await;
    let other = r#"{"instanceTypes": {"ecs.other": {"diskQuantity": 5}}}"#;
    let patch = json!({"data": {"instance-types.json": other}});
    kit.api
        .change(|world| world.overtaken.push((CONFIG_MAP.to_owned(), patch)));
    let (_controller, _) = publisher(&kit).await;
    assert_eq!(names(&kit, 2).await, ["ecs.g6.large", "ecs.other"]);
    assert_eq!(kit.api.count(&format!("PATCH {CONFIG_MAP}")), 2);
}

#[tokio::test]
async fn calls_succeed_while_the_api_server_is_unavailable() {
    let mut kit = kit_with_nodes(&["ecs.g6.large"]).await;
    kit.api.stop();
    let flags = [FLAG, "--events", "--startup-taint=x/y", "--http-address=127.0.0.1:0"];
    let (controller, channel) = kit.ready(&flags).await;
    create(&channel, "pvc-1").await.unwrap();
    logged(&controller, "using the last known state").await;
    kit.api.restart();
    names(&kit, 1).await;

    kit.api.stop();
    create(&channel, "pvc-2").await.unwrap();
    kit.node("b", Some("ecs.g7.large"), None);
    kit.api.restart();
    names(&kit, 2).await;
    // One line for each kind of object and outage, despite all retries.
    let log = controller.stderr();
    let lines = log.matches("using the last known state").count();
    assert!((2..=4).contains(&lines), "{log}");
    logged(&controller, "they can be watched again").await;
}

#[tokio::test]
async fn a_missing_config_map_is_logged_with_advice_and_written_later() {
    let kit = Kit::new(&[]).await;
    kit.node("a", Some("ecs.g6.large"), None);
    kit.forbid(&[&format!("PATCH {CONFIG_MAP}")]);
    let (controller, channel) = publisher(&kit).await;
    let advice = "ConfigMap storage/types: it does not exist; run `helm upgrade`, which creates it";
    logged(&controller, advice).await;
    kit.config_map();
    kit.wait("it is patched", |kit| kit.api.count("PATCH") > 0).await;
    kit.forbid(&[]);
    names(&kit, 1).await;
    create(&channel, "pvc-1").await.unwrap();
    // A second error of the same step is not logged.
    let refused = "PATCH /api/v1/namespaces/storage/configmaps/types. Grant it";
    assert_lacks(&controller.stderr(), &[refused]);
    logged(&controller, "are published again").await;
}

#[tokio::test]
async fn a_missing_permission_to_watch_is_logged_with_advice() {
    let kit = Kit::new(&[]).await;
    kit.forbid(&[&format!("GET {NODES}")]);
    let (controller, _) = publisher(&kit).await;
    logged(&controller, "grant the ServiceAccount list and watch of them").await;
    logged(&controller, "system:serviceaccount:ns:it").await;
}

#[tokio::test]
async fn without_these_features_the_api_server_is_not_called() {
    let kit = Kit::new(&[]).await;
    let (_controller, channel) = kit.ready(&[]).await;
    create(&channel, "pvc-1").await.unwrap();
    assert_eq!(kit.api.count(""), 0);
}

#[tokio::test]
async fn invalid_content_is_logged_with_advice_and_remains_until_it_is_removed() {
    let kit = kit_with_nodes(&["ecs.g6.large"]).await;
    for (text, reason) in [
        ("{\"types\": {}}", "instanceTypes is missing"),
        ("instanceTypes: {}", "invalid JSON"),
    ] {
        kit.put(CONFIG_MAP, json!({"data": {"instance-types.json": text}}));
        let (controller, _) = publisher(&kit).await;
        logged(&controller, reason).await;
        logged(&controller, "remove instance-types.json").await;
        assert_eq!(kit.api.count("PATCH"), 0);
        assert_eq!(content(&kit).as_deref(), Some(text));
    }
    kit.config_map();
    let (_controller, _) = publisher(&kit).await;
    names(&kit, 1).await;
}

#[tokio::test]
async fn content_of_a_later_version_is_extended_and_kept() {
    let kit = kit_with_nodes(&["ecs.g6.large"]).await;
    let later = r#"{"format": 2, "instanceTypes": {
        "ecs.other": {"diskQuantity": 5, "slots": 4, "categories": ["cloud_next"]}}}"#;
    kit.put(CONFIG_MAP, json!({"data": {"instance-types.json": later}}));
    let (controller, _) = publisher(&kit).await;
    assert!(names(&kit, 2).await.contains(&"ecs.g6.large".to_owned()));
    let written: Value = serde_json::from_str(&content(&kit).unwrap()).unwrap();
    assert_eq!(written["format"], 2);
    let row = &written["instanceTypes"]["ecs.other"];
    assert_eq!(row["slots"], 4);
    let categories = row["categories"].as_array().unwrap();
    assert!(categories.contains(&json!("cloud_next")), "{row}");
    logged(&controller, "holds \"cloud_next\"").await;
}

#[tokio::test]
async fn a_query_time_in_the_future_is_replaced() {
    let kit = kit_with_nodes(&["ecs.g6.large"]).await;
    let key = "diskplugin.csi.example/queried-at";
    kit.put(
        CONFIG_MAP,
        json!({"metadata": {"annotations": {key: "2999-01-01T00:00:00Z"}}}),
    );
    let (_controller, _) = publisher(&kit).await;
    names(&kit, 1).await;
    let time = kit.get(CONFIG_MAP).unwrap()["metadata"]["annotations"][key].take();
    assert!(time.as_str().unwrap().starts_with("20"), "{time}");
}

async fn refuse(kit: &Kit, action: &str, times: u32) {
    let kind = json!({"code": {"status": 403, "code": "Forbidden.RAM"}});
    let fault = json!({"action": action, "times": times, "kind": kind});
    kit.fake.configure(json!({"faults": [fault]})).await;
}

#[tokio::test]
async fn a_failed_query_of_instances_does_not_prevent_the_publication_of_other_types() {
    let kit = kit_with_nodes(&[]).await;
    refuse(&kit, "DescribeInstances", 1000).await;
    kit.node("unlabelled", None, Some("i-one"));
    let (controller, _) = publisher(&kit).await;
    logged(&controller, "are not published, retrying").await;
    kit.node("labelled", Some("ecs.g6.large"), None);
    assert_eq!(names(&kit, 1).await, ["ecs.g6.large"]);
}

#[tokio::test]
async fn a_failed_query_of_types_does_not_prevent_the_publication_of_others() {
    // They are queried in tens, in alphabetical order: all but the last one are in the first query.
    let mut types: Vec<_> = (0..10).map(|number| format!("ecs.a{number}.large")).collect();
    types.push("ecs.g6.large".to_owned());
    let kit = kit_with_nodes(&types.iter().map(String::as_str).collect::<Vec<_>>()).await;
    refuse(&kit, "DescribeInstanceTypes", 1).await;
    let (controller, _) = publisher(&kit).await;
    assert_eq!(names(&kit, 1).await, ["ecs.g6.large"]);
    assert_eq!(queries(&kit).await, 2);
    logged(&controller, "are not published, retrying").await;
}
