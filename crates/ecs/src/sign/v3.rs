//! Signature V3: ACS3-HMAC-SHA256 over a canonical request, in an `Authorization` header.

use std::collections::BTreeMap;

use hmac::{Hmac, KeyInit, Mac};
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};

use super::canonical;
use super::request::{SignedRequest, UnsignedRequest, format_timestamp, hex};

const ALGORITHM: &str = "ACS3-HMAC-SHA256";

/// Headers that are signed, names in lower case.
type Headers<'a> = BTreeMap<&'a str, String>;

/// The request with the signature in its headers.
pub(super) fn sign(request: &UnsignedRequest<'_>) -> SignedRequest {
    let key_id = request.credentials.access_key_id.expose_secret();
    let body_hash = hex(&Sha256::digest(b""));
    let mut headers = BTreeMap::from([
        ("host", request.host.to_owned()),
        ("x-acs-action", request.action.to_owned()),
        ("x-acs-version", request.version.to_owned()),
        ("x-acs-date", format_timestamp(request.time)),
        ("x-acs-signature-nonce", request.nonce.to_owned()),
        ("x-acs-content-sha256", body_hash.clone()),
    ]);
    if let Some(token) = &request.credentials.security_token {
        headers.insert("x-acs-accesskey-id", key_id.to_owned());
        headers.insert("x-acs-security-token", token.expose_secret().to_owned());
    }
    let canonical = canonical_request("POST", request.params, &headers, &body_hash);
    let signature = signature(&canonical, request.credentials.access_key_secret.expose_secret());
    let authorization = authorization(key_id, &headers, &signature);
    headers.remove("host");
    let mut headers: Vec<_> = headers.into_iter().collect();
    headers.push(("accept", "application/json".to_owned()));
    headers.push(("authorization", authorization));
    SignedRequest {
        query: canonical::query(request.params),
        headers,
        signature,
    }
}

/// Method, path, query, headers, their names, and the hash of the body (lower-case hex SHA-256), joined by line feeds.
fn canonical_request(method: &str, query: &BTreeMap<String, String>, headers: &Headers<'_>, body_hash: &str) -> String {
    let lines = headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim()));
    let (lines, query) = (lines.collect::<String>(), canonical::query(query));
    [method, "/", &query, &lines, &names(headers), body_hash].join("\n")
}

/// Lower-case hex of the HMAC-SHA256 under the plain secret.
fn signature(canonical_request: &str, secret: &str) -> String {
    let hashed = hex(&Sha256::digest(canonical_request));
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC accepts keys of any length");
    mac.update(format!("{ALGORITHM}\n{hashed}").as_bytes());
    hex(&mac.finalize().into_bytes())
}

fn authorization(key_id: &str, headers: &Headers<'_>, signature: &str) -> String {
    let names = names(headers);
    format!("{ALGORITHM} Credential={key_id},SignedHeaders={names},Signature={signature}")
}

fn names(headers: &Headers<'_>) -> String {
    headers.keys().copied().collect::<Vec<_>>().join(";")
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::credential::Credentials;

    fn vectors() -> Vec<Value> {
        let all: Vec<Value> = serde_json::from_str(include_str!("../../../../tests/data/sign-vectors.json")).unwrap();
        all.into_iter().filter(|vector| vector["kind"] == "v3").collect()
    }

    fn map(value: &Value) -> BTreeMap<String, String> {
        serde_json::from_value(value.clone()).unwrap()
    }

    #[test]
    fn every_vector_gives_its_canonical_request_and_authorization() {
        let vectors = vectors();
        assert_eq!(vectors.len(), 4);
        for vector in vectors {
            let (input, result) = (&vector["input"], &vector["result"]);
            let query = map(&input["query"]);
            let given = map(&input["headers"]);
            let body_hash = hex(&Sha256::digest(input["body"].as_str().unwrap()));
            let mut headers: BTreeMap<&str, String> = given
                .iter()
                .map(|(name, value)| (name.as_str(), value.clone()))
                .collect();
            headers.insert("x-acs-content-sha256", body_hash.clone());
            let method = input["method"].as_str().unwrap();
            let canonical = canonical_request(method, &query, &headers, &body_hash);
            assert_eq!(canonical, result["canonical_request"], "{}", vector["name"]);
            let secret = input["secret"].as_str().unwrap();
            let signature = signature(&canonical, secret);
            assert_eq!(signature, result["signature"], "{}", vector["name"]);
            let key_id = input["akid"].as_str().unwrap();
            assert_eq!(
                authorization(key_id, &headers, &signature),
                result["authorization"],
                "{}",
                vector["name"]
            );
        }
    }

    #[test]
    fn a_signed_request_carries_the_headers_of_the_sts_vector() {
        let vector = vectors()
            .into_iter()
            .find(|v| v["name"] == "V3-GEN-2 CreateDisk + STS")
            .unwrap();
        let (params, given) = (map(&vector["input"]["query"]), map(&vector["input"]["headers"]));
        let mut credentials = Credentials::new(
            vector["input"]["akid"].as_str().unwrap(),
            vector["input"]["secret"].as_str().unwrap(),
        );
        credentials.security_token = Some(given["x-acs-security-token"].clone().into());
        let signed = sign(&UnsignedRequest {
            action: "CreateDisk",
            version: crate::sign::API_VERSION,
            params: &params,
            host: &given["host"],
            credentials: &credentials,
            time: given["x-acs-date"].parse().unwrap(),
            nonce: &given["x-acs-signature-nonce"],
        });
        let authorization = signed.headers.iter().find(|(name, _)| *name == "authorization");
        assert_eq!(authorization.unwrap().1, vector["result"]["authorization"]);
    }
}
