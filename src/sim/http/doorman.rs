//! The gateway in front of every action: who signed, when, and whether the signature is right.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::time::Duration;

use jiff::Timestamp;

use super::auth_v1;
use super::auth_v3::{self, Authorization, Signed};
use super::face::Memory;
use super::request::Wire;
use crate::sim::config::Config;
use crate::sim::credential::Keys;
use crate::sim::log::Via;
use crate::sim::reply::Refusal;
use crate::sim::spread::until;
use crate::sim::sts::Sessions;

/// Greatest difference between the client's clock and ours.
const SKEW: Duration = Duration::from_mins(15);
/// How long a nonce must not be used again.
const NONCE_MEMORY: Duration = Duration::from_mins(31);
/// The version of the ECS API.
pub(super) const VERSION: &str = "2014-05-26";

/// The nonces of the last half hour.
#[derive(Debug, Default)]
pub(super) struct Nonces {
    used: HashSet<String>,
    queue: VecDeque<(Timestamp, String)>,
}

impl Nonces {
    /// Takes a nonce; false when it was taken before.
    fn take(&mut self, nonce: &str, now: Timestamp) -> bool {
        while let Some((at, old)) = self.queue.front()
            && until(*at, now) >= NONCE_MEMORY
        {
            self.used.remove(old);
            self.queue.pop_front();
        }
        if !self.used.insert(nonce.to_owned()) {
            return false;
        }
        self.queue.push_back((now, nonce.to_owned()));
        true
    }
}

/// What a request asks for, before and after it is believed.
#[derive(Debug)]
pub(super) struct Ticket {
    pub(super) via: Via,
    pub(super) action: String,
    pub(super) nonce: Option<String>,
    /// Whether the answer is JSON; else it is XML.
    pub(super) json: bool,
    /// All parameters but those of the signature.
    pub(super) params: BTreeMap<String, String>,
}

/// Parameters that belong to the signature and are never logged.
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

impl Ticket {
    pub(super) fn of(wire: &Wire<'_>) -> Self {
        let mut all = wire.query.clone();
        all.extend(wire.form());
        let v3 = wire
            .header("authorization")
            .is_some_and(|header| header.starts_with("ACS3-"));
        let (via, action, nonce, json) = if v3 {
            let xml = wire
                .header("accept")
                .is_some_and(|kind| kind.contains("xml"));
            (
                Via::V3,
                wire.header("x-acs-action").map(str::to_owned),
                wire.header("x-acs-signature-nonce").map(str::to_owned),
                !xml,
            )
        } else {
            let json = all
                .get("Format")
                .is_some_and(|f| f.eq_ignore_ascii_case("json"));
            let nonce = all.get("SignatureNonce").cloned();
            (Via::V1, all.get("Action").cloned(), nonce, json)
        };
        all.retain(|name, _| !COMMON.contains(&name.as_str()));
        Self {
            via,
            action: action.unwrap_or_default(),
            nonce,
            json,
            params: all,
        }
    }
}

impl Ticket {
    /// The key that a request says it is signed with.
    pub(super) fn key_of(wire: &Wire<'_>) -> Option<String> {
        if let Some(header) = wire.header("authorization") {
            return Authorization::parse(header)
                .map(|authorization| authorization.key_id.to_owned());
        }
        let mut all = wire.query.clone();
        all.extend(wire.form());
        all.remove("AccessKeyId")
    }
}

/// What is needed to judge a request.
#[derive(Debug)]
pub(super) struct Doorman<'a> {
    pub(super) keys: &'a Keys,
    pub(super) config: &'a Config,
    pub(super) now: Timestamp,
    /// The version of the API that is asked.
    pub(super) version: &'static str,
}

impl Doorman<'_> {
    pub(super) fn check(
        &self,
        wire: &Wire<'_>,
        ticket: &Ticket,
        memory: &mut Memory,
    ) -> Result<(), Refusal> {
        if !matches!(wire.method, "GET" | "POST") {
            return Err(Refusal::new(400, "UnsupportedHTTPMethod"));
        }
        match ticket.via {
            Via::V3 => self.check_v3(wire, &memory.issued)?,
            Via::V1 | Via::Memory | Via::Unsigned => self.check_v1(wire, &memory.issued)?,
        }
        let nonce = ticket.nonce.as_deref().unwrap_or_default();
        if !memory.nonces.take(nonce, self.now) {
            return Err(Refusal::new(400, "SignatureNonceUsed")
                .because("Specified signature nonce was used already."));
        }
        Ok(())
    }

    fn check_v1(&self, wire: &Wire<'_>, issued: &Sessions) -> Result<(), Refusal> {
        let mut all = wire.query.clone();
        all.extend(wire.form());
        let get = |name: &str| {
            let value = all.get(name).map(String::as_str);
            value
                .filter(|value| !value.is_empty())
                .ok_or_else(|| Refusal::missing(name))
        };
        get("Action")?;
        let key = get("AccessKeyId")?;
        let signature = get("Signature")?;
        get("SignatureNonce")?;
        self.check_version(get("Version")?)?;
        if get("SignatureMethod")? != "HMAC-SHA1" {
            return Err(Refusal::new(400, "InvalidSignatureMethod"));
        }
        if get("SignatureVersion")? != "1.0" {
            return Err(Refusal::new(400, "IncompleteSignature"));
        }
        self.check_time(get("Timestamp")?)?;
        let secret = self.secret(key, get("SecurityToken").ok(), issued)?;
        let expected = auth_v1::expected(wire.method, &all, &secret);
        judge(signature, &expected.signature, &expected.string_to_sign)
    }

    fn check_v3(&self, wire: &Wire<'_>, issued: &Sessions) -> Result<(), Refusal> {
        let get = |name: &str| {
            let value = wire.header(name).filter(|value| !value.is_empty());
            value.ok_or_else(|| Refusal::missing(name))
        };
        let header = get("authorization")?;
        let incomplete = || Refusal::new(400, "IncompleteSignature");
        let authorization = Authorization::parse(header).ok_or_else(incomplete)?;
        get("x-acs-action")?;
        get("x-acs-signature-nonce")?;
        self.check_version(get("x-acs-version")?)?;
        self.check_time(get("x-acs-date")?)?;
        let must = |name: &str| name == "host" || name.starts_with("x-acs-");
        let unsigned = wire
            .headers
            .keys()
            .any(|name| must(name) && !authorization.signed_headers.contains(&name.as_str()));
        if unsigned {
            return Err(incomplete());
        }
        let token = wire.header("x-acs-security-token");
        let secret = self.secret(authorization.key_id, token, issued)?;
        let body_hash = auth_v3::hash(wire.body);
        let signed = Signed {
            method: wire.method,
            query: &wire.query,
            headers: &wire.headers,
            body_hash: &body_hash,
        };
        let expected = signed.expected(&authorization.signed_headers, &secret);
        let claimed = get("x-acs-content-sha256")?;
        let right = if claimed == body_hash {
            &expected.signature
        } else {
            ""
        };
        judge(authorization.signature, right, &expected.string_to_sign)
    }

    fn check_version(&self, version: &str) -> Result<(), Refusal> {
        if version == self.version {
            return Ok(());
        }
        Err(Refusal::new(400, "InvalidVersion"))
    }

    fn check_time(&self, text: &str) -> Result<(), Refusal> {
        let strict = text.len() == "2026-01-15T08:00:00Z".len() && text.ends_with('Z');
        let time: Option<Timestamp> = text.parse().ok().filter(|_| strict);
        let time = time.ok_or_else(|| Refusal::new(400, "InvalidTimeStamp.Format"))?;
        if until(time, self.now).max(until(self.now, time)) > SKEW {
            return Err(Refusal::new(400, "InvalidTimeStamp.Expired")
                .because("Specified time stamp or date value is expired."));
        }
        Ok(())
    }

    fn secret(&self, key: &str, token: Option<&str>, issued: &Sessions) -> Result<String, Refusal> {
        if self
            .config
            .inactive_keys
            .iter()
            .any(|inactive| inactive == key)
        {
            return Err(Refusal::new(400, "InvalidAccessKeyId.Inactive"));
        }
        let life = self.config.metadata.credential_life;
        match issued.get(key) {
            Some(session) => session.secret_for(token, self.now),
            None => self.keys.secret_of(key, token, self.now, life),
        }
    }
}

fn judge(signature: &str, expected: &str, string_to_sign: &str) -> Result<(), Refusal> {
    if signature == expected {
        return Ok(());
    }
    Err(Refusal::new(400, "SignatureDoesNotMatch").because(format!(
        "Specified signature is not matched with our calculation. server string to sign \
         is:{string_to_sign}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_good_again_after_31_minutes() {
        let mut nonces = Nonces::default();
        let at = |minute: i64| Timestamp::from_second(minute * 60).unwrap();
        assert!(nonces.take("n", at(0)));
        assert!(!nonces.take("n", at(30)));
        assert!(nonces.take("n", at(31)));
    }
}
