//! The Security Token Service: roles and temporary credentials.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde_json::Value;

use super::advance::advance;
use super::api_error::ApiError;
use super::config::Sts;
use super::distribution::after;
use super::params::Params;
use super::rng::Rng;
use super::world::World;

const DURATIONS: std::ops::RangeInclusive<u64> = 900..=43_200;
const HOUR: u64 = 3600;
/// Valid lengths of an OIDC token.
const TOKEN_LENGTHS: std::ops::RangeInclusive<usize> = 4..=20_000;
/// How long an expired key is still recognized as expired.
const KEPT_PERIODS: Duration = Duration::from_hours(24);

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

/// Issued credentials. `Debug` prints none of them.
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

    /// Expires all valid credentials and returns their number.
    pub(crate) fn expire(&mut self, now: Timestamp) -> usize {
        let live = self.0.values_mut().filter(|one| one.expires > now);
        live.map(|one| one.expires = now).count()
    }

    fn issue(&mut self, rng: &mut Rng, now: Timestamp, wanted: &AssumeRequest) -> Session {
        self.0.retain(|_, old| after(old.expires, KEPT_PERIODS) > now);
        let session = Session {
            id: format!("STS.{}", rng.word(24)),
            secret: rng.word(44),
            token: format!("CAIS{}", rng.word(160)),
            expires: after(now, wanted.lifetime),
            role: wanted.role.clone(),
            name: wanted.name.clone(),
        };
        self.0.insert(session.id.clone(), session.clone());
        session
    }
}

struct AssumeRequest {
    role: String,
    name: String,
    lifetime: Duration,
}

/// `AssumeRole`, for an authenticated caller.
pub(crate) fn assume_role(
    world: &mut World,
    now: Timestamp,
    params: &Params,
    sessions: &mut Sessions,
) -> Result<Session, ApiError> {
    advance(world, now);
    let config = &world.config.sts;
    let wanted = wanted(config, params)?;
    let denied = world.config.denied.iter().any(|d| d == "AssumeRole");
    let given = params.get("ExternalId");
    if denied || (config.external_id.is_some() && config.external_id.as_deref() != given) {
        return Err(ApiError::new(403, "NoPermission").with_message(
            "No permission perform sts:AssumeRole on this Role. Maybe you are not authorized to \
             perform sts:AssumeRole or the specified role does not trust you.",
        ));
    }
    Ok(sessions.issue(&mut world.rng, world.now, &wanted))
}

/// `AssumeRoleWithOIDC`: not signed, authenticated by its token.
pub(crate) fn assume_role_with_oidc(
    world: &mut World,
    now: Timestamp,
    params: &Params,
    sessions: &mut Sessions,
) -> Result<(Session, Value), ApiError> {
    advance(world, now);
    let config = &world.config.sts;
    let provider = params.required("OIDCProviderArn")?;
    let token = params.required("OIDCToken")?;
    let wanted = wanted(config, params)?;
    if !config.oidc_providers.iter().any(|known| known == provider) {
        return Err(
            ApiError::new(401, "AuthenticationFail.NoPermission").with_message("No such OIDC Provider registered.")
        );
    }
    let claims = claims(token)?;
    let expires = claims["exp"]
        .as_i64()
        .ok_or_else(|| invalid_token("The Jwt content is invalid that cannot be recognized."))?;
    if expires <= now.as_second() {
        return Err(
            ApiError::new(401, "AuthenticationFail.OIDCToken.Expired").with_message("This JsonWebToken is expired.")
        );
    }
    Ok((sessions.issue(&mut world.rng, world.now, &wanted), claims))
}

fn wanted(config: &Sts, params: &Params) -> Result<AssumeRequest, ApiError> {
    let wrong = |name: &str| {
        ApiError::new(400, format!("InvalidParameter.{name}"))
            .with_message(format!("The parameter {name} is wrongly formed."))
    };
    let role = params.required("RoleArn")?;
    let name = params.required("RoleSessionName")?;
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
        return Err(ApiError::new(404, "EntityNotExist.Role").with_message("The specified role does not exist."));
    }
    let lifetime = if config.lifetime.is_zero() {
        Duration::from_secs(seconds)
    } else {
        config.lifetime
    };
    Ok(AssumeRequest {
        role: role.to_owned(),
        name: name.to_owned(),
        lifetime,
    })
}

fn invalid_token(why: &str) -> ApiError {
    ApiError::new(401, "AuthenticationFail.OIDCToken.Invalid").with_message(why)
}

/// The claims of a token. Its signature is not verified, as no provider publishes a key.
fn claims(token: &str) -> Result<Value, ApiError> {
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
