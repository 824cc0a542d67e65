//! Reproductions of a hostile review, over the service.

use std::time::Duration;

use serde_json::json;
use tonic::Request;
use wiremock::matchers::query_param;
use wiremock::{Mock, ResponseTemplate};

use diskplugin::csi::proto::ListVolumesRequest;
use diskplugin::csi::proto::controller_server::Controller;

use crate::kit::{Stage, within};

#[tokio::test]
async fn an_answer_that_names_a_code_is_no_success_whatever_its_status() {
    for body in [
        json!({"Code": "Throttling", "Message": "x", "RequestId": "R"}),
        json!({}),
    ] {
        let (stage, server) = Stage::over_http(&["--create-delay=10ms"]).await;
        let volume = stage.volume("pvc-1").await;
        Mock::given(query_param("Action", "DeleteDisk"))
            .respond_with(ResponseTemplate::new(200).set_body_json(&body))
            .with_priority(1)
            .mount(&server)
            .await;
        let request = diskplugin::csi::proto::DeleteVolumeRequest {
            volume_id: volume,
            ..Default::default()
        };
        let deleted = stage
            .service
            .delete_volume(within(Duration::from_secs(3), request))
            .await;
        assert!(
            deleted.is_err() || stage.disks().is_empty(),
            "{body}: OK, and the disk is there"
        );
    }
}
