//! Signature V3: ACS3-HMAC-SHA256 over method, query, the headers that the client lists, and a
//! hash of the body.

use std::collections::BTreeMap;
use std::fmt::Write;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

use super::query::canonical;

pub(super) const ALGORITHM: &str = "ACS3-HMAC-SHA256";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Authorization<'a> {
    pub(super) key_id: &'a str,
    pub(super) signed_headers: Vec<&'a str>,
    pub(super) signature: &'a str,
}

impl<'a> Authorization<'a> {
    /// Parses the header; none if the algorithm differs or a part is missing.
    pub(super) fn parse(header: &'a str) -> Option<Self> {
        let rest = header.strip_prefix(ALGORITHM)?.strip_prefix(' ')?;
        let parts: BTreeMap<&str, &str> = rest.split(',').filter_map(|part| part.trim().split_once('=')).collect();
        Some(Self {
            key_id: parts.get("Credential")?,
            signed_headers: parts.get("SignedHeaders")?.split(';').collect(),
            signature: parts.get("Signature")?,
        })
    }
}

#[derive(Debug)]
pub(super) struct Expected {
    pub(super) string_to_sign: String,
    pub(super) signature: String,
}

#[derive(Debug)]
pub(super) struct Signed<'a> {
    pub(super) method: &'a str,
    pub(super) query: &'a BTreeMap<String, String>,
    pub(super) headers: &'a BTreeMap<String, String>,
    pub(super) body_hash: &'a str,
}

impl Signed<'_> {
    pub(super) fn expected(&self, signed_headers: &[&str], secret: &str) -> Expected {
        let lines: String = signed_headers
            .iter()
            .map(|name| {
                let value = self.headers.get(*name).map_or("", |value| value.trim());
                format!("{name}:{value}\n")
            })
            .collect();
        let request = format!(
            "{}\n/\n{}\n{lines}\n{}\n{}",
            self.method,
            canonical(self.query),
            signed_headers.join(";"),
            self.body_hash,
        );
        let string_to_sign = format!("{ALGORITHM}\n{}", hash(request.as_bytes()));
        let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC accepts keys of any length");
        mac.update(string_to_sign.as_bytes());
        Expected {
            signature: hex(&mac.finalize().into_bytes()),
            string_to_sign,
        }
    }
}

/// The lower-case hex SHA-256.
pub(super) fn hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn map(value: &Value) -> BTreeMap<String, String> {
        let fields = value.as_object().unwrap().iter();
        fields
            .map(|(k, v)| (k.clone(), v.as_str().unwrap().to_owned()))
            .collect()
    }

    #[test]
    fn every_published_and_generated_vector_is_reproduced() {
        let vectors: Vec<Value> =
            serde_json::from_str(include_str!("../../../../tests/data/sign-vectors.json")).unwrap();
        let mut seen = 0;
        for vector in vectors.iter().filter(|vector| vector["kind"] == "v3") {
            let (input, result) = (&vector["input"], &vector["result"]);
            let authorization = result["authorization"].as_str().unwrap();
            let authorization = Authorization::parse(authorization).unwrap();
            let body_hash = hash(input["body"].as_str().unwrap().as_bytes());
            assert_eq!(body_hash, result["x-acs-content-sha256"]);
            let mut headers = map(&input["headers"]);
            headers.insert("x-acs-content-sha256".to_owned(), body_hash.clone());
            let signed = Signed {
                method: input["method"].as_str().unwrap(),
                query: &map(&input["query"]),
                headers: &headers,
                body_hash: &body_hash,
            };
            let secret = input["secret"].as_str().unwrap();
            let expected = signed.expected(&authorization.signed_headers, secret);
            let name = &vector["name"];
            assert_eq!(expected.string_to_sign, result["string_to_sign"], "{name}");
            assert_eq!(expected.signature, result["signature"], "{name}");
            assert_eq!(authorization.signature, expected.signature, "{name}");
            seen += 1;
        }
        assert_eq!(seen, 4);
    }

    #[test]
    fn an_incomplete_authorization_is_rejected() {
        for header in [
            "ACS3-RSA-SHA256 Credential=a,SignedHeaders=host,Signature=b",
            "ACS3-HMAC-SHA256 Credential=a,Signature=b",
            "Bearer x",
        ] {
            assert_eq!(Authorization::parse(header), None);
        }
    }
}
