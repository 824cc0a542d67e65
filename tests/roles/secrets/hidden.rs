//! Secrets that must not appear in output, in all their encodings.

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Key, secret and token, with characters that every encoding changes, and a marker for `secrets` of CSI calls.
#[derive(Debug)]
pub(crate) struct Hidden {
    pub(crate) key: &'static str,
    pub(crate) secret: &'static str,
    pub(crate) token: &'static str,
    pub(crate) marker: &'static str,
}

/// For output of types that do not check the characters of keys.
pub(crate) const ODD: Hidden = Hidden {
    key: "LTAI5t+odd/\"key\"=Ω&1",
    secret: "s3cret\\with \"quotes\"+&=%20ß",
    token: "CAIS+token/with==&\"ü\"",
    marker: "csi-secret-märker-4711",
};

/// For processes, which accept only these characters in keys.
pub(crate) const PLAIN: Hidden = Hidden {
    key: "LTAI5t.plain-key_1",
    secret: "s3cret.plain+with/_==",
    token: "CAIS+plain/with-_==",
    marker: "csi-secret-marker-4712",
};

impl Hidden {
    /// Asserts that the text contains none of the secrets, and no signature from the sent requests.
    pub(crate) fn absent_from(&self, text: &str, sent: &str) {
        if let Some((form, line)) = self.find_in(text, sent) {
            panic!("{form:?} is in: {line}");
        }
    }

    /// The secret that the text contains, with its line.
    fn find_in<'a>(&self, text: &'a str, sent: &str) -> Option<(String, &'a str)> {
        let signatures = signatures(sent);
        let own = [self.key, self.secret, self.token, self.marker];
        let all = own.into_iter().chain(signatures.iter().map(String::as_str));
        all.flat_map(forms).find_map(|form| {
            let line = text.lines().find(|line| line.contains(&form))?;
            Some((form, line))
        })
    }
}

/// All signatures in the sent requests: `Signature=` of a query (V1) or header (V3).
pub(crate) fn signatures(sent: &str) -> Vec<String> {
    let values = sent.split("Signature=").skip(1);
    let value = |rest: &str| {
        let end = rest.find(['&', ' ', ',', '\r']).unwrap_or(rest.len());
        percent_decode_str(&rest[..end]).decode_utf8_lossy().into_owned()
    };
    values.map(value).collect()
}

/// Verbatim, percent-encoded once and twice, and escaped as in JSON or Debug.
fn forms(text: &str) -> Vec<String> {
    let encode = |text: &str| {
        let encoded = utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
        encoded.replace("%2D", "-").replace("%5F", "_")
    };
    let json = serde_json::to_string(text).unwrap();
    let once = encode(text);
    let twice = encode(&once);
    let debug = format!("{text:?}");
    vec![
        json.trim_matches('"').to_owned(),
        debug.trim_matches('"').to_owned(),
        text.escape_default().to_string(),
        text.to_owned(),
        once,
        twice,
    ]
}

#[test]
fn a_signature_is_found_in_query_and_header() {
    let sent = "POST /?Action=X&Signature=a%2Bb%3D&SignatureNonce=1 HTTP/1.1\r\n\
                authorization: ACS3-HMAC-SHA256 Credential=k,SignedHeaders=h,Signature=abc\r\n";
    assert_eq!(signatures(sent), ["a+b=", "abc"]);
}

#[test]
fn secrets_are_found_in_every_encoding() {
    for text in [
        ODD.secret.to_owned(),
        format!("{:?}", ODD.key),
        serde_json::json!({ "message": ODD.token }).to_string(),
        utf8_percent_encode(ODD.key, NON_ALPHANUMERIC).to_string(),
        "Signature%3D: abc%2B".replace("abc%2B", "q%2Bz%3D"),
    ] {
        let sent = "Signature=q%2Bz%3D ";
        assert!(ODD.find_in(&text, sent).is_some(), "not found in {text}");
    }
}
