//! The service with its real HTTP client on a `wiremock::MockServer` that serves the fake cloud; faults are further
//! mocks. Uses real time.

use std::sync::atomic::{AtomicBool, Ordering};

use wiremock::matchers::query_param;
use wiremock::{Mock, Request, ResponseTemplate};

use crate::service::kit::*;

#[tokio::test]
async fn a_volume_life_cycle_works_over_http() {
    let flags = ["--create-delay=100ms", "--attach-delay=200ms"];
    let (stage, _server) = Stage::over_http(&flags).await;
    let volume = stage.volume("pvc-1").await;
    let context = stage.publish(&volume, NODE).await.unwrap();
    assert!(!context.is_empty(), "{context:?}");
    stage.unpublish(&volume, NODE).await.unwrap();
    stage.delete(&volume).await.unwrap();
    assert_eq!(stage.disks(), [""; 0]);
}

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
async fn create_without_describe_permission_creates_at_most_one_disk() {
    let (stage, server) = Stage::over_http(&[]).await;
    let nothing = json!({
        "RequestId": "540CFF28-407A-40B5-B6A5-74B000000000",
        "Disks": {"Disk": []},
        "TotalCount": 0,
    });
    let denied = Arc::new(AtomicBool::new(true));
    let is_denied = Arc::clone(&denied);
    Mock::given(query_param("Action", "DescribeDisks"))
        .and(move |_: &Request| is_denied.load(Ordering::Relaxed))
        .respond_with(ResponseTemplate::new(200).set_body_json(nothing))
        .mount(&server)
        .await;
    for _ in 0..2 {
        let code = code(stage.within(Duration::from_secs(2)).create(new_volume("pvc-1")).await);
        let expected = [Code::Unavailable, Code::DeadlineExceeded, Code::Aborted];
        assert!(expected.contains(&code), "{code:?}");
    }
    assert!(stage.disks().len() <= 1, "{:?}", stage.disks());
    denied.store(false, Ordering::Relaxed);
    let volume = stage.volume("pvc-1").await;
    assert_eq!(stage.disks(), [volume]);
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
