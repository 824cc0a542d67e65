//! The fake cloud over HTTP, with requests that the tests build and sign themselves.
#![expect(clippy::unwrap_used, reason = "helper functions of tests")]

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use fake_ecs::{Clock, Cloud, Options, SystemClock, SystemCommands};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const KEY: &str = "LTAI5tFAKECLOUDKEY000001";
const SECRET: &str = "fake-cloud-secret";

mod metadata;
mod request;
mod response;
mod signature;
mod sts;
mod vendor;

type Params = BTreeMap<String, String>;

/// An access key, with its security token if it is temporary.
struct Signer {
    key: String,
    secret: String,
    token: Option<String>,
    now: Timestamp,
    version: &'static str,
}

struct TestCloud {
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
    let pairs = params.iter().map(|(k, v)| format!("{}={}", encode(k), encode(v)));
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

impl TestCloud {
    async fn new(flags: &[&str]) -> Self {
        let options = Options::from_flags(flags.iter().copied()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let clock = Arc::new(SystemClock);
        let exec = Arc::new(SystemCommands);
        let cloud = Cloud::start(&options, clock, exec, listener).await.unwrap();
        let client = reqwest::Client::builder()
            .timeout(Duration::from_secs(60))
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

    fn post(&self, action: &str, pairs: &[(&str, &str)]) -> reqwest::RequestBuilder {
        let all = signer().v1("POST", action, params(pairs));
        self.client.post(self.url(&format!("/?{}", query(&all))))
    }

    async fn v1(&self, action: &str, pairs: &[(&str, &str)]) -> (u16, Value) {
        self.read(self.post(action, pairs)).await
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
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
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

fn code(response: &(u16, Value)) -> String {
    format!("{} {}", response.0, response.1["Code"].as_str().unwrap_or("-"))
}

#[tokio::test]
async fn the_control_api_reads_and_changes_the_state() {
    let test = TestCloud::new(&[]).await;
    let disk = test.create().await;
    let (_, state) = test.get("/_control/state").await;
    assert_eq!(state["disks"][0]["id"], disk.as_str());
    let (_, calls) = test.get("/_control/calls").await;
    assert_eq!(calls["counts"]["CreateDisk"]["calls"], 1);
    assert_eq!(calls["calls"][0]["via"], "v1");
    assert!(calls["calls"][0]["nonce"].is_string(), "{calls}");
    assert_eq!(calls["calls"][0]["created"], disk.as_str());
    let (_, audit) = test.get("/_control/audit").await;
    assert_eq!(audit["created"], json!([]), "the disk has no name");
    assert_eq!(audit["minutes"][0]["action"], "CreateDisk");
    assert_eq!(audit["minutes"][0]["calls"], 1);
    let log = calls.to_string();
    assert!(!log.contains(SECRET) && !log.contains(KEY) && !log.contains("Signature"));
    let patch = json!({"delays": {"attach": "7s"}});
    let request = test.client.patch(test.url("/_control/config")).json(&patch);
    assert_eq!(test.read(request).await.1["delays"]["attach"], "7s");
    let patch = json!({"delay": {}});
    let request = test.client.patch(test.url("/_control/config")).json(&patch);
    assert_eq!(test.read(request).await.0, 400);
    let order = json!({"op": "add", "id": "i-new", "zone": "cn-beijing-b"});
    let request = test.client.post(test.url("/_control/instances")).json(&order);
    assert_eq!(test.read(request).await.0, 200);
    assert!(test.cloud.nodes().iter().any(|node| node.id.as_str() == "i-new"));
    let request = test.client.delete(test.url("/_control/calls"));
    assert_eq!(test.read(request).await.0, 200);
    assert_eq!(test.get("/_control/calls").await.1["calls"], json!([]));
}

#[tokio::test]
async fn the_port_is_closed_after_shutdown() {
    let test = TestCloud::new(&[]).await;
    let url = test.url("/_control/state");
    test.cloud.shutdown().await.unwrap();
    test.cloud.shutdown().await.unwrap();
    // The thread of the server closes the port.
    let closed = async {
        while test.client.get(&url).send().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), closed).await.unwrap();
}
