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

#[tokio::test(start_paused = true)]
async fn a_listing_shows_nothing_that_was_deleted_while_it_was_read() {
    let stage = Stage::new(&["--create-delay=10ms"]);
    let mut volumes = Vec::new();
    for n in 0..6 {
        volumes.push(stage.volume(&format!("pvc-{n}")).await);
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    stage.configure(&json!({"faults": [{"action": "DescribeDisks", "times": 1, "kind": {"delay-after": "5s"}}]}));
    let list = async |token: &str, max_entries| {
        let request = ListVolumesRequest {
            max_entries,
            starting_token: token.to_owned(),
        };
        stage
            .service
            .list_volumes(Request::new(request))
            .await
            .unwrap()
            .into_inner()
    };
    let (first, ()) = tokio::join!(list("", 2), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        stage.delete(&volumes[5]).await.unwrap();
    });
    tokio::time::sleep(Duration::from_secs(200)).await;
    let rest = list(&first.next_token, 0).await;
    let ids: Vec<_> = rest
        .entries
        .iter()
        .map(|entry| entry.volume.as_ref().unwrap().volume_id.clone())
        .collect();
    assert!(
        !ids.contains(&volumes[5]),
        "listed minutes after it was reported deleted"
    );
}
