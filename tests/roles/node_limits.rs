//! CSI's size limits in requests to the node.

use std::collections::HashMap;

use diskplugin::csi::proto::node_client::NodeClient;
use diskplugin::csi::proto::{
    NodeExpandVolumeRequest, NodeGetVolumeHealthRequest, NodeGetVolumeStatsRequest, NodePublishVolumeRequest,
    NodeStageVolumeRequest, NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest,
};
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::common::csi::{capability, endpoint, socket};
use crate::common::process::diskplugin;

/// Fails unless the call was rejected because of this field, with the size and the limit in the message.
fn assert_too_large<T: std::fmt::Debug>(field: &str, limit: usize, result: Result<T, Status>) {
    let status = result.unwrap_err();
    let message = status.message();
    assert_eq!(status.code(), Code::InvalidArgument, "{field}: {message}");
    let limit = format!("allows at most {limit}");
    assert!(message.contains(field) && message.contains(&limit), "{message}");
}

/// Calls each RPC with a volume ID.
async fn volume_id(client: &mut NodeClient<Channel>, id: &str) {
    let (id, path) = (id.to_owned(), "/nowhere".to_owned());
    let staged = client.node_stage_volume(NodeStageVolumeRequest {
        volume_id: id.clone(),
        staging_target_path: path.clone(),
        volume_capability: Some(capability()),
        ..NodeStageVolumeRequest::default()
    });
    assert_too_large("volume_id", 128, staged.await);
    let unstaged = client.node_unstage_volume(NodeUnstageVolumeRequest {
        volume_id: id.clone(),
        staging_target_path: path.clone(),
    });
    assert_too_large("volume_id", 128, unstaged.await);
    let published = client.node_publish_volume(NodePublishVolumeRequest {
        volume_id: id.clone(),
        staging_target_path: path.clone(),
        target_path: path.clone(),
        volume_capability: Some(capability()),
        ..NodePublishVolumeRequest::default()
    });
    assert_too_large("volume_id", 128, published.await);
    let unpublished = client.node_unpublish_volume(NodeUnpublishVolumeRequest {
        volume_id: id.clone(),
        target_path: path.clone(),
    });
    assert_too_large("volume_id", 128, unpublished.await);
    let stats = client.node_get_volume_stats(NodeGetVolumeStatsRequest {
        volume_id: id.clone(),
        volume_path: path.clone(),
        ..NodeGetVolumeStatsRequest::default()
    });
    assert_too_large("volume_id", 128, stats.await);
    let health = client.node_get_volume_health(NodeGetVolumeHealthRequest {
        volume_id: id.clone(),
        volume_publish_path: path.clone(),
        ..NodeGetVolumeHealthRequest::default()
    });
    assert_too_large("volume_id", 128, health.await);
    let expanded = client.node_expand_volume(NodeExpandVolumeRequest {
        volume_id: id,
        volume_path: path,
        ..NodeExpandVolumeRequest::default()
    });
    assert_too_large("volume_id", 128, expanded.await);
}

#[tokio::test]
async fn fields_beyond_the_limits_of_csi_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let start = diskplugin([
        "node",
        "--zone=cn-beijing-b",
        "--node-id=i-1",
        &format!("--kubelet-dir={}", dir.path().display()),
        &endpoint(&socket),
    ]);
    let (_node, channel) = start.ready(&socket).await;
    let mut client = NodeClient::new(channel);
    volume_id(&mut client, &format!("d-{}", "x".repeat(4000))).await;
    let large: HashMap<_, _> = [("key".to_owned(), "x".repeat(9000))].into();
    let stage = NodeStageVolumeRequest {
        volume_id: "d-1".to_owned(),
        staging_target_path: dir.path().join("staging").display().to_string(),
        volume_capability: Some(capability()),
        ..NodeStageVolumeRequest::default()
    };
    let publish = NodePublishVolumeRequest {
        volume_id: "d-1".to_owned(),
        staging_target_path: stage.staging_target_path.clone(),
        target_path: dir.path().join("target").display().to_string(),
        volume_capability: Some(capability()),
        ..NodePublishVolumeRequest::default()
    };
    let staged = client.node_stage_volume(NodeStageVolumeRequest {
        publish_context: large.clone(),
        ..stage.clone()
    });
    assert_too_large("publish_context", 4096, staged.await);
    let staged = client.node_stage_volume(NodeStageVolumeRequest {
        volume_context: large.clone(),
        ..stage
    });
    assert_too_large("volume_context", 4096, staged.await);
    let published = client.node_publish_volume(NodePublishVolumeRequest {
        publish_context: large.clone(),
        ..publish.clone()
    });
    assert_too_large("publish_context", 4096, published.await);
    let published = client.node_publish_volume(NodePublishVolumeRequest {
        volume_context: large,
        ..publish
    });
    assert_too_large("volume_context", 4096, published.await);
}
