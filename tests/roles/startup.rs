//! Each role starts, with settings from the instance metadata service where flags are unset.

use std::path::Path;

use crate::common::csi::{create, endpoint, info, list, publish};
use crate::common::fake::{Fake, NODES, ZONE};
use crate::common::process::diskplugin;
use crate::running::Running;

#[tokio::test]
async fn a_node_has_no_credentials_and_makes_no_cloud_calls() {
    let fake = Fake::start(&[]).await;
    let node = Running::of(|socket| diskplugin(["node", &fake.metadata(NODES[1]), &endpoint(socket)])).await;
    let info = info(&node.channel).await.unwrap();
    assert_eq!(info.node_id, NODES[1]);
    let segments = info.accessible_topology.unwrap().segments;
    assert_eq!(segments["topology.kubernetes.io/zone"], ZONE);
    assert_eq!(fake.calls().await, Vec::<serde_json::Value>::new());
}

#[tokio::test]
async fn all_in_one_gets_its_location_from_a_metadata_service_that_requires_tokens() {
    let fake = Fake::start(&["--metadata-token-required"]).await;
    let both = Running::of(|socket| {
        let url = format!("--ecs-endpoint={}", fake.url);
        let start = diskplugin(["all-in-one", "--cluster-id=c-test", &url, &endpoint(socket)]);
        start.keys().args([fake.metadata(NODES[0])])
    });
    let both = both.await;
    assert_eq!(info(&both.channel).await.unwrap().node_id, NODES[0]);
    create(&both.channel, "pvc-1").await.unwrap();
    assert_eq!(fake.disks().await[0]["zone"], ZONE);
    for call in fake.calls().await {
        assert_eq!(call["params"]["RegionId"], "cn-beijing", "{call}");
    }
}

#[tokio::test]
async fn all_in_one_with_an_embedded_cloud_needs_no_settings() {
    let start = |socket: &Path| diskplugin(["all-in-one", &endpoint(socket)]).env("DISKPLUGIN_CLOUD", "mock");
    let both = Running::of(start).await;
    let volume = create(&both.channel, "pvc-1").await.unwrap();
    let node = info(&both.channel).await.unwrap().node_id;
    publish(&both.channel, &volume, &node).await.unwrap();
    assert_eq!(list(&both.channel).await.unwrap(), 1);
}
