//! The instance metadata service, held against made-up answers.

use std::time::Duration;

use diskplugin::base::Deadline;
use diskplugin::cloud::metadata::{Item, Metadata};
use serde_json::{Value, json};
use wiremock::matchers::{header, method};
use wiremock::{Mock, MockServer, ResponseTemplate};

/// A metadata service of its own, to count what it is asked.
async fn service() -> (MockServer, Metadata) {
    let server = MockServer::start().await;
    let metadata = Metadata::new(&server.uri(), false).unwrap();
    (server, metadata)
}

fn at_once() -> Deadline {
    Deadline::after(Duration::ZERO)
}

/// A token for whoever asks.
async fn gives_tokens(server: &MockServer) {
    let token = ResponseTemplate::new(200).set_body_string("token");
    let questions = Mock::given(method("PUT"));
    questions.respond_with(token).mount(server).await;
}

fn identity() -> Value {
    json!({"instance-id": "i-1", "region-id": "r-1", "zone-id": "z-1", "instance-type": "t-1"})
}

async fn asked(server: &MockServer, way: &str) -> usize {
    let requests = server.received_requests().await.unwrap();
    requests
        .iter()
        .filter(|one| one.method.as_str() == way)
        .count()
}

#[tokio::test]
async fn all_that_an_instance_is_costs_one_token_and_one_question() {
    let (server, metadata) = service().await;
    gives_tokens(&server).await;
    let document = ResponseTemplate::new(200).set_body_json(identity());
    let with_token = header("X-aliyun-ecs-metadata-token", "token");
    let questions = Mock::given(method("GET")).and(with_token);
    questions.respond_with(document).mount(&server).await;
    for (item, value) in [
        (Item::InstanceId, "i-1"),
        (Item::RegionId, "r-1"),
        (Item::ZoneId, "z-1"),
        (Item::InstanceType, "t-1"),
        (Item::InstanceId, "i-1"),
    ] {
        assert_eq!(metadata.get(item, at_once()).await.unwrap(), value);
    }
    assert_eq!(
        (asked(&server, "PUT").await, asked(&server, "GET").await),
        (1, 1)
    );
}

#[tokio::test]
async fn a_forgotten_token_is_replaced_and_a_limited_rate_is_waited_out() {
    let (server, metadata) = service().await;
    gives_tokens(&server).await;
    for refusal in [
        ResponseTemplate::new(401),
        ResponseTemplate::new(429).insert_header("Retry-After", "0"),
    ] {
        let once = Mock::given(method("GET")).respond_with(refusal);
        once.up_to_n_times(1).mount(&server).await;
    }
    let document = ResponseTemplate::new(200).set_body_json(identity());
    Mock::given(method("GET"))
        .respond_with(document)
        .mount(&server)
        .await;
    assert_eq!(metadata.get(Item::ZoneId, at_once()).await.unwrap(), "z-1");
    assert_eq!(
        (asked(&server, "PUT").await, asked(&server, "GET").await),
        (2, 3)
    );
}

#[tokio::test]
async fn a_start_insists_until_its_deadline() {
    let (server, metadata) = service().await;
    gives_tokens(&server).await;
    // More than one question bears.
    let busy = Mock::given(method("GET"))
        .respond_with(ResponseTemplate::new(503).insert_header("Retry-After", "0"));
    busy.up_to_n_times(4).mount(&server).await;
    let document = ResponseTemplate::new(200).set_body_json(identity());
    Mock::given(method("GET"))
        .respond_with(document)
        .mount(&server)
        .await;
    let deadline = Deadline::after(Duration::from_secs(60));
    let told = metadata.get(Item::RegionId, deadline).await;
    assert_eq!(told.unwrap(), "r-1");
    let refused = Deadline::after(Duration::ZERO);
    let (gone, metadata) = service().await;
    drop(gone);
    assert!(metadata.get(Item::RegionId, refused).await.is_err());
}
