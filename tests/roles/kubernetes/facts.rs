//! What instance types take, from the cloud into the ConfigMap.

use diskplugin::model::instance_types::InstanceTypes;
use serde_json::{Value, json};

use crate::common::csi::create;
use crate::common::process::diskplugin;
use crate::kubernetes::api::Api;
use crate::kubernetes::kit::{CONFIG_MAP, Kit, NODES, logged};

const FLAG: &str = "--instance-types-config-map=types";

/// What the ConfigMap says, where it says something.
fn said(api: &Api) -> Option<InstanceTypes> {
    let object = api.see(|world| world.store.get(CONFIG_MAP).cloned())?;
    let text = object.pointer("/data/instance-types.json")?.as_str()?;
    Some(InstanceTypes::parse(text).unwrap())
}

/// The names of the types that it tells of, once there are so many.
async fn names(kit: &Kit, count: usize) -> Vec<String> {
    kit.until(&format!("{count} types are published"), |api| {
        let types = said(api)?;
        (types.0.len() >= count).then(|| types.0.into_keys().collect())
    })
    .await
}

#[tokio::test]
async fn the_types_of_all_nodes_are_published_once_whoever_says_what_they_are() {
    let kit = Kit::new(&[]).await;
    kit.config_map();
    // One says it, of one only the cloud knows, one is not of this cloud.
    kit.node("labelled", Some("ecs.g7se.16xlarge"), None);
    kit.node("silent", None, Some("i-one"));
    kit.node("virtual", Some("eci"), None);
    let (_controller, _) = kit.ready(&[FLAG]).await;
    assert_eq!(names(&kit, 2).await, ["ecs.g6.large", "ecs.g7se.16xlarge"]);
    let types = said(&kit.api).unwrap();
    assert_eq!(types.0["ecs.g7se.16xlarge"].disk_quantity, 56);
    assert!(!types.0["ecs.g6.large"].categories.is_empty());
    // What the chart put there stays.
    let object = kit.api.see(|world| world.store.get(CONFIG_MAP).cloned()).unwrap();
    assert_eq!(object["metadata"]["labels"]["app"], "chart");

    // A node of a type that is known costs nothing; one of a new type is told of at once.
    let (patches, asked) = (kit.api.count("PATCH"), kit.fake.count("DescribeInstanceTypes").await);
    kit.node("third", Some("ecs.g6.large"), None);
    kit.node("fourth", Some("ecs.g8i.large"), None);
    assert_eq!(names(&kit, 3).await.len(), 3);
    assert_eq!(kit.api.count("PATCH"), patches + 1);
    assert_eq!(kit.fake.count("DescribeInstanceTypes").await, asked + 1);
}

#[tokio::test]
async fn a_second_controller_asks_the_cloud_for_nothing_that_is_published() {
    let kit = Kit::new(&[]).await;
    kit.config_map();
    kit.node("a", Some("ecs.g6.large"), None);
    let (first, _) = kit.ready(&[FLAG]).await;
    names(&kit, 1).await;
    drop(first);
    let asked = kit.fake.count("DescribeInstanceTypes").await;
    let reads = kit.api.count(&format!("GET {CONFIG_MAP}"));
    let (_second, _) = kit.ready(&[FLAG]).await;
    kit.until("it has looked", |api| {
        (api.count(&format!("GET {CONFIG_MAP}")) > reads).then_some(())
    })
    .await;
    kit.node("b", Some("ecs.g7.large"), None);
    names(&kit, 2).await;
    assert_eq!(kit.fake.count("DescribeInstanceTypes").await, asked + 1);
}

#[tokio::test]
async fn what_another_replica_wrote_meanwhile_stays() {
    let kit = Kit::new(&[]).await;
    kit.config_map();
    let other = r#"{"instanceTypes": {"ecs.other": {"diskQuantity": 5}}}"#;
    let patch = json!({"data": {"instance-types.json": other}});
    kit.api
        .change(|world| world.overtaken.push((CONFIG_MAP.to_owned(), patch)));
    kit.node("a", Some("ecs.g6.large"), None);
    let (_controller, _) = kit.ready(&[FLAG]).await;
    assert_eq!(names(&kit, 2).await, ["ecs.g6.large", "ecs.other"]);
    assert_eq!(kit.api.count(&format!("PATCH {CONFIG_MAP}")), 2);
}

#[tokio::test]
async fn the_api_server_may_be_away_at_the_start_and_later_and_calls_are_answered() {
    let mut kit = Kit::new(&[]).await;
    kit.config_map();
    kit.node("a", Some("ecs.g6.large"), None);
    kit.api.stop();
    let flags = [FLAG, "--events", "--startup-taint=x/y", "--http-address=127.0.0.1:0"];
    let (controller, channel) = kit.ready(&flags).await;
    create(&channel, "pvc-1").await.unwrap();
    logged(&controller, "using the last known state").await;
    kit.api.again();
    names(&kit, 1).await;

    kit.api.stop();
    create(&channel, "pvc-2").await.unwrap();
    kit.node("b", Some("ecs.g7.large"), None);
    kit.api.again();
    names(&kit, 2).await;
    // Once for each kind and absence, however often it was tried.
    let told = controller.stderr().matches("using the last known state").count();
    assert!((2..=4).contains(&told), "{}", controller.stderr());
    logged(&controller, "they can be watched again").await;
}

#[tokio::test]
async fn what_is_missing_or_forbidden_is_said_with_what_to_do_and_is_made_up_for() {
    let kit = Kit::new(&[]).await;
    kit.node("a", Some("ecs.g6.large"), None);
    let forbidden = format!("PATCH {CONFIG_MAP}");
    kit.api.change(|world| world.forbidden.push(forbidden));
    let (controller, channel) = kit.ready(&[FLAG]).await;
    logged(
        &controller,
        "ConfigMap storage/types: it does not exist; run `helm upgrade`, which creates it",
    )
    .await;
    kit.config_map();
    let refused = "PATCH /api/v1/namespaces/storage/configmaps/types. Grant it";
    kit.until("it is tried", |api| (api.count("PATCH") > 0).then_some(()))
        .await;
    kit.api.change(|world| world.forbidden.clear());
    names(&kit, 1).await;
    create(&channel, "pvc-1").await.unwrap();
    // The first failure was told; the second of the same trouble was not.
    assert!(!controller.stderr().contains(refused), "{}", controller.stderr());
    logged(&controller, "are published again").await;
}

#[tokio::test]
async fn who_may_not_watch_is_told_what_to_grant() {
    let kit = Kit::new(&[]).await;
    kit.api.change(|world| world.forbidden.push(format!("GET {NODES}")));
    let (controller, _) = kit.ready(&[FLAG]).await;
    logged(&controller, "grant the ServiceAccount list and watch of them").await;
    logged(&controller, "system:serviceaccount:ns:it").await;
}

#[tokio::test]
async fn without_an_api_server_nothing_is_asked_for_and_asking_is_a_wrong_setting() {
    let kit = Kit::new(&[]).await;
    let (_controller, channel) = kit.ready(&[]).await;
    create(&channel, "pvc-1").await.unwrap();
    assert_eq!(kit.api.see(|world| world.calls.len()), 0);

    let args = ["controller", "--region=r", "--zone=z", "--cluster-id=c", "--events"];
    let ended = diskplugin(args)
        .env("ACCESS_KEY_ID", "a")
        .env("ACCESS_KEY_SECRET", "b")
        .ended()
        .await;
    assert_eq!(ended.code, Some(64), "{}", ended.stderr);
    for part in ["--events: requires the API server", "set --kubeconfig"] {
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn what_is_not_understood_is_left_with_advice_until_somebody_takes_it_out() {
    let kit = Kit::new(&[]).await;
    for (text, told) in [
        ("{\"types\": {}}", "instanceTypes is missing"),
        ("instanceTypes: {}", "invalid JSON"),
    ] {
        let foreign: Value = json!({"data": {"instance-types.json": text}});
        kit.api.change(|world| world.store.put(CONFIG_MAP, foreign));
        kit.node("a", Some("ecs.g6.large"), None);
        let (controller, _) = kit.ready(&[FLAG]).await;
        logged(&controller, told).await;
        logged(&controller, "remove instance-types.json").await;
        assert_eq!(kit.api.count("PATCH"), 0);
        let object = kit.api.see(|world| world.store.get(CONFIG_MAP).cloned());
        assert_eq!(object.unwrap()["data"]["instance-types.json"], text);
    }
    kit.config_map();
    let (_controller, _) = kit.ready(&[FLAG]).await;
    names(&kit, 1).await;
}

#[tokio::test]
async fn what_a_later_version_wrote_is_added_to_and_kept() {
    let kit = Kit::new(&[]).await;
    let later = r#"{"format": 2, "instanceTypes": {
        "ecs.other": {"diskQuantity": 5, "slots": 4, "categories": ["cloud_next"]}}}"#;
    let object = json!({"data": {"instance-types.json": later}});
    kit.api.change(|world| world.store.put(CONFIG_MAP, object));
    kit.node("a", Some("ecs.g6.large"), None);
    let (controller, _) = kit.ready(&[FLAG]).await;
    assert!(names(&kit, 2).await.contains(&"ecs.g6.large".to_owned()));
    let object = kit.api.see(|world| world.store.get(CONFIG_MAP).cloned());
    let object = object.unwrap();
    let text = object["data"]["instance-types.json"].as_str().unwrap();
    let written: Value = serde_json::from_str(text).unwrap();
    assert_eq!(written["format"], 2);
    let row = &written["instanceTypes"]["ecs.other"];
    assert_eq!(row["slots"], 4);
    let categories = row["categories"].as_array().unwrap();
    assert!(categories.contains(&json!("cloud_next")), "{row}");
    logged(&controller, "holds \"cloud_next\"").await;
}

#[tokio::test]
async fn a_time_of_the_future_is_healed() {
    let kit = Kit::new(&[]).await;
    let key = "diskplugin.csi.example/queried-at";
    let asked = json!({"metadata": {"annotations": {key: "2999-01-01T00:00:00Z"}}});
    kit.api.change(|world| world.store.put(CONFIG_MAP, asked));
    kit.node("a", Some("ecs.g6.large"), None);
    let (_controller, _) = kit.ready(&[FLAG]).await;
    names(&kit, 1).await;
    let object = kit.api.see(|world| world.store.get(CONFIG_MAP).cloned());
    let object = object.unwrap();
    let asked = object["metadata"]["annotations"][key].as_str().unwrap();
    assert!(asked.starts_with("20"), "{asked}");
}

fn refusal(action: &str, times: u32) -> Value {
    json!({"action": action, "times": times, "kind": {"code": {"status": 403, "code": "Forbidden.RAM"}}})
}

#[tokio::test]
async fn instances_that_cannot_be_asked_for_keep_no_type_from_being_published() {
    let kit = Kit::new(&[]).await;
    let faults = [refusal("DescribeInstances", 1000)];
    kit.fake.configure(json!({"faults": faults})).await;
    kit.config_map();
    kit.node("silent", None, Some("i-one"));
    let (controller, _) = kit.ready(&[FLAG]).await;
    logged(&controller, "are not published, retrying").await;
    kit.node("labelled", Some("ecs.g6.large"), None);
    assert_eq!(names(&kit, 1).await, ["ecs.g6.large"]);
}

#[tokio::test]
async fn a_group_of_types_that_fails_keeps_no_other_from_being_published() {
    let kit = Kit::new(&[]).await;
    let faults = [refusal("DescribeInstanceTypes", 1)];
    kit.fake.configure(json!({"faults": faults})).await;
    kit.config_map();
    // They are asked for in tens, by the alphabet: all but the last are in the first group.
    for number in 0..10 {
        let name = format!("ecs.a{number}.large");
        kit.node(&format!("n{number}"), Some(&name), None);
    }
    kit.node("last", Some("ecs.g6.large"), None);
    let (controller, _) = kit.ready(&[FLAG]).await;
    assert_eq!(names(&kit, 1).await, ["ecs.g6.large"]);
    assert_eq!(kit.fake.count("DescribeInstanceTypes").await, 2);
    logged(&controller, "are not published, retrying").await;
}
