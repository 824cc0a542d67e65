//! CSI's size limits in requests to the node.

use std::collections::HashMap;

use diskplugin::csi::proto::node_client::NodeClient;
use diskplugin::csi::proto::{
    NodeExpandVolumeRequest, NodeGetVolumeHealthRequest, NodeGetVolumeStatsRequest, NodePublishVolumeRequest,
    NodeStageVolumeRequest, NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest,
};
use tonic::{Code, Response, Status};

use crate::running::Running;
use crate::text::assert_has;

/// Asserts that the call was rejected because of this field, with the limit in the message.
fn assert_too_large<T: std::fmt::Debug>(field: &str, limit: usize, result: Result<Response<T>, Status>) {
    let status = result.unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{field}: {status}");
    assert_has(status.message(), &[field, &format!("allows at most {limit}")]);
}

#[tokio::test]
async fn fields_beyond_the_limits_of_csi_are_rejected() {
    let node = Running::node(&[]).await;
    let mut client = NodeClient::new(node.channel.clone());
    // The messages of the RPCs are different types.
    macro_rules! reject {
        ($field:ident: $value:expr, $limit:expr, $($call:ident($request:ident)),*) => {$(
            let request = $request { $field: $value.clone(), ..$request::default() };
            assert_too_large(stringify!($field), $limit, client.$call(request).await);
        )*};
    }
    reject!(
        volume_id: format!("d-{}", "x".repeat(4000)), 128,
        node_stage_volume(NodeStageVolumeRequest),
        node_unstage_volume(NodeUnstageVolumeRequest),
        node_publish_volume(NodePublishVolumeRequest),
        node_unpublish_volume(NodeUnpublishVolumeRequest),
        node_get_volume_stats(NodeGetVolumeStatsRequest),
        node_get_volume_health(NodeGetVolumeHealthRequest),
        node_expand_volume(NodeExpandVolumeRequest)
    );
    let large: HashMap<_, _> = [("key".to_owned(), "x".repeat(9000))].into();
    reject!(publish_context: large, 4096, node_stage_volume(NodeStageVolumeRequest));
    reject!(publish_context: large, 4096, node_publish_volume(NodePublishVolumeRequest));
    reject!(volume_context: large, 4096, node_stage_volume(NodeStageVolumeRequest));
    reject!(volume_context: large, 4096, node_publish_volume(NodePublishVolumeRequest));
}
