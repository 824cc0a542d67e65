//! The fake cloud over HTTP, asked by hand: requests are built and signed here, byte by byte.
#![cfg(feature = "mock-cloud")]
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use diskplugin::base::{Clock, SystemClock};
use diskplugin::host::Processes;
use diskplugin::sim::{Cloud, Options};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');
const KEY: &str = "LTAI5tFAKECLOUDKEY000001";
const SECRET: &str = "fake-cloud-secret";

#[path = "sim_http/sts.rs"]
mod sts;

type Params = BTreeMap<String, String>;

/// A key, and the token that goes with it.
struct Signer {
    key: String,
    secret: String,
    token: Option<String>,
    now: Timestamp,
    version: &'static str,
}

struct Lab {
    cloud: Cloud,
    client: reqwest::Client,
}

fn signer() -> Signer {
    Signer {
        key: KEY.to_owned(),
        secret: SECRET.to_owned(),
        token: None,
        now: SystemClock.now(),
        version: "2014-05-26",
    }
}

fn params(pairs: &[(&str, &str)]) -> Params {
    let own = |(k, v): &(&str, &str)| ((*k).to_owned(), (*v).to_owned());
    pairs.iter().map(own).collect()
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, PLAIN).to_string()
}

fn query(params: &Params) -> String {
    let pairs = params
        .iter()
        .map(|(k, v)| format!("{}={}", encode(k), encode(v)));
    pairs.collect::<Vec<_>>().join("&")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn nonce() -> String {
    uuid::Uuid::new_v4().to_string()
}

impl Signer {
    fn time(&self) -> String {
        self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }

    fn v1(&self, method: &str, action: &str, own: Params) -> Params {
        let mut all = own;
        all.extend(params(&[
            ("Action", action),
            ("Version", self.version),
            ("Format", "JSON"),
            ("AccessKeyId", &self.key),
            ("SignatureMethod", "HMAC-SHA1"),
            ("SignatureVersion", "1.0"),
            ("SignatureType", ""),
            ("SignatureNonce", &nonce()),
            ("Timestamp", &self.time()),
        ]));
        if let Some(token) = &self.token {
            all.insert("SecurityToken".to_owned(), token.clone());
        }
        self.resign(method, all)
    }

    fn resign(&self, method: &str, mut all: Params) -> Params {
        all.remove("Signature");
        let text = format!("{method}&%2F&{}", encode(&query(&all)));
        let mut mac = Hmac::<Sha1>::new_from_slice(format!("{}&", self.secret).as_bytes()).unwrap();
        mac.update(text.as_bytes());
        let mac = mac.finalize().into_bytes();
        let signature = base64::engine::general_purpose::STANDARD.encode(mac);
        all.insert("Signature".to_owned(), signature);
        all
    }

    fn v3(&self, host: &str, action: &str, own: &Params, body: &str) -> BTreeMap<String, String> {
        let mut headers = params(&[
            ("host", host),
            ("x-acs-action", action),
            ("x-acs-version", self.version),
            ("x-acs-date", &self.time()),
            ("x-acs-signature-nonce", &nonce()),
            ("x-acs-content-sha256", &hex(&Sha256::digest(body))),
        ]);
        if let Some(token) = &self.token {
            headers.insert("x-acs-security-token".to_owned(), token.clone());
        }
        let lines: String = headers.iter().map(|(k, v)| format!("{k}:{v}\n")).collect();
        let names = headers.keys().cloned().collect::<Vec<_>>().join(";");
        let request = format!(
            "POST\n/\n{}\n{lines}\n{names}\n{}",
            query(own),
            headers["x-acs-content-sha256"]
        );
        let text = format!("ACS3-HMAC-SHA256\n{}", hex(&Sha256::digest(request)));
        let mut mac = Hmac::<Sha256>::new_from_slice(self.secret.as_bytes()).unwrap();
        mac.update(text.as_bytes());
        let signature = hex(&mac.finalize().into_bytes());
        let header = format!(
            "ACS3-HMAC-SHA256 Credential={},SignedHeaders={names},Signature={signature}",
            self.key
        );
        headers.insert("authorization".to_owned(), header);
        headers
    }
}

impl Lab {
    async fn new(flags: &[&str]) -> Self {
        let options = Options::from_flags(flags.iter().copied()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let clock = Arc::new(SystemClock);
        let exec = Arc::new(Processes);
        let cloud = Cloud::start(&options, clock, exec, listener).await.unwrap();
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(10))
            .build()
            .unwrap();
        Self { cloud, client }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.cloud.endpoint().unwrap())
    }

    async fn send_v1(&self, all: &Params) -> (u16, Value) {
        let url = self.url(&format!("/?{}", query(all)));
        self.read(self.client.post(url)).await
    }

    async fn v1(&self, action: &str, pairs: &[(&str, &str)]) -> (u16, Value) {
        self.send_v1(&signer().v1("POST", action, params(pairs)))
            .await
    }

    async fn v3(&self, signer: &Signer, action: &str, pairs: &[(&str, &str)]) -> (u16, Value) {
        let own = params(pairs);
        let host = self.cloud.endpoint().unwrap().trim_start_matches("http://");
        let headers = signer.v3(host, action, &own, "");
        self.send_v3(&own, &headers).await
    }

    async fn send_v3(&self, own: &Params, headers: &Params) -> (u16, Value) {
        let mut request = self.client.post(self.url(&format!("/?{}", query(own))));
        for (name, value) in headers.iter().filter(|(name, _)| *name != "host") {
            request = request.header(name, value);
        }
        self.read(request).await
    }

    async fn read(&self, request: reqwest::RequestBuilder) -> (u16, Value) {
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        let text = response.text().await.unwrap();
        (
            status,
            serde_json::from_str(&text).unwrap_or(Value::String(text)),
        )
    }

    async fn get(&self, path: &str) -> (u16, Value) {
        self.read(self.client.get(self.url(path))).await
    }

    async fn create(&self) -> String {
        let (status, body) = self.v1("CreateDisk", &disk()).await;
        assert_eq!(status, 200, "{body}");
        body["DiskId"].as_str().unwrap().to_owned()
    }

    fn node(&self) -> String {
        self.cloud.nodes()[0].id.to_string()
    }
}

fn disk() -> [(&'static str, &'static str); 6] {
    [
        ("RegionId", "cn-beijing"),
        ("ZoneId", "cn-beijing-a"),
        ("DiskCategory", "cloud_essd"),
        ("Size", "20"),
        ("Tag.1.Key", "测试 a&b=c"),
        ("Tag.1.Value", ""),
    ]
}

fn code(answer: &(u16, Value)) -> String {
    format!("{} {}", answer.0, answer.1["Code"].as_str().unwrap_or("-"))
}

#[tokio::test]
async fn a_disk_lives_its_life_under_both_signatures() {
    let lab = Lab::new(&["--nodes=i-one=cn-beijing-a"]).await;
    let disk = lab.create().await;
    let pair = [("DiskId", disk.as_str()), ("InstanceId", "i-one")];
    assert_eq!(lab.v3(&signer(), "AttachDisk", &pair).await.0, 200);
    let ids = format!("[{disk:?}]");
    let list = [("RegionId", "cn-beijing"), ("DiskIds", ids.as_str())];
    let (_, body) = lab.v1("DescribeDisks", &list).await;
    let row = &body["Disks"]["Disk"][0];
    assert_eq!(row["Status"], "In_use");
    assert_eq!(row["Attachments"]["Attachment"][0]["InstanceId"], "i-one");
    assert_eq!(row["SerialNumber"], disk[2..]);
    assert_eq!(
        row["Tags"]["Tag"][0],
        json!({"TagKey": "测试 a&b=c", "TagValue": ""})
    );
    assert_eq!(row["IOPS"], 2800);
    assert_eq!(lab.v3(&signer(), "DetachDisk", &pair).await.0, 200);
    assert_eq!(lab.v1("DeleteDisk", &[("DiskId", &disk)]).await.0, 200);
    let (_, body) = lab.v1("DescribeDisks", &list).await;
    assert_eq!(body["Disks"]["Disk"], json!([]));
}

#[tokio::test]
async fn parameters_may_come_by_get_and_in_a_form() {
    let lab = Lab::new(&[]).await;
    let own = params(&[("RegionId", "cn-beijing")]);
    let all = signer().v1("GET", "DescribeDisks", own.clone());
    assert_eq!(lab.get(&format!("/?{}", query(&all))).await.0, 200);
    let all = signer().v1("POST", "DescribeDisks", own);
    let request = lab
        .client
        .post(lab.url("/"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(query(&all));
    assert_eq!(lab.read(request).await.0, 200);
}

#[tokio::test]
async fn an_error_has_code_words_and_request_id() {
    let lab = Lab::new(&["--missing-is-error"]).await;
    let (status, body) = lab.v1("DeleteDisk", &[("DiskId", "d-none")]).await;
    assert_eq!(
        (status, &body["Code"]),
        (404, &json!("InvalidDiskId.NotFound"))
    );
    for field in ["RequestId", "HostId", "Message", "Recommend"] {
        assert!(body[field].is_string(), "{field}: {body}");
    }
}

#[tokio::test]
async fn a_tampered_request_is_refused_with_the_servers_string_to_sign() {
    let lab = Lab::new(&[]).await;
    let mut all = signer().v1("POST", "DeleteDisk", params(&[("DiskId", "d-one")]));
    all.insert("DiskId".to_owned(), "d-two".to_owned());
    let answer = lab.send_v1(&all).await;
    assert_eq!(code(&answer), "400 SignatureDoesNotMatch");
    let message = answer.1["Message"].as_str().unwrap();
    assert!(
        message.contains("server string to sign is:POST&%2F&"),
        "{message}"
    );
    // The method is signed, too.
    let all = signer().v1("GET", "DescribeRegions", Params::new());
    assert_eq!(code(&lab.send_v1(&all).await), "400 SignatureDoesNotMatch");
}

#[tokio::test]
async fn a_tampered_v3_request_is_refused() {
    let lab = Lab::new(&[]).await;
    let host = lab.cloud.endpoint().unwrap().trim_start_matches("http://");
    let own = params(&[("DiskId", "d-one")]);
    let headers = || signer().v3(host, "DeleteDisk", &own, "");
    let other = params(&[("DiskId", "d-two")]);
    let answer = lab.send_v3(&other, &headers()).await;
    assert_eq!(code(&answer), "400 SignatureDoesNotMatch");
    let mut swapped = headers();
    swapped.insert("x-acs-action".to_owned(), "DescribeRegions".to_owned());
    let answer = lab.send_v3(&own, &swapped).await;
    assert_eq!(code(&answer), "400 SignatureDoesNotMatch");
    // A body that is not the hashed one.
    let body = signer().v3(host, "DeleteDisk", &own, "RegionId=x");
    let answer = lab.send_v3(&own, &body).await;
    assert_eq!(code(&answer), "400 SignatureDoesNotMatch");
    // A header of the signature that is not signed.
    let mut more = headers();
    more.insert("x-acs-extra".to_owned(), "1".to_owned());
    assert_eq!(
        code(&lab.send_v3(&own, &more).await),
        "400 IncompleteSignature"
    );
}

#[tokio::test]
async fn a_nonce_is_good_once() {
    let lab = Lab::new(&[]).await;
    let all = signer().v1("POST", "DescribeRegions", Params::new());
    assert_eq!(lab.send_v1(&all).await.0, 200);
    assert_eq!(code(&lab.send_v1(&all).await), "400 SignatureNonceUsed");
}

#[tokio::test]
async fn clocks_may_differ_by_fifteen_minutes() {
    let lab = Lab::new(&[]).await;
    for (minutes, wanted) in [(14, 200), (-14, 200), (16, 400), (-16, 400)] {
        let mut signer = signer();
        signer.now += jiff::SignedDuration::from_mins(minutes);
        let all = signer.v1("POST", "DescribeRegions", Params::new());
        assert_eq!(lab.send_v1(&all).await.0, wanted, "{minutes}");
    }
    let signer = signer();
    let mut all = signer.v1("POST", "DescribeRegions", Params::new());
    all.insert("Timestamp".to_owned(), "2026-01-15 08:00:00".to_owned());
    let answer = lab.send_v1(&signer.resign("POST", all)).await;
    assert_eq!(code(&answer), "400 InvalidTimeStamp.Format");
}

#[tokio::test]
async fn unknown_and_inactive_keys_are_refused() {
    let lab = Lab::new(&[]).await;
    let mut stranger = signer();
    stranger.key = "LTAI5tSTRANGER".to_owned();
    let answer = lab.v3(&stranger, "DescribeRegions", &[]).await;
    assert_eq!(code(&answer), "404 InvalidAccessKeyId.NotFound");
    lab.cloud
        .configure(&json!({"inactive_keys": [KEY]}))
        .unwrap();
    let answer = lab.v1("DescribeRegions", &[]).await;
    assert_eq!(code(&answer), "400 InvalidAccessKeyId.Inactive");
}

#[tokio::test]
async fn unknown_actions_and_missing_parameters_are_refused() {
    let lab = Lab::new(&[]).await;
    let answer = lab.v1("describeDisks", &[]).await;
    assert_eq!(code(&answer), "404 InvalidAction.NotFound");
    let answer = lab.v1("AttachDisk", &[("DiskId", "d-one")]).await;
    assert_eq!(code(&answer), "400 MissingParameter");
}

#[tokio::test]
async fn without_a_format_the_answer_is_xml() {
    let lab = Lab::new(&[]).await;
    let signer = signer();
    let mut all = signer.v1("POST", "Nonsense", Params::new());
    all.remove("Format");
    let (status, body) = lab.send_v1(&signer.resign("POST", all)).await;
    assert_eq!(status, 404);
    let text = body.as_str().unwrap();
    assert!(text.contains("<Error>") && text.contains("<Code>InvalidAction.NotFound</Code>"));
}

#[tokio::test]
async fn a_throttled_caller_learns_how_long_to_wait() {
    let lab = Lab::new(&["--throttle=DescribeRegions=0"]).await;
    let all = signer().v1("POST", "DescribeRegions", Params::new());
    let url = lab.url(&format!("/?{}", query(&all)));
    let response = lab.client.post(url).send().await.unwrap();
    assert_eq!(response.status(), 400);
    let header = response.headers()["x-ratelimit-user-api"].to_str().unwrap();
    assert!(header.contains("TimeLeft:"), "{header}");
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["Code"], "Throttling");
}

#[tokio::test]
async fn answers_are_lost_and_spoilt_on_order() {
    let lab = Lab::new(&[]).await;
    let faults: Vec<Value> = ["reset-before", "reset-after", "truncated", "empty", "html"]
        .iter()
        .zip(1..)
        .map(|(kind, n)| json!({"action": "CreateDisk", "from": n, "kind": kind}))
        .collect();
    lab.cloud.configure(&json!({"faults": faults})).unwrap();
    let send = || {
        let all = signer().v1("POST", "CreateDisk", params(&disk()));
        let url = lab.url(&format!("/?{}", query(&all)));
        lab.client.post(url).send()
    };
    let disks = || lab.cloud.state()["disks"].as_array().unwrap().len();
    assert!(send().await.is_err());
    assert_eq!(disks(), 0);
    assert!(send().await.is_err());
    assert_eq!(disks(), 1);
    let half = send().await.unwrap().text().await.unwrap();
    assert!(!half.is_empty() && serde_json::from_str::<Value>(&half).is_err());
    assert_eq!(send().await.unwrap().text().await.unwrap(), "");
    let page = send().await.unwrap();
    assert_eq!(page.status(), 502);
    assert!(page.text().await.unwrap().starts_with("<html>"));
    assert_eq!(disks(), 4);
    assert_eq!(send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_message_may_be_null() {
    let lab = Lab::new(&[]).await;
    let fault = json!({"action": "AttachDisk", "kind": "null-message"});
    lab.cloud.configure(&json!({"faults": [fault]})).unwrap();
    let (_, body) = lab.v1("AttachDisk", &[]).await;
    assert_eq!(body["Message"], Value::Null);
    assert!(body.as_object().unwrap().contains_key("Message"));
}

#[tokio::test]
async fn the_control_path_shows_and_changes_the_world() {
    let lab = Lab::new(&[]).await;
    let disk = lab.create().await;
    let (_, state) = lab.get("/_control/state").await;
    assert_eq!(state["disks"][0]["id"], disk.as_str());
    let (_, calls) = lab.get("/_control/calls").await;
    assert_eq!(calls["counts"]["CreateDisk"]["calls"], 1);
    assert_eq!(calls["calls"][0]["via"], "v1");
    assert_eq!(calls["calls"][0]["made"], disk.as_str());
    let (_, audit) = lab.get("/_control/audit").await;
    assert_eq!(audit["made"], json!([]), "it has no name");
    assert_eq!(audit["minutes"][0]["action"], "CreateDisk");
    assert_eq!(audit["minutes"][0]["calls"], 1);
    let log = calls.to_string();
    assert!(!log.contains(SECRET) && !log.contains(KEY) && !log.contains("Signature"));
    let patch = json!({"delays": {"attach": "7s"}});
    let request = lab.client.patch(lab.url("/_control/config")).json(&patch);
    assert_eq!(lab.read(request).await.1["delays"]["attach"], "7s");
    let patch = json!({"delay": {}});
    let request = lab.client.patch(lab.url("/_control/config")).json(&patch);
    assert_eq!(lab.read(request).await.0, 400);
    let order = json!({"op": "add", "id": "i-new", "zone": "cn-beijing-b"});
    let request = lab.client.post(lab.url("/_control/instances")).json(&order);
    assert_eq!(lab.read(request).await.0, 200);
    assert!(
        lab.cloud
            .nodes()
            .iter()
            .any(|node| node.id.as_str() == "i-new")
    );
    let request = lab.client.delete(lab.url("/_control/calls"));
    assert_eq!(lab.read(request).await.0, 200);
    assert_eq!(lab.get("/_control/calls").await.1["calls"], json!([]));
}

#[tokio::test]
async fn an_instance_finds_its_metadata() {
    let lab = Lab::new(&["--nodes=i-one=cn-beijing-b"]).await;
    let get = |path: &'static str| lab.get(path);
    let text = |value: Value| value.as_str().unwrap_or_default().to_owned();
    let path = "/imds/i-one/latest/meta-data/zone-id";
    assert_eq!(text(get(path).await.1), "cn-beijing-b");
    let path = "/imds/i-one/latest/dynamic/instance-identity/document";
    assert_eq!(get(path).await.1["instance-id"], "i-one");
    assert_eq!(get("/imds/i-one/latest/meta-data/nonsense").await.0, 404);
    assert_eq!(get("/imds/i-two/latest/meta-data/zone-id").await.0, 404);
}

#[tokio::test]
async fn metadata_tokens_follow_their_rules() {
    let lab = Lab::new(&["--metadata-token-required"]).await;
    let base = lab
        .cloud
        .metadata_endpoint(&lab.cloud.nodes()[0].id)
        .unwrap();
    let issue = |ttl: &'static str| {
        let request = lab.client.put(format!("{base}/latest/api/token"));
        request.header("X-aliyun-ecs-metadata-token-ttl-seconds", ttl)
    };
    let item = |token: Option<&str>| {
        let request = lab
            .client
            .get(format!("{base}/latest/meta-data/instance-id"));
        match token {
            Some(token) => request.header("X-aliyun-ecs-metadata-token", token),
            None => request,
        }
    };
    assert_eq!(lab.read(issue("0")).await.0, 400);
    assert_eq!(lab.read(issue("21601")).await.0, 400);
    let forwarded = issue("60").header("X-Forwarded-For", "192.0.2.1");
    assert_eq!(lab.read(forwarded).await.0, 403);
    let (status, token) = lab.read(issue("60")).await;
    assert_eq!(status, 200);
    assert_eq!(lab.read(item(None)).await.0, 403);
    assert_eq!(lab.read(item(Some("stale"))).await.0, 401);
    let (status, id) = lab.read(item(token.as_str())).await;
    assert_eq!((status, id), (200, Value::String(lab.node())));
}

#[tokio::test]
async fn metadata_may_be_limited_slow_or_unreachable() {
    let lab = Lab::new(&["--nodes=i-one"]).await;
    let path = "/imds/i-one/latest/meta-data/zone-id";
    let configure = |patch: Value| {
        lab.cloud.configure(&json!({"metadata": null})).unwrap();
        lab.cloud.configure(&json!({"metadata": patch})).unwrap();
    };
    configure(json!({"rate": 0}));
    assert_eq!(lab.get(path).await.0, 429);
    configure(json!({"delay": "100ms"}));
    let begun = tokio::time::Instant::now();
    assert_eq!(lab.get(path).await.0, 200);
    assert!(begun.elapsed() >= Duration::from_millis(100));
    configure(json!({"unreachable": true}));
    assert!(lab.client.get(lab.url(path)).send().await.is_err());
}

#[tokio::test]
async fn role_credentials_sign_only_with_their_token() {
    let lab = Lab::new(&["--ram-role=worker", "--nodes=i-one"]).await;
    let path = "/imds/i-one/latest/meta-data/ram/security-credentials/";
    assert_eq!(lab.get(path).await.1, "worker");
    let (_, found) = lab.get(&format!("{path}worker")).await;
    assert_eq!(found["Code"], "Success");
    let text = |name: &str| found[name].as_str().unwrap().to_owned();
    let mut role = Signer {
        key: text("AccessKeyId"),
        secret: text("AccessKeySecret"),
        token: Some(text("SecurityToken")),
        now: SystemClock.now(),
        version: "2014-05-26",
    };
    assert_eq!(lab.v3(&role, "DescribeRegions", &[]).await.0, 200);
    let all = role.v1("POST", "DescribeRegions", Params::new());
    assert_eq!(lab.send_v1(&all).await.0, 200);
    role.token = None;
    let answer = lab.v3(&role, "DescribeRegions", &[]).await;
    assert_eq!(code(&answer), "400 MissingSecurityToken");
}

#[tokio::test]
async fn nothing_is_served_after_shutdown() {
    let lab = Lab::new(&[]).await;
    let url = lab.url("/_control/state");
    lab.cloud.shutdown().await.unwrap();
    lab.cloud.shutdown().await.unwrap();
    // The port closes when the server's thread gets to it.
    let closed = async {
        while lab.client.get(&url).send().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), closed)
        .await
        .unwrap();
}

#[tokio::test]
async fn query_and_form_are_signed_as_one_and_empty_values_stay() {
    let lab = Lab::new(&[]).await;
    let own = params(&[("RegionId", "cn-beijing"), ("DiskName", ""), ("Size", "20")]);
    let all = signer().v1("POST", "DescribeDisks", own);
    let (form, rest): (Params, Params) = all
        .clone()
        .into_iter()
        .partition(|(name, _)| ["RegionId", "DiskName", "Action", "Signature"].contains(&&**name));
    let post = |query_part: &Params, form_part: &Params| {
        let url = lab.url(&format!("/?{}", query(query_part)));
        let request = lab.client.post(url).body(query(form_part));
        request.header("content-type", "application/x-www-form-urlencoded")
    };
    assert_eq!(lab.read(post(&rest, &form)).await.0, 200);
    // An empty value that was signed is missed when it is left out.
    let all = signer().v1("POST", "DescribeDisks", params(&[("DiskName", "")]));
    let mut less = all.clone();
    less.remove("DiskName");
    let answer = lab.send_v1(&less).await;
    assert_eq!(code(&answer), "400 SignatureDoesNotMatch");
}

#[tokio::test]
async fn a_v3_request_may_have_a_form_and_more_headers_than_it_signs() {
    let lab = Lab::new(&[]).await;
    let host = lab.cloud.endpoint().unwrap().trim_start_matches("http://");
    let form = "RegionId=cn-beijing";
    let send = |headers: Params, body: &'static str| {
        let mut request = lab.client.post(lab.url("/")).body(body);
        for (name, value) in headers.iter().filter(|(name, _)| *name != "host") {
            request = request.header(name, value);
        }
        // Of these the client signs none.
        request
            .header("content-type", "application/x-www-form-urlencoded")
            .header("x-sdk-client", "test")
            .header("user-agent", "test")
    };
    let headers = signer().v3(host, "DescribeDisks", &Params::new(), form);
    assert_eq!(lab.read(send(headers, form)).await.0, 200);
    let headers = signer().v3(host, "DescribeDisks", &Params::new(), form);
    let answer = lab.read(send(headers, "RegionId=cn-beijinG")).await;
    assert_eq!(code(&answer), "400 SignatureDoesNotMatch");
}

#[tokio::test]
async fn a_v3_request_must_sign_its_host() {
    let lab = Lab::new(&[]).await;
    let host = lab.cloud.endpoint().unwrap().trim_start_matches("http://");
    let mut headers = signer().v3(host, "DescribeRegions", &Params::new(), "");
    let unsigned = headers["authorization"].replace("SignedHeaders=host;", "SignedHeaders=");
    headers.insert("authorization".to_owned(), unsigned);
    let answer = lab.send_v3(&Params::new(), &headers).await;
    assert_eq!(code(&answer), "400 IncompleteSignature");
    // A host that is not the one that was signed.
    let headers = signer().v3("elsewhere.example", "DescribeRegions", &Params::new(), "");
    let answer = lab.send_v3(&Params::new(), &headers).await;
    assert_eq!(code(&answer), "400 SignatureDoesNotMatch");
}

#[tokio::test]
async fn a_request_that_is_not_whole_is_refused_before_its_action() {
    let lab = Lab::new(&[]).await;
    let signer = signer();
    for (name, value, wanted) in [
        ("Version", Some("2099-01-01"), "400 InvalidVersion"),
        (
            "SignatureMethod",
            Some("HMAC-MD5"),
            "400 InvalidSignatureMethod",
        ),
        ("SignatureVersion", Some("2.0"), "400 IncompleteSignature"),
        ("Action", None, "400 MissingParameter"),
        ("Version", None, "400 MissingParameter"),
        ("AccessKeyId", None, "400 MissingParameter"),
        ("SignatureNonce", None, "400 MissingParameter"),
        ("Timestamp", None, "400 MissingParameter"),
    ] {
        let mut all = signer.v1("POST", "DescribeRegions", Params::new());
        match value {
            Some(value) => all.insert(name.to_owned(), value.to_owned()),
            None => all.remove(name),
        };
        let answer = lab.send_v1(&signer.resign("POST", all)).await;
        assert_eq!(code(&answer), wanted, "{name}");
    }
    let mut all = signer.v1("POST", "DescribeRegions", Params::new());
    all.remove("Signature");
    assert_eq!(code(&lab.send_v1(&all).await), "400 MissingParameter");
    let all = signer.v1("PUT", "DescribeRegions", Params::new());
    let put = lab.client.put(lab.url(&format!("/?{}", query(&all))));
    assert_eq!(code(&lab.read(put).await), "400 UnsupportedHTTPMethod");
    assert_eq!(lab.cloud.state()["disks"], json!([]));
}

#[tokio::test]
async fn a_success_without_a_format_is_xml_with_all_its_fields() {
    let lab = Lab::new(&[]).await;
    let disk = lab.create().await;
    let signer = signer();
    let mut all = signer.v1(
        "POST",
        "DescribeDisks",
        params(&[("RegionId", "cn-beijing")]),
    );
    all.remove("Format");
    let (status, body) = lab.send_v1(&signer.resign("POST", all)).await;
    let text = body.as_str().unwrap();
    assert_eq!(status, 200);
    for part in [
        "<DescribeDisksResponse>",
        &format!("<DiskId>{disk}</DiskId>"),
        "<TagKey>测试 a&amp;b=c</TagKey>",
        "<Size>20</Size>",
        "<RequestId>",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[tokio::test]
async fn create_snapshot_is_throttled_with_403_and_the_account_by_its_own_header() {
    let lab = Lab::new(&["--throttle=CreateSnapshot=0"]).await;
    let answer = lab.v1("CreateSnapshot", &[("DiskId", "d-one")]).await;
    assert_eq!(code(&answer), "403 Throttling");
    lab.cloud
        .configure(&json!({"throttle": {"actions": null, "user": 0}}))
        .unwrap();
    let all = signer().v1("POST", "DescribeRegions", Params::new());
    let url = lab.url(&format!("/?{}", query(&all)));
    let response = lab.client.post(url).send().await.unwrap();
    let headers = response.headers();
    assert!(headers.contains_key("x-ratelimit-user"));
    let millis: u64 = headers["x-acs-retry-after"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!((1..=60_000).contains(&millis), "{millis}");
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["Code"], "Throttling.User");
}

#[tokio::test]
async fn a_shared_disk_names_its_holders_only_in_its_attachments() {
    let lab = Lab::new(&["--nodes=i-one=cn-beijing-a=ecs.g8i.large"]).await;
    let mut order = disk().to_vec();
    order.push(("MultiAttach", "Enabled"));
    let (_, body) = lab.v1("CreateDisk", &order).await;
    let disk = body["DiskId"].as_str().unwrap().to_owned();
    let pair = [("DiskId", disk.as_str()), ("InstanceId", "i-one")];
    assert_eq!(lab.v1("AttachDisk", &pair).await.0, 200);
    let (_, body) = lab.v1("DescribeDisks", &[("RegionId", "cn-beijing")]).await;
    let row = &body["Disks"]["Disk"][0];
    assert_eq!(
        (&row["InstanceId"], &row["Device"]),
        (&json!(""), &json!(""))
    );
    assert_eq!(row["Attachments"]["Attachment"][0]["InstanceId"], "i-one");
}

#[tokio::test]
async fn lists_of_ids_are_json_of_at_most_a_hundred_and_show_ten_rows_unless_told() {
    let lab = Lab::new(&[]).await;
    let mut ids = Vec::new();
    for _ in 0..11 {
        ids.push(lab.create().await);
    }
    let list = |ids: &str| {
        let ids = ids.to_owned();
        let lab = &lab;
        async move {
            let pairs = [("RegionId", "cn-beijing"), ("DiskIds", ids.as_str())];
            lab.v1("DescribeDisks", &pairs).await
        }
    };
    let rows = |answer: &(u16, Value)| answer.1["Disks"]["Disk"].as_array().map_or(0, Vec::len);
    assert_eq!(rows(&list(&json!(ids).to_string()).await), 10);
    assert_eq!(rows(&list("[]").await), 0);
    assert_eq!(rows(&list("").await), 10, "an empty value is no filter");
    let unknown: Vec<String> = (0..101).map(|n| format!("d-{n}")).collect();
    let answer = list(&json!(unknown).to_string()).await;
    assert_eq!(code(&answer), "403 InvalidDiskIds.Malformed");
    assert_eq!(rows(&list(&json!(unknown[1..]).to_string()).await), 0);
    for wrong in ["oops", "[1]", "{}", "d-1"] {
        assert_eq!(code(&list(wrong).await), "400 InvalidParameter.DiskIds");
    }
}

#[tokio::test]
async fn an_answer_may_drip_and_a_call_may_take_effect_late() {
    let lab = Lab::new(&[]).await;
    let configure = |kind: Value| {
        let fault = json!({"action": "CreateDisk", "kind": kind});
        lab.cloud.configure(&json!({"faults": [fault]})).unwrap();
    };
    let disks = || lab.cloud.state()["disks"].as_array().unwrap().len();
    let send = || {
        let all = signer().v1("POST", "CreateDisk", params(&disk()));
        lab.client.post(lab.url(&format!("/?{}", query(&all))))
    };
    configure(json!({"slow-drip": "400ms"}));
    let mut response = send().send().await.unwrap();
    assert_eq!((response.status().as_u16(), disks()), (200, 1));
    let (mut whole, mut bits) = (Vec::new(), 0);
    while let Some(bit) = response.chunk().await.unwrap() {
        whole.extend(bit);
        bits += 1;
    }
    assert!(bits > 3, "{bits}");
    let body: Value = serde_json::from_slice(&whole).unwrap();
    assert!(body["DiskId"].is_string(), "{body}");

    // Who hangs up before it has taken effect stops nothing.
    configure(json!({"delay-before": "400ms"}));
    let hasty = send().timeout(Duration::from_millis(100)).send().await;
    assert!(hasty.unwrap_err().is_timeout());
    assert_eq!(disks(), 1);
    let late = async {
        while disks() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), late)
        .await
        .unwrap();

    // A late answer does not hold up other calls.
    configure(json!({"delay-after": "5s"}));
    let slow = async {
        let slow = send().timeout(Duration::from_millis(500)).send();
        slow.await.unwrap_err().is_timeout()
    };
    let other = lab.v1("DescribeRegions", &[]);
    let (timed_out, other) = tokio::join!(slow, other);
    assert_eq!((timed_out, other.0, disks()), (true, 200, 3));
}
