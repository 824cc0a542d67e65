//! Signature V1: HMAC-SHA1 over all parameters of query and form.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;

use super::query::{canonical, encode};

#[derive(Debug)]
pub(super) struct Expected {
    pub(super) string_to_sign: String,
    pub(super) signature: String,
}

pub(super) fn expected(method: &str, params: &BTreeMap<String, String>, secret: &str) -> Expected {
    let string_to_sign = format!("{method}&%2F&{}", encode(&canonical(params)));
    let key = format!("{secret}&");
    let mut mac = Hmac::<Sha1>::new_from_slice(key.as_bytes()).expect("HMAC accepts keys of any length");
    mac.update(string_to_sign.as_bytes());
    Expected {
        signature: STANDARD.encode(mac.finalize().into_bytes()),
        string_to_sign,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::query::decode;
    use super::*;

    #[test]
    fn every_published_and_generated_vector_is_reproduced() {
        let vectors: Vec<Value> =
            serde_json::from_str(include_str!("../../../../tests/data/sign-vectors.json")).unwrap();
        let mut seen = 0;
        for vector in vectors.iter().filter(|vector| vector["kind"] == "v1") {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            // From the encoded query, to test decoding as well.
            let params = decode(&text(&vector["result"]["final_query"]));
            let method = text(&vector["input"]["method"]);
            let expected = expected(&method, &params, &text(&vector["input"]["secret"]));
            let name = &vector["name"];
            assert_eq!(expected.string_to_sign, vector["result"]["string_to_sign"], "{name}");
            assert_eq!(expected.signature, vector["result"]["signature"], "{name}");
            assert_eq!(expected.signature, params["Signature"], "{name}");
            seen += 1;
        }
        assert_eq!(seen, 6);
    }
}
