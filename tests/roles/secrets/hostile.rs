//! A cloud with invalid responses that repeat the request.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use wiremock::matchers::any;
use wiremock::{Match, Mock, MockServer, Request, Respond, ResponseTemplate};

use crate::common::csi::socket;
use crate::common::recording_proxy::RecordingProxy;
use crate::secrets::calls::{make_calls, output_of, verbose};
use crate::secrets::hidden::{Hidden, ODD, PLAIN, signatures};

/// Long enough for a response, too short for retries.
const DEADLINE: Duration = Duration::from_millis(250);

/// The response of the cloud.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reply {
    /// 200, a page instead of JSON.
    Page,
    /// 200, a string instead of an object: decoders tend to quote it.
    Text,
    /// 200, an object with strings instead of lists.
    Field,
    /// 500 in the error format of the cloud.
    Broken,
    /// 502 from a proxy.
    Proxy,
    /// Signature mismatch, with the string to sign.
    NotMatched,
    /// Signature mismatch of V3.
    NotMatchedV3,
    /// Unknown key.
    Unknown,
    /// The request in code and request ID.
    Code,
    /// A redirect to the same URL.
    Moved,
    /// A connection reset.
    Reset,
}

const REPLIES: [Reply; 11] = [
    Reply::Page,
    Reply::Text,
    Reply::Field,
    Reply::Broken,
    Reply::Proxy,
    Reply::NotMatched,
    Reply::NotMatchedV3,
    Reply::Unknown,
    Reply::Code,
    Reply::Moved,
    Reply::Reset,
];

/// The current response.
#[derive(Debug, Clone)]
struct Hostile(Arc<Mutex<Reply>>);

impl Match for Hostile {
    fn matches(&self, _: &Request) -> bool {
        *self.0.lock().unwrap() == Reply::Reset
    }
}

impl Respond for Hostile {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        // The URL, encoded and decoded, and every header.
        let decoded: Vec<_> = request.url.query_pairs().collect();
        let echo = format!("{} {decoded:?} {:?}", request.url, request.headers);
        let refused = |status, code: &str, message: String| {
            let body = json!({"RequestId": "R-1", "Code": code, "Message": message});
            ResponseTemplate::new(status).set_body_json(body)
        };
        match *self.0.lock().unwrap() {
            Reply::Page => ResponseTemplate::new(200).set_body_string(format!("<p>{echo}</p>")),
            Reply::Text => ResponseTemplate::new(200).set_body_json(json!(echo)),
            Reply::Field => ResponseTemplate::new(200).set_body_json(json!({
                "RequestId": echo, "DiskId": [&echo], "Disks": &echo, "TotalCount": &echo,
                "Snapshots": &echo, "Instances": &echo, "InstanceTypes": &echo,
            })),
            Reply::Broken => refused(500, "InternalError", format!("failed at {echo}")),
            Reply::Proxy => ResponseTemplate::new(502).set_body_string(echo),
            Reply::NotMatched => refused(
                400,
                "SignatureDoesNotMatch",
                format!(
                    "Specified signature is not matched with our calculation. server string to \
                     sign is:{echo}"
                ),
            ),
            Reply::NotMatchedV3 => refused(
                400,
                "SignatureDoesNotMatch",
                format!(
                    "Specified signature does not match our calculation. server StringToSign is \
                     [ACS3-HMAC-SHA256\n0], server CanonicalRequest is [{echo}]"
                ),
            ),
            Reply::Unknown => refused(
                404,
                "InvalidAccessKeyId.NotFound",
                format!("Specified access key is not found: {echo}"),
            ),
            Reply::Code => {
                let body = json!({"RequestId": echo, "Code": echo, "Message": null});
                ResponseTemplate::new(403).set_body_json(body)
            }
            Reply::Moved => ResponseTemplate::new(307)
                .insert_header("location", request.url.as_str())
                .insert_header("x-ratelimit-user", "TimeLeft:1"),
            Reply::Reset => ResponseTemplate::new(500),
        }
    }
}

async fn against_hostility(hidden: &Hidden, flags: &[&str]) {
    let server = MockServer::start().await;
    let reply = Hostile(Arc::new(Mutex::new(Reply::Page)));
    let reset = |_: &Request| std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let first = Mock::given(reply.clone()).respond_with_err(reset);
    first.with_priority(1).mount(&server).await;
    Mock::given(any()).respond_with(reply.clone()).mount(&server).await;
    let (tee, dir) = (
        RecordingProxy::to(*server.address()).await,
        tempfile::tempdir().unwrap(),
    );
    let socket = socket(&dir);
    let start = verbose(&tee.url, &socket, hidden, flags);
    let start = start.env("SECURITY_TOKEN", hidden.token);
    let (driver, channel) = start.ready(&socket).await;
    for now in REPLIES {
        *reply.0.lock().unwrap() = now;
        let before = signatures(&tee.sent()).len();
        let errors = make_calls(&channel, hidden, DEADLINE).await;
        let sent = tee.sent();
        assert!(signatures(&sent).len() > before, "{now:?}: nothing was sent");
        assert!(!errors.0.is_empty(), "{now:?}: every call succeeded");
        hidden.absent_from(&errors.0, &sent);
    }
    let output = output_of(driver).await;
    hidden.absent_from(&output, &tee.sent());
}

#[tokio::test]
async fn invalid_responses_reveal_no_secret_with_v1() {
    against_hostility(&ODD, &["--log-format=text"]).await;
}

#[tokio::test]
async fn invalid_responses_reveal_no_secret_with_v3() {
    against_hostility(&PLAIN, &["--log-format=json", "--signature=v3"]).await;
}
