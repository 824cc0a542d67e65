//! A cloud that answers nonsense, and throws back what it was sent.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use wiremock::matchers::any;
use wiremock::{Match, Mock, MockServer, Request, Respond, ResponseTemplate};

use crate::common::csi::socket;
use crate::common::tee::Tee;
use crate::hidden::{Hidden, ODD, PLAIN, signatures};
use crate::talk::{all_of, loud, talk};

/// Long enough for an answer, too short for the repeats that never help.
const DEADLINE: Duration = Duration::from_millis(250);

/// How the cloud answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// 200, a page instead of JSON.
    Page,
    /// 200, a text where an object should be: what decoders like to quote.
    Text,
    /// 200, the right object with a text where a list should be.
    Field,
    /// 500 in the cloud's own form.
    Broken,
    /// 502 from a proxy.
    Proxy,
    /// The signature is wrong, and this is what should have been signed.
    NotMatched,
    /// The same in the words of signature V3.
    NotMatchedV3,
    /// The key is not known.
    Unknown,
    /// What was sent stands in code and request id.
    Code,
    /// Elsewhere, with all that was sent.
    Moved,
    /// The connection ends.
    Reset,
}

const MOODS: [Mood; 11] = [
    Mood::Page,
    Mood::Text,
    Mood::Field,
    Mood::Broken,
    Mood::Proxy,
    Mood::NotMatched,
    Mood::NotMatchedV3,
    Mood::Unknown,
    Mood::Code,
    Mood::Moved,
    Mood::Reset,
];

/// The mood of the moment.
#[derive(Debug, Clone)]
struct Hostile(Arc<Mutex<Mood>>);

impl Match for Hostile {
    fn matches(&self, _: &Request) -> bool {
        *self.0.lock().unwrap() == Mood::Reset
    }
}

impl Respond for Hostile {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        // All of it: the URL, decoded and not, and every header.
        let decoded: Vec<_> = request.url.query_pairs().collect();
        let echo = format!("{} {decoded:?} {:?}", request.url, request.headers);
        let refused = |status, code: &str, message: String| {
            let body = json!({"RequestId": "R-1", "Code": code, "Message": message});
            ResponseTemplate::new(status).set_body_json(body)
        };
        match *self.0.lock().unwrap() {
            Mood::Page => ResponseTemplate::new(200).set_body_string(format!("<p>{echo}</p>")),
            Mood::Text => ResponseTemplate::new(200).set_body_json(json!(echo)),
            Mood::Field => ResponseTemplate::new(200).set_body_json(json!({
                "RequestId": echo, "DiskId": [&echo], "Disks": &echo, "TotalCount": &echo,
                "Snapshots": &echo, "Instances": &echo, "InstanceTypes": &echo,
            })),
            Mood::Broken => refused(500, "InternalError", format!("failed at {echo}")),
            Mood::Proxy => ResponseTemplate::new(502).set_body_string(echo),
            Mood::NotMatched => refused(
                400,
                "SignatureDoesNotMatch",
                format!(
                    "Specified signature is not matched with our calculation. server string to \
                     sign is:{echo}"
                ),
            ),
            Mood::NotMatchedV3 => refused(
                400,
                "SignatureDoesNotMatch",
                format!(
                    "Specified signature does not match our calculation. server StringToSign is \
                     [ACS3-HMAC-SHA256\n0], server CanonicalRequest is [{echo}]"
                ),
            ),
            Mood::Unknown => refused(
                404,
                "InvalidAccessKeyId.NotFound",
                format!("Specified access key is not found: {echo}"),
            ),
            Mood::Code => {
                let body = json!({"RequestId": echo, "Code": echo, "Message": null});
                ResponseTemplate::new(403).set_body_json(body)
            }
            Mood::Moved => ResponseTemplate::new(307)
                .insert_header("location", request.url.as_str())
                .insert_header("x-ratelimit-user", "TimeLeft:1"),
            Mood::Reset => ResponseTemplate::new(500),
        }
    }
}

async fn against_hostility(hidden: &Hidden, flags: &[&str]) {
    let server = MockServer::start().await;
    let mood = Hostile(Arc::new(Mutex::new(Mood::Page)));
    let reset = |_: &Request| std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let first = Mock::given(mood.clone()).respond_with_err(reset);
    first.with_priority(1).mount(&server).await;
    Mock::given(any())
        .respond_with(mood.clone())
        .mount(&server)
        .await;
    let (tee, dir) = (
        Tee::to(*server.address()).await,
        tempfile::tempdir().unwrap(),
    );
    let socket = socket(&dir);
    let start = loud(&tee.url, &socket, hidden, flags);
    let start = start.env("SECURITY_TOKEN", hidden.token);
    let (driver, channel) = start.ready(&socket).await;
    for now in MOODS {
        *mood.0.lock().unwrap() = now;
        let before = signatures(&tee.sent()).len();
        let heard = talk(&channel, hidden, DEADLINE).await;
        let sent = tee.sent();
        assert!(
            signatures(&sent).len() > before,
            "{now:?}: nothing was sent"
        );
        assert!(!heard.0.is_empty(), "{now:?}: every call succeeded");
        hidden.absent_from(&heard.0, &sent);
    }
    let told = all_of(driver).await;
    hidden.absent_from(&told, &tee.sent());
}

#[tokio::test]
async fn a_hostile_cloud_gets_nothing_told_with_v1() {
    against_hostility(&ODD, &["--log-format=text"]).await;
}

#[tokio::test]
async fn a_hostile_cloud_gets_nothing_told_with_v3() {
    against_hostility(&PLAIN, &["--log-format=json", "--signature=v3"]).await;
}
