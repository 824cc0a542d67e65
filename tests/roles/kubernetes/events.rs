//! Events of claims and nodes.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Code, Status};

use diskplugin::csi::proto::controller_client::ControllerClient;

use crate::common::csi::{publish, volume};
use crate::kubernetes::kit::{Kit, logged};

const UID: &str = "0d6e3b1c-5f5c-4c39-9a3e-1f0e4a3f9d2b";
const OTHER: &str = "7a6e3b1c-5f5c-4c39-9a3e-1f0e4a3f9d2b";

/// As the provisioner creates it for a claim.
async fn claim(channel: &Channel, name: &str, uid: &str) -> Result<String, Status> {
    let mut request = volume(&format!("pvc-{uid}"));
    for (key, value) in [
        ("pvc/namespace", "team"),
        ("pvc/name", name),
        ("pv/name", &format!("pvc-{uid}")),
    ] {
        let key = format!("csi.storage.k8s.io/{key}");
        request.parameters.insert(key, value.to_owned());
    }
    let mut controller = ControllerClient::new(channel.clone());
    let created = controller.create_volume(request).await?;
    Ok(created.into_inner().volume.unwrap().volume_id)
}

/// Repeats a claim until the refusal is final, a minute after the start of the process.
async fn sold_out(channel: &Channel) {
    let end = Instant::now() + Duration::from_secs(120);
    loop {
        let refused = claim(channel, "data", UID).await.unwrap_err();
        if refused.code() == Code::ResourceExhausted {
            return;
        }
        assert!(Instant::now() < end, "{refused:?}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

async fn one_event(kit: &Kit) -> Value {
    kit.until("there is an event", |_| kit.events().into_iter().next())
        .await
}

#[tokio::test]
async fn a_claim_learns_once_that_disks_are_sold_out() {
    let kit = Kit::new(&["--out-of-stock=*/cloud_essd"]).await;
    let (_controller, channel) = kit.ready(&["--events"]).await;
    sold_out(&channel).await;
    for _ in 0..3 {
        let refused = claim(&channel, "data", UID).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
    }
    let event = one_event(&kit).await;
    assert_eq!(event["reason"], "DiskOutOfStock");
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["reportingController"], "diskplugin.csi.example");
    let note = event["note"].as_str().unwrap();
    for part in ["cn-beijing-b", "cloud_essd", "add categories to `type`"] {
        assert!(note.contains(part), "{note}");
    }
    let claim_of = &event["regarding"];
    assert_eq!(claim_of["kind"], "PersistentVolumeClaim");
    assert_eq!(
        (&claim_of["namespace"], &claim_of["name"]),
        (&json!("team"), &json!("data"))
    );
    assert_eq!(claim_of["uid"], UID);
    // Another claim is other news.
    claim(&channel, "logs", OTHER).await.unwrap_err();
    kit.until("the other one is told too", |_| (kit.events().len() == 2).then_some(()))
        .await;
    assert_eq!(kit.api.count("POST"), 2);
    assert_eq!(kit.api.count("PATCH"), 0);
}

#[tokio::test]
async fn a_claim_learns_who_holds_its_disk_and_a_node_that_it_is_full() {
    let kit = Kit::new(&["--disk-quantity=2"]).await;
    kit.node("first", None, Some("i-one"));
    kit.node("second", None, Some("i-two"));
    let (_controller, channel) = kit.ready(&["--events"]).await;
    let data = claim(&channel, "data", UID).await.unwrap();
    publish(&channel, &data, "i-one").await.unwrap();
    for _ in 0..3 {
        let refused = publish(&channel, &data, "i-two").await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
    }
    let event = one_event(&kit).await;
    assert_eq!(event["reason"], "DiskInUseElsewhere");
    assert_eq!(event["regarding"]["name"], "data");
    assert_eq!(event["regarding"]["uid"], UID);
    assert_eq!(event["related"]["name"], "first");
    let note = event["note"].as_str().unwrap();
    assert!(note.contains("node first (i-one) holds it"), "{note}");

    let logs = claim(&channel, "logs", OTHER).await.unwrap();
    let refused = publish(&channel, &logs, "i-one").await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let event = kit
        .until("the node is told of", |_| {
            let mut events = kit.events().into_iter();
            events.find(|event| event["reason"] == "NodeAttachLimitExceeded")
        })
        .await;
    let node = &event["regarding"];
    assert_eq!(
        (&node["kind"], &node["name"], &node["uid"]),
        (&json!("Node"), &json!("first"), &json!("first"))
    );
    assert_eq!(event["related"]["name"], "logs");
    assert_eq!(event["metadata"]["namespace"], Value::Null);
    assert_eq!(kit.events().len(), 2);
}

#[tokio::test]
async fn events_that_cannot_be_written_change_no_answer() {
    let kit = Kit::new(&["--out-of-stock=*/cloud_essd"]).await;
    kit.api.change(|world| world.forbidden.push("POST".to_owned()));
    let (controller, channel) = kit.ready(&["--events"]).await;
    sold_out(&channel).await;
    logged(&controller, "cannot write an event").await;
    logged(&controller, "Grant it").await;
    claim(&channel, "logs", OTHER).await.unwrap_err();
    assert_eq!(controller.stderr().matches("cannot write an event").count(), 1);
}
