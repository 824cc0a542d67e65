//! Access keys: the configured one and the rotating credentials of the instances' RAM role.

use std::time::Duration;

use jiff::Timestamp;

use super::api_error::ApiError;
use super::distribution::{after, until};
use super::rng::Rng;
use super::secret::Secret;
use super::sts::Session;

#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) id: Secret,
    pub(crate) secret: Secret,
    pub(crate) seed: u64,
}

impl Session {
    /// The secret of this key.
    ///
    /// # Errors
    /// If the token does not match or has expired.
    pub(crate) fn secret_for(&self, token: Option<&str>, now: Timestamp) -> Result<String, ApiError> {
        check_token(token, &self.token, self.expires, now)?;
        Ok(self.secret.clone())
    }
}

fn check_token(token: Option<&str>, own: &str, expires: Timestamp, now: Timestamp) -> Result<(), ApiError> {
    let code = match token {
        None => "MissingSecurityToken",
        Some(token) if !token.starts_with("CAIS") => "InvalidSecurityToken.Malformed",
        Some(token) if token != own => "InvalidSecurityToken.MismatchWithAccessKey",
        Some(_) if expires <= now => "InvalidSecurityToken.Expired",
        Some(_) => return Ok(()),
    };
    Err(ApiError::new(400, code))
}

pub(crate) struct TemporaryCredentials {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) token: String,
    pub(crate) issued: Timestamp,
    pub(crate) expires: Timestamp,
}

/// How many rotations back an expired credential is still recognized as expired.
const KEPT_PERIODS: i64 = 64;

impl Keys {
    /// The role's current credentials, rotated after half of their lifetime.
    pub(crate) fn role(&self, now: Timestamp, lifetime: Duration) -> TemporaryCredentials {
        self.role_credentials_of(period(now, lifetime), lifetime)
    }

    fn role_credentials_of(&self, period: i64, lifetime: Duration) -> TemporaryCredentials {
        let mut rng = Rng::new(self.seed ^ 0x5EC0_0D5E ^ period.unsigned_abs().rotate_left(17));
        let issued = Timestamp::from_second(period.saturating_mul(half(lifetime)));
        let issued = issued.unwrap_or(Timestamp::MAX);
        TemporaryCredentials {
            id: format!("STS.{}", rng.word(24)),
            secret: rng.word(44),
            token: format!("CAIS{}", rng.word(120)),
            issued,
            expires: after(issued, lifetime),
        }
    }

    /// The secret of an access key.
    ///
    /// # Errors
    /// If the key is unknown, or the token does not match or has expired.
    pub(crate) fn secret_key(
        &self,
        id: &str,
        token: Option<&str>,
        now: Timestamp,
        lifetime: Duration,
    ) -> Result<String, ApiError> {
        let mismatch = || ApiError::new(400, "InvalidSecurityToken.MismatchWithAccessKey");
        if id == self.id.expose() {
            return match token {
                None => Ok(self.secret.expose().to_owned()),
                Some(_) => Err(mismatch()),
            };
        }
        let unknown =
            || ApiError::new(404, "InvalidAccessKeyId.NotFound").with_message("Specified access key is not found.");
        if !id.starts_with("STS.") {
            return Err(unknown());
        }
        let last = period(now, lifetime);
        let mut known = (last - KEPT_PERIODS..=last).map(|period| self.role_credentials_of(period, lifetime));
        let temporary = known.find(|t| t.id == id).ok_or_else(unknown)?;
        check_token(token, &temporary.token, temporary.expires, now)?;
        Ok(temporary.secret)
    }
}

fn half(lifetime: Duration) -> i64 {
    i64::try_from(lifetime.as_secs() / 2).unwrap_or(i64::MAX).max(1)
}

fn period(now: Timestamp, lifetime: Duration) -> i64 {
    let since = until(Timestamp::UNIX_EPOCH, now).as_secs();
    i64::try_from(since).unwrap_or(i64::MAX) / half(lifetime)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFE: Duration = Duration::from_secs(3600);

    fn keys() -> Keys {
        Keys {
            id: "LTAI5tEXAMPLE".parse().unwrap(),
            secret: "s".parse().unwrap(),
            seed: 1,
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn code(keys: &Keys, id: &str, token: Option<&str>, now: Timestamp) -> String {
        match keys.secret_key(id, token, now, LIFE) {
            Ok(_) => "ok".to_owned(),
            Err(error) => error.code,
        }
    }

    #[test]
    fn role_credentials_rotate_and_old_ones_are_valid_until_they_expire() {
        let keys = keys();
        let old = keys.role(at(0), LIFE);
        let new = keys.role(at(1800), LIFE);
        assert_ne!(old.id, new.id);
        assert_eq!(code(&keys, &old.id, Some(&old.token), at(1800)), "ok");
        let expired = code(&keys, &old.id, Some(&old.token), at(3600));
        assert_eq!(expired, "InvalidSecurityToken.Expired");
    }

    #[test]
    fn key_and_token_must_match() {
        let keys = keys();
        let role = keys.role(at(0), LIFE);
        assert_eq!(code(&keys, &role.id, None, at(0)), "MissingSecurityToken");
        let mismatch = "InvalidSecurityToken.MismatchWithAccessKey";
        assert_eq!(code(&keys, &role.id, Some("CAISx"), at(0)), mismatch);
        let malformed = "InvalidSecurityToken.Malformed";
        assert_eq!(code(&keys, &role.id, Some("x"), at(0)), malformed);
        assert_eq!(code(&keys, keys.id.expose(), Some(&role.token), at(0)), mismatch);
        assert_eq!(code(&keys, keys.id.expose(), None, at(0)), "ok");
        let unknown = "InvalidAccessKeyId.NotFound";
        assert_eq!(code(&keys, "LTAI5tOTHER", None, at(0)), unknown);
        assert_eq!(code(&keys, "STS.other", Some("CAIS"), at(0)), unknown);
    }
}
