//! The metadata client against simulated responses.

use std::time::Duration;

use diskplugin::base::Deadline;
use ecs::metadata::{Item, Metadata};
use serde_json::{Value, json};
use wiremock::matchers::{header, method};
use wiremock::{Mock, MockServer, ResponseTemplate};

/// A metadata service that counts requests.
async fn service() -> (MockServer, Metadata) {
    let server = MockServer::start().await;
    let metadata = Metadata::new(&server.uri(), false).unwrap();
    (server, metadata)
}

fn at_once() -> Deadline {
    Deadline::after(Duration::ZERO)
}

/// Issues a token for any request.
async fn issue_tokens(server: &MockServer) {
    let token = ResponseTemplate::new(200).set_body_string("token");
    let requests = Mock::given(method("PUT"));
    requests.respond_with(token).mount(server).await;
}

fn identity() -> Value {
    json!({"instance-id": "i-1", "region-id": "r-1", "zone-id": "z-1", "instance-type": "t-1"})
}

async fn count(server: &MockServer, method: &str) -> usize {
    let requests = server.received_requests().await.unwrap();
    requests
        .iter()
        .filter(|request| request.method.as_str() == method)
        .count()
}

#[tokio::test]
async fn all_items_cost_one_token_and_one_request() {
    let (server, metadata) = service().await;
    issue_tokens(&server).await;
    let document = ResponseTemplate::new(200).set_body_json(identity());
    let with_token = header("X-aliyun-ecs-metadata-token", "token");
    let requests = Mock::given(method("GET")).and(with_token);
    requests.respond_with(document).mount(&server).await;
    for (item, value) in [
        (Item::INSTANCE_ID, "i-1"),
        (Item::REGION_ID, "r-1"),
        (Item::ZONE_ID, "z-1"),
        (Item::INSTANCE_TYPE, "t-1"),
        (Item::INSTANCE_ID, "i-1"),
    ] {
        assert_eq!(metadata.get(item, at_once()).await.unwrap(), value);
    }
    assert_eq!((count(&server, "PUT").await, count(&server, "GET").await), (1, 1));
}

#[tokio::test]
async fn an_expired_token_is_replaced_and_retry_after_is_respected() {
    let (server, metadata) = service().await;
    issue_tokens(&server).await;
    for refusal in [
        ResponseTemplate::new(401),
        ResponseTemplate::new(429).insert_header("Retry-After", "0"),
    ] {
        let once = Mock::given(method("GET")).respond_with(refusal);
        once.up_to_n_times(1).mount(&server).await;
    }
    let document = ResponseTemplate::new(200).set_body_json(identity());
    Mock::given(method("GET")).respond_with(document).mount(&server).await;
    assert_eq!(metadata.get(Item::ZONE_ID, at_once()).await.unwrap(), "z-1");
    assert_eq!((count(&server, "PUT").await, count(&server, "GET").await), (2, 3));
}

#[tokio::test]
async fn requests_are_retried_until_the_deadline() {
    let (server, metadata) = service().await;
    issue_tokens(&server).await;
    // More failures than a single attempt tolerates.
    let busy = Mock::given(method("GET")).respond_with(ResponseTemplate::new(503).insert_header("Retry-After", "0"));
    busy.up_to_n_times(4).mount(&server).await;
    let document = ResponseTemplate::new(200).set_body_json(identity());
    Mock::given(method("GET")).respond_with(document).mount(&server).await;
    let deadline = Deadline::after(Duration::from_secs(60));
    let region = metadata.get(Item::REGION_ID, deadline).await;
    assert_eq!(region.unwrap(), "r-1");
    let refused = Deadline::after(Duration::ZERO);
    let (gone, metadata) = service().await;
    drop(gone);
    assert!(metadata.get(Item::REGION_ID, refused).await.is_err());
}
