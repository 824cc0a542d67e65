//! What a request carries in confidence, and whether an answer throws it back: gateways quote the
//! text that they signed, proxies the URL that they could not reach. Such an answer would take key,
//! token or signature into errors, and from there into logs and events.

use std::borrow::Cow;

use percent_encoding::percent_decode;
use secrecy::ExposeSecret;

use super::credential::Credentials;
use super::sign::Signed;

/// Shorter words are no secrets; by chance they are in any text.
const SHORTEST: usize = 8;

/// How often a text is decoded: a string to sign carries values that are encoded twice.
const LAYERS: usize = 2;

/// The words of one request that must not come back. Has no Debug.
pub(super) struct Confidential {
    words: Vec<String>,
}

impl Confidential {
    /// The key, the secret, the token and the signature of this request.
    pub(super) fn of(credentials: &Credentials, signed: &Signed) -> Self {
        let token = credentials.security_token.as_ref();
        let words = [
            Some(credentials.access_key_id.expose_secret()),
            Some(credentials.secret.expose_secret()),
            token.map(ExposeSecret::expose_secret),
            Some(signed.signature.as_str()),
        ];
        Self::words(words.into_iter().flatten())
    }

    /// A JSON Web Token, whole and in its parts: each is enough to tell whose it is, or to be it.
    pub(super) fn token(token: &str) -> Self {
        Self::words(std::iter::once(token).chain(token.split('.')))
    }

    fn words<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        Self {
            words: words
                .filter(|word| word.len() >= SHORTEST)
                .map(without_escapes)
                .collect(),
        }
    }

    /// Whether the text has one of the words, as it is or as a URL or JSON writes it.
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        let mut text = Cow::from(text);
        for layer in 0..=LAYERS {
            if layer > 0 {
                text = Cow::from(percent_decode(&text).collect::<Vec<_>>());
            }
            let plain = String::from_utf8_lossy(&text);
            let plain = without_escapes(&plain);
            if self.words.iter().any(|word| plain.contains(word)) {
                return true;
            }
        }
        false
    }

    /// The text, unless it has one of the words.
    pub(super) fn unless_in(&self, text: String) -> Option<String> {
        (!self.is_in(text.as_bytes())).then_some(text)
    }
}

/// Without the backslashes before quotes, slashes and themselves.
fn without_escapes(text: &str) -> String {
    text.replace('\\', "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::sign::canonical::encode;

    fn confidential() -> Confidential {
        let mut credentials = Credentials::new("LTAI5tEXAMPLE", "short");
        credentials.security_token = Some("CAIS+/\"token\"==".to_owned().into());
        let signed = Signed {
            query: String::new(),
            headers: vec![],
            signature: "pwxkFHQl+mjrw6/tOL28=".to_owned(),
        };
        Confidential::of(&credentials, &signed)
    }

    #[test]
    fn a_word_is_found_as_it_is_encoded_and_escaped() {
        let confidential = confidential();
        for word in [
            "LTAI5tEXAMPLE",
            "CAIS+/\"token\"==",
            "pwxkFHQl+mjrw6/tOL28=",
        ] {
            for form in [
                word.to_owned(),
                encode(word),
                encode(&encode(word)),
                format!("{word:?}"),
                serde_json::json!({ "Message": word }).to_string(),
            ] {
                assert!(confidential.is_in(form.as_bytes()), "{form}");
            }
        }
    }

    #[test]
    fn a_part_of_a_token_is_found_too() {
        let confidential = Confidential::token("eyJhbGciOiJ9.eyJzdWIiOiJ9.c2lnbmF0dXJl");
        assert!(confidential.is_in(b"This token: eyJzdWIiOiJ9."));
        assert!(confidential.is_in(b"c2lnbmF0dXJl"));
        assert!(!confidential.is_in(b"This JsonWebToken is expired."));
    }

    #[test]
    fn other_words_and_short_ones_are_not() {
        let confidential = confidential();
        for text in [
            "",
            "short",
            "LTAI5t is how keys begin",
            "100 % of it, \\ and %zz",
        ] {
            assert!(!confidential.is_in(text.as_bytes()), "{text}");
        }
        assert_eq!(
            confidential.unless_in("words".to_owned()).as_deref(),
            Some("words")
        );
    }
}
