//! Both signatures of a request against those of an independent implementation.

use std::collections::BTreeMap;

use ecs::credential::Credentials;
use ecs::sign::{API_VERSION, Scheme, UnsignedRequest, canonical};
use jiff::Timestamp;

use crate::input::{Input, pairs};
use crate::oracle;

const TIME: &str = "2026-01-15T08:00:00Z";

/// Lines: the key, the secret, the token, then parameters `name=value`.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    let (Some(id), Some(secret), Some(token)) = (input.text_line(), input.text_line(), input.text_line()) else {
        return;
    };
    let Some(pairs) = pairs(input.0) else {
        return;
    };
    let params: BTreeMap<String, String> = pairs.into_iter().collect();
    let mut credentials = Credentials::new(id, secret);
    if !token.is_empty() {
        credentials.security_token = Some(token.to_owned().into());
    }
    let unsigned = UnsignedRequest {
        action: "AttachDisk",
        version: API_VERSION,
        params: &params,
        host: "ecs.example",
        credentials: &credentials,
        time: TIME.parse::<Timestamp>().expect("a timestamp"),
        nonce: "n-1",
    };
    check_v1(&unsigned, id, secret, token);
    check_v3(&unsigned, id, secret, token);
}

fn check_v1(unsigned: &UnsignedRequest<'_>, id: &str, secret: &str, token: &str) {
    // The common parameters replace those of the caller.
    let mut params = unsigned.params.clone();
    for (name, value) in [
        ("Action", "AttachDisk"),
        ("Version", API_VERSION),
        ("Format", "JSON"),
        ("AccessKeyId", id),
        ("SignatureMethod", "HMAC-SHA1"),
        ("SignatureVersion", "1.0"),
        ("SignatureNonce", "n-1"),
        ("Timestamp", TIME),
        ("SecurityToken", token),
    ] {
        if (name, value) != ("SecurityToken", "") {
            params.insert(name.to_owned(), value.to_owned());
        }
    }
    let query = oracle::query(&params.into_iter().collect::<Vec<_>>());
    let signature = oracle::v1("POST", &query, secret);
    let signed = Scheme::V1.sign(unsigned);
    assert_eq!(
        signed.query,
        format!("{query}&Signature={}", oracle::encode(&signature))
    );
    assert_eq!(signed.signature, signature);
}

fn check_v3(unsigned: &UnsignedRequest<'_>, id: &str, secret: &str, token: &str) {
    let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let mut headers = vec![("host", "ecs.example")];
    if !token.is_empty() {
        headers.push(("x-acs-accesskey-id", id));
    }
    headers.push(("x-acs-action", "AttachDisk"));
    headers.push(("x-acs-content-sha256", empty));
    headers.push(("x-acs-date", TIME));
    if !token.is_empty() {
        headers.push(("x-acs-security-token", token));
    }
    headers.push(("x-acs-signature-nonce", "n-1"));
    headers.push(("x-acs-version", API_VERSION));
    let params: Vec<_> = unsigned.params.clone().into_iter().collect();
    let query = oracle::query(&params);
    assert_eq!(canonical::query(unsigned.params), query);
    let signed = Scheme::V3.sign(unsigned);
    assert_eq!(signed.query, query);
    let authorization = signed.headers.iter().find(|(name, _)| *name == "authorization");
    let expected = oracle::v3("POST", &query, &headers, id, secret);
    assert_eq!(authorization.map(|(_, value)| value), Some(&expected));
}
