//! Signature V3: ACS3-HMAC-SHA256 over a canonical request, in an `Authorization` header.

use std::collections::BTreeMap;
use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};

use super::canonical;
use super::request::{SignedRequest, UnsignedRequest, format_timestamp, hex};

const ALGORITHM: &str = "ACS3-HMAC-SHA256";

/// The parts of the canonical request.
pub struct Canonical<'a> {
    pub method: &'a str,
    pub query: &'a BTreeMap<String, String>,
    /// The headers that are signed, names in lower case.
    pub headers: &'a BTreeMap<&'a str, String>,
    /// Lower-case hex SHA-256 of the body.
    pub body_hash: &'a str,
}

/// The request with the signature in its headers.
pub fn sign(request: &UnsignedRequest<'_>) -> SignedRequest {
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
    let canonical = Canonical {
        method: "POST",
        query: request.params,
        headers: &headers,
        body_hash: &body_hash,
    };
    let signature = canonical.signature(request.credentials.access_key_secret.expose_secret());
    let authorization = canonical.authorization(key_id, &signature);
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

impl fmt::Debug for Canonical<'_> {
    /// Without the values of the headers: key and token are among them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Canonical({}, headers {})", self.method, self.signed())
    }
}

impl Canonical<'_> {
    /// The six parts, joined by line feeds.
    pub fn request(&self) -> String {
        let headers: String = self
            .headers
            .iter()
            .map(|(name, value)| format!("{name}:{}\n", value.trim()))
            .collect();
        [
            self.method,
            "/",
            &canonical::query(self.query),
            &headers,
            &self.signed(),
            self.body_hash,
        ]
        .join("\n")
    }

    /// Lower-case hex of the HMAC-SHA256 under the plain secret.
    pub fn signature(&self, secret: &str) -> String {
        let hashed = hex(&Sha256::digest(self.request()));
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC accepts keys of any length");
        mac.update(format!("{ALGORITHM}\n{hashed}").as_bytes());
        hex(&mac.finalize().into_bytes())
    }

    fn authorization(&self, key_id: &str, signature: &str) -> String {
        format!(
            "{ALGORITHM} Credential={key_id},SignedHeaders={},Signature={signature}",
            self.signed(),
        )
    }

    fn signed(&self) -> String {
        self.headers.keys().copied().collect::<Vec<_>>().join(";")
    }
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
            let canonical = Canonical {
                method: input["method"].as_str().unwrap(),
                query: &query,
                headers: &headers,
                body_hash: &body_hash,
            };
            assert_eq!(canonical.request(), result["canonical_request"], "{}", vector["name"]);
            let secret = input["secret"].as_str().unwrap();
            let signature = canonical.signature(secret);
            assert_eq!(signature, result["signature"], "{}", vector["name"]);
            let key_id = input["akid"].as_str().unwrap();
            assert_eq!(
                canonical.authorization(key_id, &signature),
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
