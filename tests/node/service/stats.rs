//! Volume statistics.

use std::fs;

use diskplugin::csi::proto::NodeGetVolumeStatsRequest;
use diskplugin::csi::proto::node_server::Node as _;
use tonic::{Code, Request, Status};

use crate::service::kit::World;

#[tokio::test]
async fn a_path_without_the_volume_is_not_found() {
    let Some(world) = World::new().await else { return };
    fs::create_dir(world.path("empty")).unwrap();
    let code = |error: Status| error.code();
    assert_eq!(world.total_bytes("empty").await.map_err(code), Err(Code::NotFound));
    assert_eq!(world.total_bytes("nowhere").await.map_err(code), Err(Code::NotFound));
    assert_eq!(world.expand("empty", 0).await.map_err(code), Err(Code::NotFound));
    let request = NodeGetVolumeStatsRequest {
        volume_id: world.volume(),
        volume_path: "some/path".to_owned(),
        ..Default::default()
    };
    let response = world.service.node_get_volume_stats(Request::new(request));
    assert_eq!(response.await.unwrap_err().code(), Code::NotFound);
}
