//! Signature V1: HMAC-SHA1 (`SignatureMethod=HMAC-SHA1`, `SignatureVersion=1.0`).

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::ExposeSecret;
use sha1::Sha1;

use super::canonical;
use super::request::{SignedRequest, UnsignedRequest, format_timestamp};

/// The request with the common parameters and the signature in its query.
pub(super) fn sign(request: &UnsignedRequest<'_>) -> SignedRequest {
    let mut params = request.params.clone();
    for (name, value) in [
        ("Action", request.action),
        ("Version", request.version),
        ("Format", "JSON"),
        ("AccessKeyId", request.credentials.access_key_id.expose_secret()),
        ("SignatureMethod", "HMAC-SHA1"),
        ("SignatureVersion", "1.0"),
        ("SignatureNonce", request.nonce),
        ("Timestamp", &format_timestamp(request.time)),
    ] {
        params.insert(name.to_owned(), value.to_owned());
    }
    if let Some(token) = &request.credentials.security_token {
        params.insert("SecurityToken".to_owned(), token.expose_secret().to_owned());
    }
    let query = canonical::query(&params);
    let signature = signature(
        &string_to_sign("POST", &params),
        request.credentials.access_key_secret.expose_secret(),
    );
    SignedRequest {
        query: format!("{query}&Signature={}", canonical::encode(&signature)),
        headers: vec![],
        signature,
    }
}

/// The string to sign: method, path and query, each encoded, the query twice.
fn string_to_sign(method: &str, params: &BTreeMap<String, String>) -> String {
    format!("{method}&%2F&{}", canonical::encode(&canonical::query(params)))
}

/// Base64 of the HMAC-SHA1 under the secret followed by `&`.
fn signature(string_to_sign: &str, secret: &str) -> String {
    let mut mac =
        Hmac::<Sha1>::new_from_slice(format!("{secret}&").as_bytes()).expect("HMAC accepts keys of any length");
    mac.update(string_to_sign.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn vectors() -> Vec<Value> {
        let all: Vec<Value> = serde_json::from_str(include_str!("../../../../tests/data/sign-vectors.json")).unwrap();
        all.into_iter().filter(|vector| vector["kind"] == "v1").collect()
    }

    #[test]
    fn every_vector_gives_its_string_to_sign_and_signature() {
        let vectors = vectors();
        assert_eq!(vectors.len(), 6);
        for vector in vectors {
            let params: BTreeMap<String, String> = serde_json::from_value(vector["input"]["params"].clone()).unwrap();
            let method = vector["input"]["method"].as_str().unwrap();
            let to_sign = string_to_sign(method, &params);
            let result = &vector["result"];
            assert_eq!(
                canonical::query(&params),
                result["canonical_query"],
                "{}",
                vector["name"]
            );
            assert_eq!(to_sign, result["string_to_sign"], "{}", vector["name"]);
            let secret = vector["input"]["secret"].as_str().unwrap();
            assert_eq!(signature(&to_sign, secret), result["signature"], "{}", vector["name"]);
        }
    }

    /// The signed request, compared with the one vector of a POST with our parameter set.
    #[test]
    fn a_signed_request_is_the_published_final_query() {
        let vector = vectors()
            .into_iter()
            .find(|v| v["name"] == "V1-GEN-3 AttachDisk POST")
            .unwrap();
        let given: BTreeMap<String, String> = serde_json::from_value(vector["input"]["params"].clone()).unwrap();
        let own = given
            .iter()
            .filter(|(name, _)| ["DiskId", "InstanceId", "RegionId", "DeleteWithInstance"].contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let credentials = crate::credential::Credentials::new(
            given["AccessKeyId"].clone(),
            vector["input"]["secret"].as_str().unwrap(),
        );
        let signed = sign(&UnsignedRequest {
            action: "AttachDisk",
            version: crate::sign::API_VERSION,
            params: &own,
            host: "ecs-cn-hangzhou.aliyuncs.com",
            credentials: &credentials,
            time: given["Timestamp"].parse().unwrap(),
            nonce: &given["SignatureNonce"],
        });
        assert_eq!(signed.query, vector["result"]["final_query"]);
    }
}
