//! Each role starts, with settings from the instance metadata service where flags are unset.

use crate::common::csi::{create, endpoint, info, list, publish, socket};
use crate::common::fake::{Fake, NODES, ZONE};
use crate::common::process::{Start, diskplugin};

fn all_in_one(fake: &Fake, endpoint: &str) -> Start {
    let url = format!("--ecs-endpoint={}", fake.url);
    diskplugin(["all-in-one", "--cluster-id=c-test", &url, endpoint]).keys()
}

#[tokio::test]
async fn a_controller_creates_and_attaches_over_signed_http() {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let socket = socket(&dir);
    let (_controller, channel) = fake.controller(&socket).keys().ready(&socket).await;
    let volume = create(&channel, "pvc-1").await.unwrap();
    publish(&channel, &volume, NODES[0]).await.unwrap();
    let disks = fake.disks().await;
    assert_eq!(disks.len(), 1);
    assert_eq!(
        (&disks[0]["id"], &disks[0]["status"]),
        (&volume.into(), &"In_use".into())
    );
}

#[tokio::test]
async fn a_controller_with_signature_v3_uses_it_for_every_call() {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let socket = socket(&dir);
    let start = fake.controller(&socket).keys().args(["--signature=v3"]);
    let (_controller, channel) = start.ready(&socket).await;
    create(&channel, "pvc-1").await.unwrap();
    let calls = fake.calls().await;
    assert!(
        !calls.is_empty() && calls.iter().all(|call| call["via"] == "v3"),
        "{calls:?}"
    );
}

#[tokio::test]
async fn a_node_has_no_credentials_and_makes_no_cloud_calls() {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let socket = socket(&dir);
    let start = diskplugin(["node", &fake.metadata(NODES[1]), &endpoint(&socket)]);
    let (_node, channel) = start.ready(&socket).await;
    let info = info(&channel).await.unwrap();
    assert_eq!(info.node_id, NODES[1]);
    let segments = info.accessible_topology.unwrap().segments;
    assert_eq!(segments["topology.kubernetes.io/zone"], ZONE);
    assert_eq!(fake.calls().await, Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn all_in_one_gets_its_location_from_a_metadata_service_that_requires_tokens() {
    let fake = Fake::start(&["--metadata-token-required"]).await;
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let start = all_in_one(&fake, &endpoint(&socket)).args([fake.metadata(NODES[0])]);
    let (_both, channel) = start.ready(&socket).await;
    assert_eq!(info(&channel).await.unwrap().node_id, NODES[0]);
    create(&channel, "pvc-1").await.unwrap();
    assert_eq!(fake.disks().await[0]["zone"], ZONE);
    let calls = fake.calls().await;
    assert!(
        calls.iter().all(|call| call["params"]["RegionId"] == "cn-beijing"),
        "{calls:?}"
    );
}

#[tokio::test]
async fn all_in_one_with_an_embedded_cloud_needs_no_settings() {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let start = diskplugin(["all-in-one", "--cloud=mock", &endpoint(&socket)]);
    let (_both, channel) = start.ready(&socket).await;
    let volume = create(&channel, "pvc-1").await.unwrap();
    let node = info(&channel).await.unwrap().node_id;
    publish(&channel, &volume, &node).await.unwrap();
    assert_eq!(list(&channel).await.unwrap(), 1);
}
