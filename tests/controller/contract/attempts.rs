//! Retries of the client, as observed by the server.

use std::net::{Ipv4Addr, TcpListener};

use tokio::time::Instant;
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use diskplugin::base::SystemClock;

use crate::contract::world::*;

/// Faults after which the call has taken effect, without a readable response.
pub(crate) const LOST: [&str; 5] = ["reset-after", "truncated", "empty", "html", "internal-error-after"];

/// A server that returns these responses and then success.
async fn script(responses: Vec<ResponseTemplate>) -> MockServer {
    let server = MockServer::start().await;
    for (response, priority) in responses.into_iter().zip(1..) {
        let mock = Mock::given(any()).respond_with(response).up_to_n_times(1);
        mock.with_priority(priority).mount(&server).await;
    }
    let success = ResponseTemplate::new(200).set_body_json(json!({"DiskId": "d-1"}));
    let last = Mock::given(any()).respond_with(success).with_priority(200);
    last.mount(&server).await;
    server
}

fn caller(endpoint: &str, scheme: Scheme) -> Client {
    client_at(endpoint, scheme, Arc::new(SystemClock))
}

fn refusal(status: u16, code: &str) -> ResponseTemplate {
    ResponseTemplate::new(status).set_body_json(json!({"Code": code, "RequestId": "R"}))
}

/// A query parameter or header of a request.
fn part(request: &Request, name: &str) -> String {
    let mut query = request.url.query_pairs();
    let found = query.find(|(key, _)| key == name);
    let header = || request.headers[name].to_str().unwrap().to_owned();
    found.map_or_else(header, |(_, value)| value.into_owned())
}

/// The number of distinct values of a parameter or header over all requests.
fn distinct(requests: &[Request], name: &str) -> usize {
    let values = requests.iter().map(|request| part(request, name));
    values.collect::<BTreeSet<_>>().len()
}

#[tokio::test]
async fn every_attempt_has_a_new_signature_and_the_same_client_token() {
    for (scheme, nonce, signature) in [
        (Scheme::V1, "SignatureNonce", "Signature"),
        (Scheme::V3, "x-acs-signature-nonce", "authorization"),
    ] {
        let busy = || refusal(503, "ServiceUnavailable");
        let server = script(vec![busy(), busy()]).await;
        let ecs = caller(&server.uri(), scheme);
        create(&ecs, &essd("again")).await.unwrap();
        let requests = server.received_requests().await.unwrap();
        assert_eq!(requests.len(), 3);
        assert_eq!(distinct(&requests, nonce), 3);
        assert_eq!(distinct(&requests, signature), 3);
        assert_eq!(distinct(&requests, "ClientToken"), 1);
    }
}

#[tokio::test]
async fn a_used_nonce_is_replaced() {
    let server = script(vec![refusal(400, "SignatureNonceUsed")]).await;
    let ecs = caller(&server.uri(), Scheme::V1);
    // Also for calls that are not retried after a lost response: a rejected call had no effect.
    attach(&ecs, &"d-1".parse().unwrap(), "i-one").await.unwrap();
    let requests = server.received_requests().await.unwrap();
    assert_eq!(distinct(&requests, "SignatureNonce"), 2);
}

/// Asserts that all calls of the action had the same token and different nonces.
fn one_token(world: &World, action: &str) {
    let calls = world.cloud.calls();
    let calls: Vec<_> = calls.iter().filter(|call| call.action == action).collect();
    let tokens: BTreeSet<_> = calls.iter().map(|call| &call.params["ClientToken"]).collect();
    let nonces: BTreeSet<_> = calls.iter().map(|call| call.nonce.as_ref()).collect();
    assert_eq!((tokens.len(), nonces.len()), (1, 2), "{calls:?}");
    world.cloud.clear_calls();
}

#[tokio::test]
async fn a_creation_or_resize_with_a_lost_response_is_retried_and_applied_once() {
    let world = World::open(Connection::HTTP_V1).await;
    let source = create_essd(&world.ecs, "source").await;
    for ((size, count), fault) in (30..).zip(1..).zip(LOST) {
        let lose = |action: &str| {
            world.cloud.clear_calls();
            world.configure(json!({"faults": [{"action": action, "kind": fault}]}));
        };
        lose("CreateDisk");
        let disk = create_essd(&world.ecs, fault).await;
        assert!(described(&world.ecs, &disk).await.is_some());
        assert_eq!(world.disks(), 1 + count, "{fault}");
        one_token(&world, "CreateDisk");
        lose("CreateSnapshot");
        snapshot(&world.ecs, &snapshot_of(&source, fault)).await.unwrap();
        assert_eq!(world.snapshots(), count, "{fault}");
        one_token(&world, "CreateSnapshot");
        lose("ResizeDisk");
        let request = resize_to(&source, size, ResizeMode::Offline);
        resize(&world.ecs, &request).await.unwrap();
        assert_eq!(described(&world.ecs, &source).await.unwrap().size, Gib(size), "{fault}");
        one_token(&world, "ResizeDisk");
    }
}

#[tokio::test]
async fn a_list_with_a_lost_response_is_retried() {
    let world = World::open(Connection::HTTP_V3).await;
    let disk = create_essd(&world.ecs, "listed").await;
    for fault in LOST.iter().chain(&["reset-before", "service-unavailable"]) {
        world.configure(json!({"faults": [{"action": "DescribeDisks", "kind": fault}]}));
        assert!(described(&world.ecs, &disk).await.is_some(), "{fault}");
    }
}

#[tokio::test]
async fn a_throttled_call_waits_for_the_time_in_the_response() {
    // Longer than the client's own backoff.
    let throttled =
        refusal(400, "Throttling").insert_header("x-ratelimit-user-api", "Limit:1,Remain:0,TimeLeft:2500,Reset:0");
    let server = script(vec![throttled]).await;
    let ecs = caller(&server.uri(), Scheme::V1);
    let start = Instant::now();
    create(&ecs, &essd("throttled")).await.unwrap();
    assert!(start.elapsed() >= Duration::from_millis(2500));
    assert_eq!(server.received_requests().await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_call_to_a_server_without_response_ends_at_the_deadline() {
    // The kernel accepts the connection; no process reads from it.
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let ecs = caller(&endpoint, Scheme::V1);
    let disk = "d-1".parse().unwrap();
    let limit = Duration::from_millis(700);
    let start = Instant::now();
    let (all, create) = (DescribeDisks::default(), essd("silence"));
    let attach = attach_to(&disk, &node("i-one"));
    let deadline = Deadline::after(limit);
    let (created, attached, listed) = tokio::join!(
        ecs.create_disk(deadline, &create),
        ecs.attach_disk(deadline, &attach),
        ecs.describe_disks(deadline, &all),
    );
    expect_error(created, Kind::Deadline);
    expect_error(attached, Kind::Deadline);
    expect_error(listed, Kind::Deadline);
    let elapsed = start.elapsed();
    // The timeout of a connection attempt is much longer.
    let late = Duration::from_secs(8);
    assert!(elapsed >= limit && elapsed < late, "{elapsed:?}");
}

#[tokio::test]
async fn every_call_retries_an_unreachable_cloud_until_its_deadline() {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let endpoint = format!("http://{}", port.local_addr().unwrap());
    drop(port);
    let ecs = caller(&endpoint, Scheme::V1);
    let limit = Duration::from_millis(1500);
    let start = Instant::now();
    let attach = attach_to(&"d-1".parse().unwrap(), &node("i-one"));
    let outcome = ecs.attach_disk(Deadline::after(limit), &attach).await;
    let error = outcome.unwrap_err();
    // The deadline may end an attempt.
    let is_expected = matches!(error.kind(), Kind::Unreachable | Kind::Deadline);
    assert!(is_expected && error.to_string().contains(" attempts"), "{error}");
    assert!(start.elapsed() < limit * 4);
}
