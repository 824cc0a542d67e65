//! A cloud with invalid responses that repeat the request.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use wiremock::matchers::any;
use wiremock::{Match, Mock, MockServer, Request, Respond, ResponseTemplate};

use crate::common::recording_proxy::RecordingProxy;
use crate::running::Running;
use crate::secrets::calls::{make_calls, output_of, verbose};
use crate::secrets::hidden::{Hidden, PLAIN, signatures};

/// Long enough for a response, too short for retries.
const DEADLINE: Duration = Duration::from_secs(1);

/// A response of the cloud that repeats parts of the request: its URL, encoded and decoded, and its headers.
type Reply = fn(url: &str, echo: &str) -> ResponseTemplate;

fn refusal(status: u16, code: &str, message: &str) -> ResponseTemplate {
    let body = json!({"RequestId": "R-1", "Code": code, "Message": message});
    ResponseTemplate::new(status).set_body_json(body)
}

const REPLIES: [(&str, Reply); 11] = [
    ("a page instead of JSON", |_, echo| {
        ResponseTemplate::new(200).set_body_string(format!("<p>{echo}</p>"))
    }),
    // Decoders tend to quote it.
    ("a string instead of an object", |_, echo| {
        ResponseTemplate::new(200).set_body_json(json!(echo))
    }),
    ("strings instead of lists", |_, echo| {
        ResponseTemplate::new(200).set_body_json(json!({
            "RequestId": echo, "DiskId": [echo], "Disks": echo, "TotalCount": echo,
            "Snapshots": echo, "Instances": echo, "InstanceTypes": echo,
        }))
    }),
    ("an internal error", |_, echo| {
        refusal(500, "InternalError", &format!("failed at {echo}"))
    }),
    ("an error of a proxy", |_, echo| {
        ResponseTemplate::new(502).set_body_string(echo)
    }),
    ("the string to sign of V1", |_, echo| {
        let text = "Specified signature is not matched with our calculation. server string to sign is:";
        refusal(400, "SignatureDoesNotMatch", &format!("{text}{echo}"))
    }),
    ("the string to sign of V3", |_, echo| {
        let text = "Specified signature does not match our calculation. server StringToSign is \
                    [ACS3-HMAC-SHA256\n0], server CanonicalRequest is";
        refusal(400, "SignatureDoesNotMatch", &format!("{text} [{echo}]"))
    }),
    ("an unknown key", |_, echo| {
        refusal(
            404,
            "InvalidAccessKeyId.NotFound",
            &format!("Specified access key is not found: {echo}"),
        )
    }),
    ("the request in code and request ID", |_, echo| {
        ResponseTemplate::new(403).set_body_json(json!({"RequestId": echo, "Code": echo, "Message": null}))
    }),
    ("a redirect to the same URL", |url, _| {
        let redirect = ResponseTemplate::new(307).insert_header("location", url);
        redirect.insert_header("x-ratelimit-user", "TimeLeft:1")
    }),
    (RESET, |_, _| ResponseTemplate::new(500)),
];

const RESET: &str = "a connection reset";

/// The current response.
#[derive(Debug, Clone)]
struct Hostile(Arc<Mutex<(&'static str, Reply)>>);

impl Match for Hostile {
    fn matches(&self, _: &Request) -> bool {
        self.0.lock().unwrap().0 == RESET
    }
}

impl Respond for Hostile {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let decoded: Vec<_> = request.url.query_pairs().collect();
        let echo = format!("{} {decoded:?} {:?}", request.url, request.headers);
        let (_, reply) = *self.0.lock().unwrap();
        reply(request.url.as_str(), &echo)
    }
}

async fn against_hostility(hidden: &Hidden, flags: &[&str]) {
    let server = MockServer::start().await;
    let reply = Hostile(Arc::new(Mutex::new(REPLIES[0])));
    let reset = |_: &Request| std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let first = Mock::given(reply.clone()).respond_with_err(reset);
    first.with_priority(1).mount(&server).await;
    Mock::given(any()).respond_with(reply.clone()).mount(&server).await;
    let proxy = RecordingProxy::to(*server.address()).await;
    let driver = Running::of(|socket| verbose(&proxy.url, socket, hidden, flags).env("SECURITY_TOKEN", hidden.token));
    let driver = driver.await;
    for now in REPLIES {
        *reply.0.lock().unwrap() = now;
        let before = signatures(&proxy.sent()).len();
        let errors = make_calls(&driver.channel, hidden, DEADLINE).await;
        let sent = proxy.sent();
        assert!(signatures(&sent).len() > before, "{}: nothing was sent", now.0);
        assert!(!errors.0.is_empty(), "{}: every call succeeded", now.0);
        hidden.absent_from(&errors.0, &sent);
    }
    let output = output_of(driver).await;
    hidden.absent_from(&output, &proxy.sent());
}

#[tokio::test]
async fn invalid_responses_reveal_no_secret_with_v1() {
    against_hostility(&PLAIN, &["--log-format=text"]).await;
}

#[tokio::test]
async fn invalid_responses_reveal_no_secret_with_v3() {
    against_hostility(&PLAIN, &["--log-format=json", "--signature=v3"]).await;
}
