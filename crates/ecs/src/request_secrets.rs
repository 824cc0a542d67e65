//! Detects secrets of a request in responses: gateways quote the text that they signed, proxies the URL that they could
//! not reach. Such a response would leak key, token or signature into errors, logs and events.

use percent_encoding::percent_decode;
use secrecy::ExposeSecret;

use super::credential::Credentials;
use super::sign::SignedRequest;

/// Shorter values occur in any text by chance.
const MIN_LENGTH: usize = 8;

/// Maximum of percent-encoding layers: a string to sign has values that are encoded twice.
const MAX_ENCODINGS: usize = 2;

/// The values of one request that must not be repeated. Does not implement Debug.
pub(super) struct RequestSecrets {
    values: Vec<String>,
}

impl RequestSecrets {
    /// The key, the secret, the token and the signature of this request.
    pub(super) fn from_request(credentials: &Credentials, signed: &SignedRequest) -> Self {
        let token = credentials.security_token.as_ref();
        let values = [
            Some(credentials.access_key_id.expose_secret()),
            Some(credentials.access_key_secret.expose_secret()),
            token.map(ExposeSecret::expose_secret),
            Some(signed.signature.as_str()),
        ];
        Self::from_values(values.into_iter().flatten())
    }

    /// A JSON Web Token and its parts: each part is sensitive.
    pub(super) fn from_token(token: &str) -> Self {
        Self::from_values(std::iter::once(token).chain(token.split('.')))
    }

    fn from_values<'a>(values: impl Iterator<Item = &'a str>) -> Self {
        Self {
            values: values
                .filter(|value| value.len() >= MIN_LENGTH)
                .map(without_escapes)
                .collect(),
        }
    }

    /// Whether the text contains one of the values, plain or as encoded in a URL or in JSON.
    pub(super) fn occur_in(&self, text: &[u8]) -> bool {
        let decoded = |text: &Vec<u8>| Some(percent_decode(text).collect());
        let mut layers = std::iter::successors(Some(text.to_vec()), decoded).take(MAX_ENCODINGS + 1);
        layers.any(|text| {
            let plain = without_escapes(&String::from_utf8_lossy(&text));
            self.values.iter().any(|value| plain.contains(value))
        })
    }

    /// The text, unless it contains one of the values.
    pub(super) fn redact(&self, text: String) -> Option<String> {
        (!self.occur_in(text.as_bytes())).then_some(text)
    }
}

/// Removes the backslashes of escaped characters.
fn without_escapes(text: &str) -> String {
    text.replace('\\', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sign::canonical::encode;

    fn secrets() -> RequestSecrets {
        let mut credentials = Credentials::new("LTAI5tEXAMPLE", "short");
        credentials.security_token = Some("CAIS+/\"token\"==".to_owned().into());
        let signed = SignedRequest {
            query: String::new(),
            headers: vec![],
            signature: "pwxkFHQl+mjrw6/tOL28=".to_owned(),
        };
        RequestSecrets::from_request(&credentials, &signed)
    }

    #[test]
    fn a_secret_is_found_plain_encoded_and_escaped() {
        let secrets = secrets();
        for value in ["LTAI5tEXAMPLE", "CAIS+/\"token\"==", "pwxkFHQl+mjrw6/tOL28="] {
            for form in [
                value.to_owned(),
                encode(value),
                encode(&encode(value)),
                format!("{value:?}"),
                serde_json::json!({ "Message": value }).to_string(),
            ] {
                assert!(secrets.occur_in(form.as_bytes()), "{form}");
            }
        }
    }

    #[test]
    fn a_part_of_a_token_is_found() {
        let secrets = RequestSecrets::from_token("eyJhbGciOiJ9.eyJzdWIiOiJ9.c2lnbmF0dXJl");
        assert!(secrets.occur_in(b"This token: eyJzdWIiOiJ9."));
        assert!(secrets.occur_in(b"c2lnbmF0dXJl"));
        assert!(!secrets.occur_in(b"This JsonWebToken is expired."));
    }

    #[test]
    fn other_values_and_short_ones_are_not_found() {
        let secrets = secrets();
        for text in ["", "short", "LTAI5t is how keys begin", "100 % of it, \\ and %zz"] {
            assert!(!secrets.occur_in(text.as_bytes()), "{text}");
        }
        assert_eq!(secrets.redact("words".to_owned()).as_deref(), Some("words"));
    }
}
