//! The service with its real HTTP client on a `wiremock::MockServer` that serves the fake cloud; faults are further
//! mocks. Uses real time.

use wiremock::matchers::query_param;
use wiremock::{Mock, ResponseTemplate};

use crate::service::kit::*;

#[tokio::test]
async fn a_temporarily_failing_gateway_is_retried() {
    let (stage, server) = Stage::over_http(&[]).await;
    for action in ["CreateDisk", "DeleteDisk"] {
        let page = "<html><title>502 Bad Gateway</title></html>";
        let gateway = Mock::given(query_param("Action", action))
            .respond_with(ResponseTemplate::new(502).set_body_raw(page, "text/html"))
            .up_to_n_times(2)
            .expect(2);
        gateway.mount(&server).await;
    }
    let volume = stage.volume("pvc-1").await;
    stage.delete(&volume).await.unwrap();
    assert_eq!(stage.calls("CreateDisk"), 1, "the others never came");
    assert_eq!(stage.disks(), [""; 0]);
}

#[tokio::test]
async fn a_response_with_an_error_code_is_a_failure_whatever_its_status() {
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
        let deleted = stage.within(Duration::from_secs(3)).delete(&volume).await;
        assert!(deleted.is_err() || stage.disks().is_empty(), "{body}");
    }
}
