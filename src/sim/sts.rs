//! The Security Token Service: who may assume which role, and the temporary keys that are out.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::Value;

use super::config::Sts;
use super::ids::Rng;
use super::log::{Entry, Outcome, Via};
use super::reply::Refusal;
use super::spread::after;
use super::world::World;

/// What the service gives at least, at most, and unless asked.
const DURATIONS: std::ops::RangeInclusive<u64> = 900..=43_200;
const HOUR: u64 = 3600;
/// The longest token that is taken, and the shortest.
const TOKEN_LENGTHS: std::ops::RangeInclusive<usize> = 4..=20_000;
/// How long an expired key is still known to have existed.
const REMEMBERED: Duration = Duration::from_hours(24);

/// An action of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StsAction {
    AssumeRole,
    AssumeRoleWithOidc,
    GetCallerIdentity,
}

impl StsAction {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "AssumeRole" => Some(Self::AssumeRole),
            "AssumeRoleWithOIDC" => Some(Self::AssumeRoleWithOidc),
            "GetCallerIdentity" => Some(Self::GetCallerIdentity),
            _ => None,
        }
    }
}

/// A temporary key that is out.
#[derive(Clone)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) token: String,
    pub(crate) expires: Timestamp,
    /// `acs:ram::UID:role/NAME`.
    pub(crate) role: String,
    pub(crate) name: String,
}

/// The keys that are out. Debug prints none of them.
#[derive(Default)]
pub(crate) struct Sessions(BTreeMap<String, Session>);

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sessions({})", self.0.len())
    }
}

impl Sessions {
    pub(crate) fn get(&self, id: &str) -> Option<&Session> {
        self.0.get(id)
    }

    /// Lets all that are out end now; how many there were.
    pub(crate) fn expire(&mut self, now: Timestamp) -> usize {
        let live = self.0.values_mut().filter(|one| one.expires > now);
        live.map(|one| one.expires = now).count()
    }

    fn issue(&mut self, rng: &mut Rng, now: Timestamp, wanted: &Wanted) -> Session {
        self.0.retain(|_, old| after(old.expires, REMEMBERED) > now);
        let session = Session {
            id: format!("STS.{}", rng.word(24)),
            secret: rng.word(44),
            token: format!("CAIS{}", rng.word(160)),
            expires: after(now, wanted.life),
            role: wanted.role.clone(),
            name: wanted.name.clone(),
        };
        self.0.insert(session.id.clone(), session.clone());
        session
    }
}

/// What is asked for, once it is believed.
struct Wanted {
    role: String,
    name: String,
    life: Duration,
}

/// The parameters of a call.
pub(crate) type Params = BTreeMap<String, String>;

impl World {
    /// `AssumeRole`, of a caller whose signature is right.
    pub(crate) fn assume_role(
        &mut self,
        now: Timestamp,
        params: &Params,
        sessions: &mut Sessions,
    ) -> Result<Session, Refusal> {
        self.advance(now);
        let config = &self.config.sts;
        let wanted = wanted(config, params)?;
        let denied = self.config.denied.iter().any(|d| d == "AssumeRole");
        let given = params.get("ExternalId");
        if denied || (config.external_id.is_some() && config.external_id.as_ref() != given) {
            return Err(Refusal::new(403, "NoPermission").because(
                "No permission perform sts:AssumeRole on this Role. Maybe you are not authorized to \
                 perform sts:AssumeRole or the specified role does not trust you.",
            ));
        }
        Ok(sessions.issue(&mut self.rng, self.now, &wanted))
    }

    /// `AssumeRoleWithOIDC`: not signed, the token is what is believed.
    pub(crate) fn assume_role_with_oidc(
        &mut self,
        now: Timestamp,
        params: &Params,
        sessions: &mut Sessions,
    ) -> Result<(Session, Value), Refusal> {
        self.advance(now);
        let config = &self.config.sts;
        let provider = needed(params, "OIDCProviderArn")?;
        let token = needed(params, "OIDCToken")?;
        let wanted = wanted(config, params)?;
        if !config.oidc_providers.iter().any(|known| known == provider) {
            return Err(Refusal::new(401, "AuthenticationFail.NoPermission")
                .because("No such OIDC Provider registered."));
        }
        let claims = claims(token)?;
        let expires = claims["exp"].as_i64().ok_or_else(|| {
            invalid_token("The Jwt content is invalid that cannot be recognized.")
        })?;
        if expires <= now.as_second() {
            return Err(Refusal::new(401, "AuthenticationFail.OIDCToken.Expired")
                .because("This JsonWebToken is expired."));
        }
        Ok((sessions.issue(&mut self.rng, self.now, &wanted), claims))
    }

    /// Notes a call of the service in the log, without the token; its request id.
    pub(crate) fn note_sts(
        &mut self,
        now: Timestamp,
        (action, via, nonce): (&str, Via, Option<String>),
        params: &Params,
        refusal: Option<&Refusal>,
    ) -> String {
        self.advance(now);
        let request_id = self.rng.request_id();
        let mut params = params.clone();
        params.remove("OIDCToken");
        let entry = Entry {
            seq: 0,
            at: self.now,
            action: action.to_owned(),
            params,
            via,
            nonce,
            status: None,
            code: None,
            spoilt: false,
            made: None,
            request_id: request_id.clone(),
        };
        let seq = self.log.open(entry, self.config.rules.log_length);
        let outcome = Outcome {
            refusal: refusal.map(|refusal| (refusal.status, refusal.code.as_str())),
            ..Outcome::default()
        };
        self.log.close(seq, outcome);
        request_id
    }
}

fn needed<'a>(params: &'a Params, name: &str) -> Result<&'a str, Refusal> {
    let value = params.get(name).filter(|value| !value.is_empty());
    value
        .map(String::as_str)
        .ok_or_else(|| Refusal::missing(name))
}

fn wanted(config: &Sts, params: &Params) -> Result<Wanted, Refusal> {
    let wrong = |name: &str| {
        Refusal::new(400, format!("InvalidParameter.{name}"))
            .because(format!("The parameter {name} is wrongly formed."))
    };
    let role = needed(params, "RoleArn")?;
    let name = needed(params, "RoleSessionName")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || ".@-_".contains(c);
    if !(2..=64).contains(&name.len()) || !name.chars().all(plain) {
        return Err(wrong("RoleSessionName"));
    }
    if !role.starts_with("acs:ram::") || !role.contains(":role/") {
        return Err(wrong("RoleArn"));
    }
    let seconds = match params.get("DurationSeconds") {
        None => HOUR,
        Some(text) => {
            let seconds = text.parse().ok();
            let seconds = seconds.filter(|seconds| DURATIONS.contains(seconds));
            seconds.ok_or_else(|| wrong("DurationSeconds"))?
        }
    };
    if !config.roles.iter().any(|known| known == role) {
        return Err(
            Refusal::new(404, "EntityNotExist.Role").because("The specified role does not exist.")
        );
    }
    let life = if config.life.is_zero() {
        Duration::from_secs(seconds)
    } else {
        config.life
    };
    Ok(Wanted {
        role: role.to_owned(),
        name: name.to_owned(),
        life,
    })
}

fn invalid_token(why: &str) -> Refusal {
    Refusal::new(401, "AuthenticationFail.OIDCToken.Invalid").because(why)
}

/// The claims of a token. Its signature is taken for good: there is no provider to ask for a key.
fn claims(token: &str) -> Result<Value, Refusal> {
    let parts: Vec<&str> = token.split('.').collect();
    let [header, payload, _] = parts.as_slice() else {
        return Err(invalid_token(
            "The number of Jwt field should be divided into 3 parts with '.' .",
        ));
    };
    if !TOKEN_LENGTHS.contains(&token.len()) {
        return Err(invalid_token("The Jwt is too long."));
    }
    let read = |part: &str| {
        let bytes = URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).ok()?;
        let value: Value = serde_json::from_slice(&bytes).ok()?;
        value.is_object().then_some(value)
    };
    let unreadable = || invalid_token("The Jwt content is invalid that cannot be recognized.");
    read(header).ok_or_else(unreadable)?;
    read(payload).ok_or_else(unreadable)
}
