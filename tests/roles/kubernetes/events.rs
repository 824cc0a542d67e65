//! Events of claims and nodes.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Code, Status};

use diskplugin::csi::proto::controller_client::ControllerClient;

use crate::common::csi::{publish, volume};
use crate::kubernetes::kit::{DRIVER, Kit};
use crate::running::logged;
use crate::text::assert_has;

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

#[tokio::test]
async fn a_claim_gets_one_event_if_disks_are_out_of_stock() {
    let kit = Kit::new(&["--out-of-stock=*/cloud_essd"]).await;
    let (_controller, channel) = kit.ready(&["--events"]).await;
    sold_out(&channel).await;
    for _ in 0..3 {
        let refused = claim(&channel, "data", UID).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
    }
    let event = kit.until("there is an event", |kit| kit.events().pop()).await;
    assert_eq!(event["reason"], "DiskOutOfStock");
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["reportingController"], DRIVER);
    let note = event["note"].as_str().unwrap();
    assert_has(note, &["cn-beijing-b", "cloud_essd", "add categories to `type`"]);
    let regarding = &event["regarding"];
    let expected = [
        ("kind", "PersistentVolumeClaim"),
        ("namespace", "team"),
        ("name", "data"),
        ("uid", UID),
    ];
    for (field, value) in expected {
        assert_eq!(regarding[field], value, "{event}");
    }
    // Another claim gets its own event.
    claim(&channel, "logs", OTHER).await.unwrap_err();
    kit.wait("there are two events", |kit| kit.events().len() == 2).await;
    assert_eq!(kit.api.count("POST"), 2);
    assert_eq!(kit.api.count("PATCH"), 0);
}

#[tokio::test]
async fn a_claim_gets_an_event_about_the_node_of_its_disk_and_a_node_about_its_limit() {
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
    let event = kit.until("there is an event", |kit| kit.events().pop()).await;
    assert_eq!(event["reason"], "DiskInUseElsewhere");
    assert_eq!(event["regarding"]["name"], "data");
    assert_eq!(event["regarding"]["uid"], UID);
    assert_eq!(event["related"]["name"], "first");
    assert_has(event["note"].as_str().unwrap(), &["node first (i-one) holds it"]);

    let logs = claim(&channel, "logs", OTHER).await.unwrap();
    let refused = publish(&channel, &logs, "i-one").await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let is_of_limit = |event: &Value| event["reason"] == "NodeAttachLimitExceeded";
    let find = |kit: &Kit| kit.events().into_iter().find(is_of_limit);
    let event = kit.until("the node has an event", find).await;
    for (field, value) in [("kind", "Node"), ("name", "first"), ("uid", "first")] {
        assert_eq!(event["regarding"][field], value, "{event}");
    }
    assert_eq!(event["related"]["name"], "logs");
    assert_eq!(event["metadata"]["namespace"], Value::Null);
    assert_eq!(kit.events().len(), 2);
}

#[tokio::test]
async fn events_that_cannot_be_written_change_no_response() {
    let kit = Kit::new(&["--out-of-stock=*/cloud_essd"]).await;
    kit.forbid(&["POST"]);
    let (controller, channel) = kit.ready(&["--events"]).await;
    sold_out(&channel).await;
    logged(&controller, "cannot write an event").await;
    logged(&controller, "Grant it").await;
    claim(&channel, "logs", OTHER).await.unwrap_err();
    assert_eq!(controller.stderr().matches("cannot write an event").count(), 1);
}
