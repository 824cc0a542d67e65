//! Requests before and after signing.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;

use crate::credential::Credentials;

pub const API_VERSION: &str = "2014-05-26";

/// The input of a signature.
#[derive(Debug)]
pub struct UnsignedRequest<'a> {
    pub action: &'a str,
    /// The version of the API: [`API_VERSION`] for ECS.
    pub version: &'a str,
    pub params: &'a BTreeMap<String, String>,
    /// The value of the `Host` header.
    pub host: &'a str,
    pub credentials: &'a Credentials,
    /// Wall time, to the second.
    pub time: Timestamp,
    pub nonce: &'a str,
}

/// A signed POST request without a body.
#[derive(PartialEq, Eq)]
pub struct SignedRequest {
    /// The percent-encoded query string.
    pub query: String,
    /// All headers except `Host`.
    pub headers: Vec<(&'static str, String)>,
    pub signature: String,
}

impl fmt::Debug for SignedRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignedRequest([REDACTED])")
    }
}

/// `YYYY-MM-DDThh:mm:ssZ`, the only format that the gateway accepts.
pub(crate) fn format_timestamp(time: Timestamp) -> String {
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
        assert_eq!(format_timestamp(time), "2026-01-15T08:00:00Z");
    }

    #[test]
    fn debug_of_a_signed_request_is_redacted() {
        let signed = SignedRequest {
            query: "AccessKeyId=LTAI".to_owned(),
            headers: vec![],
            signature: String::new(),
        };
        assert_eq!(format!("{signed:?}"), "SignedRequest([REDACTED])");
    }
}
