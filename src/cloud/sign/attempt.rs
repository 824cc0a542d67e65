//! What a signature is made of, and what it makes.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

use crate::cloud::credential::Credentials;

/// The version of the ECS API, `2014-05-26`.
pub const API_VERSION: &str = "2014-05-26";

/// One attempt at one request, all that a signature depends on.
#[derive(Debug)]
pub struct Attempt<'a> {
    pub action: &'a str,
    /// The version of its API: [`API_VERSION`] for ECS.
    pub version: &'a str,
    /// Its own parameters.
    pub params: &'a BTreeMap<String, String>,
    /// Host and port as the `Host` header carries them.
    pub host: &'a str,
    /// Who calls.
    pub credentials: &'a Credentials,
    /// Wall time, to the second.
    pub time: Timestamp,
    /// Never used before.
    pub nonce: &'a str,
}

/// What goes on the wire for an attempt: a POST without a body.
#[derive(PartialEq, Eq)]
pub struct Signed {
    /// The query, percent-encoded.
    pub query: String,
    /// Headers besides `Host`.
    pub headers: Vec<(&'static str, String)>,
    /// The signature alone, as it is before any encoding.
    pub signature: String,
}

impl fmt::Debug for Signed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signed([REDACTED])")
    }
}

/// `YYYY-MM-DDThh:mm:ssZ`, the only form that the gateway takes.
pub(in crate::cloud) fn stamp(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_has_no_fraction() {
        let time: Timestamp = "2026-01-15T08:00:00.987654321Z".parse().unwrap();
        assert_eq!(stamp(time), "2026-01-15T08:00:00Z");
    }

    #[test]
    fn a_signed_request_prints_nothing() {
        let signed = Signed {
            query: "AccessKeyId=LTAI".to_owned(),
            headers: vec![],
            signature: String::new(),
        };
        assert_eq!(format!("{signed:?}"), "Signed([REDACTED])");
    }
}
