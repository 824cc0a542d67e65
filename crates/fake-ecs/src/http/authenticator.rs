//! Authentication of API requests: key, timestamp, nonce and signature.

use std::time::Duration;

use jiff::Timestamp;

use super::auth_v1;
use super::auth_v3::{self, Authorization, Signed};
use super::gateway::GatewayState;
use super::request::HttpRequest;
use super::response::Origin;
use crate::api_error::ApiError;
use crate::config::Config;
use crate::credential::Keys;
use crate::distribution::until;
use crate::log::Via;
use crate::params::Params;
use crate::sts::Sessions;

/// Maximum clock skew between client and server.
const SKEW: Duration = Duration::from_mins(15);
pub(super) const VERSION: &str = "2014-05-26";

/// The parsed parts of a request, not authenticated.
#[derive(Debug)]
pub(super) struct ParsedRequest {
    pub(super) via: Via,
    pub(super) action: String,
    pub(super) nonce: Option<String>,
    /// Whether the response is JSON instead of XML.
    pub(super) json: bool,
    /// All parameters except those of the signature.
    pub(super) params: Params,
}

/// Parameters of the signature, which are never logged.
const COMMON: [&str; 12] = [
    "Action",
    "Version",
    "Format",
    "AccessKeyId",
    "Signature",
    "SignatureMethod",
    "SignatureVersion",
    "SignatureNonce",
    "SignatureType",
    "Timestamp",
    "SecurityToken",
    "BearerToken",
];

impl ParsedRequest {
    pub(super) fn of(request: &HttpRequest<'_>) -> Self {
        let mut all = request.query.clone();
        all.extend(request.form());
        let v3 = request
            .header("authorization")
            .is_some_and(|header| header.starts_with("ACS3-"));
        let (via, action, nonce, json) = if v3 {
            let xml = request.header("accept").is_some_and(|kind| kind.contains("xml"));
            (
                Via::V3,
                request.header("x-acs-action").map(str::to_owned),
                request.header("x-acs-signature-nonce").map(str::to_owned),
                !xml,
            )
        } else {
            let json = all.get("Format").is_some_and(|f| f.eq_ignore_ascii_case("json"));
            let nonce = all.get("SignatureNonce").cloned();
            (Via::V1, all.get("Action").cloned(), nonce, json)
        };
        all.retain(|name, _| !COMMON.contains(&name.as_str()));
        Self {
            via,
            action: action.unwrap_or_default(),
            nonce,
            json,
            params: all.into(),
        }
    }

    pub(super) fn origin<'a>(&'a self, request: &'a HttpRequest<'_>) -> Origin<'a> {
        Origin {
            action: &self.action,
            json: self.json,
            host: request.host(),
        }
    }

    pub(super) fn key_of(request: &HttpRequest<'_>) -> Option<String> {
        if let Some(header) = request.header("authorization") {
            return Authorization::parse(header).map(|authorization| authorization.key_id.to_owned());
        }
        let mut all = request.query.clone();
        all.extend(request.form());
        all.remove("AccessKeyId")
    }
}

/// Checks the authentication of requests.
#[derive(Debug)]
pub(super) struct Authenticator<'a> {
    pub(super) keys: &'a Keys,
    pub(super) config: &'a Config,
    pub(super) now: Timestamp,
    /// The API version that the request must have.
    pub(super) version: &'static str,
}

impl Authenticator<'_> {
    pub(super) fn check(
        &self,
        request: &HttpRequest<'_>,
        parsed: &ParsedRequest,
        state: &mut GatewayState,
    ) -> Result<(), ApiError> {
        if !matches!(request.method, "GET" | "POST") {
            return Err(ApiError::new(400, "UnsupportedHTTPMethod"));
        }
        match parsed.via {
            Via::V3 => self.check_v3(request, &state.issued)?,
            Via::V1 | Via::Unsigned => self.check_v1(request, &state.issued)?,
        }
        let nonce = parsed.nonce.as_deref().unwrap_or_default();
        if !state.nonces.take(nonce, self.now) {
            return Err(
                ApiError::new(400, "SignatureNonceUsed").with_message("Specified signature nonce was used already.")
            );
        }
        Ok(())
    }

    fn check_v1(&self, request: &HttpRequest<'_>, issued: &Sessions) -> Result<(), ApiError> {
        let mut all = request.query.clone();
        all.extend(request.form());
        let get = |name: &str| {
            let value = all.get(name).map(String::as_str);
            value
                .filter(|value| !value.is_empty())
                .ok_or_else(|| ApiError::missing(name))
        };
        get("Action")?;
        let key = get("AccessKeyId")?;
        let signature = get("Signature")?;
        get("SignatureNonce")?;
        self.check_version(get("Version")?)?;
        if get("SignatureMethod")? != "HMAC-SHA1" {
            return Err(ApiError::new(400, "InvalidSignatureMethod"));
        }
        if get("SignatureVersion")? != "1.0" {
            return Err(ApiError::new(400, "IncompleteSignature"));
        }
        self.check_time(get("Timestamp")?)?;
        let secret = self.secret(key, get("SecurityToken").ok(), issued)?;
        let expected = auth_v1::expected(request.method, &all, &secret);
        compare_signatures(signature, &expected.signature, &expected.string_to_sign)
    }

    fn check_v3(&self, request: &HttpRequest<'_>, issued: &Sessions) -> Result<(), ApiError> {
        let get = |name: &str| {
            let value = request.header(name).filter(|value| !value.is_empty());
            value.ok_or_else(|| ApiError::missing(name))
        };
        let header = get("authorization")?;
        let incomplete = || ApiError::new(400, "IncompleteSignature");
        let authorization = Authorization::parse(header).ok_or_else(incomplete)?;
        get("x-acs-action")?;
        get("x-acs-signature-nonce")?;
        self.check_version(get("x-acs-version")?)?;
        self.check_time(get("x-acs-date")?)?;
        let must = |name: &str| name == "host" || name.starts_with("x-acs-");
        let unsigned = request
            .headers
            .keys()
            .any(|name| must(name) && !authorization.signed_headers.contains(&name.as_str()));
        if unsigned {
            return Err(incomplete());
        }
        let token = request.header("x-acs-security-token");
        let secret = self.secret(authorization.key_id, token, issued)?;
        let body_hash = auth_v3::hash(request.body);
        let signed = Signed {
            method: request.method,
            query: &request.query,
            headers: &request.headers,
            body_hash: &body_hash,
        };
        let expected = signed.expected(&authorization.signed_headers, &secret);
        let claimed = get("x-acs-content-sha256")?;
        let right = if claimed == body_hash { &expected.signature } else { "" };
        compare_signatures(authorization.signature, right, &expected.string_to_sign)
    }

    fn check_version(&self, version: &str) -> Result<(), ApiError> {
        if version == self.version {
            return Ok(());
        }
        Err(ApiError::new(400, "InvalidVersion"))
    }

    fn check_time(&self, text: &str) -> Result<(), ApiError> {
        let strict = text.len() == "2026-01-15T08:00:00Z".len() && text.ends_with('Z');
        let time: Option<Timestamp> = text.parse().ok().filter(|_| strict);
        let time = time.ok_or_else(|| ApiError::new(400, "InvalidTimeStamp.Format"))?;
        if until(time, self.now).max(until(self.now, time)) > SKEW {
            return Err(ApiError::new(400, "InvalidTimeStamp.Expired")
                .with_message("Specified time stamp or date value is expired."));
        }
        Ok(())
    }

    fn secret(&self, key: &str, token: Option<&str>, issued: &Sessions) -> Result<String, ApiError> {
        if self.config.inactive_keys.iter().any(|inactive| inactive == key) {
            return Err(ApiError::new(400, "InvalidAccessKeyId.Inactive"));
        }
        let lifetime = self.config.metadata.credential_lifetime;
        match issued.get(key) {
            Some(session) => session.secret_for(token, self.now),
            None => self.keys.secret_key(key, token, self.now, lifetime),
        }
    }
}

fn compare_signatures(signature: &str, expected: &str, string_to_sign: &str) -> Result<(), ApiError> {
    if signature == expected {
        return Ok(());
    }
    Err(ApiError::new(400, "SignatureDoesNotMatch").with_message(format!(
        "Specified signature is not matched with our calculation. server string to sign \
         is:{string_to_sign}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::nonces::Nonces;

    #[test]
    fn a_nonce_can_be_reused_after_31_minutes() {
        let mut nonces = Nonces::default();
        let at = |minute: i64| Timestamp::from_second(minute * 60).unwrap();
        assert!(nonces.take("n", at(0)));
        assert!(!nonces.take("n", at(30)));
        assert!(nonces.take("n", at(31)));
    }
}
