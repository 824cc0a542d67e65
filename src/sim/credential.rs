//! Who may sign: the configured key, and the rotating credentials of the instances' RAM role.

use std::time::Duration;

use jiff::Timestamp;

use super::ids::Rng;
use super::options::Secret;
use super::reply::Refusal;
use super::spread::{after, until};
use super::sts::Session;

/// The keys that are known.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) id: Secret,
    pub(crate) secret: Secret,
    pub(crate) seed: u64,
}

impl Session {
    /// The secret that this key signs with, when the token is its own and it has not ended.
    pub(crate) fn secret_for(
        &self,
        token: Option<&str>,
        now: Timestamp,
    ) -> Result<String, Refusal> {
        check_token(token, &self.token, self.expires, now)?;
        Ok(self.secret.clone())
    }
}

fn check_token(
    token: Option<&str>,
    own: &str,
    expires: Timestamp,
    now: Timestamp,
) -> Result<(), Refusal> {
    let code = match token {
        None => "MissingSecurityToken",
        Some(token) if !token.starts_with("CAIS") => "InvalidSecurityToken.Malformed",
        Some(token) if token != own => "InvalidSecurityToken.MismatchWithAccessKey",
        Some(_) if expires <= now => "InvalidSecurityToken.Expired",
        Some(_) => return Ok(()),
    };
    Err(Refusal::new(400, code))
}

/// Temporary credentials, as a role gives them.
pub(crate) struct Temporary {
    pub(crate) id: String,
    pub(crate) secret: String,
    pub(crate) token: String,
    pub(crate) issued: Timestamp,
    pub(crate) expires: Timestamp,
}

/// How many periods back an expired credential is still known to have existed.
const REMEMBERED: i64 = 64;

impl Keys {
    /// The role's credentials that are handed out now: new ones at half the life of the old.
    pub(crate) fn role(&self, now: Timestamp, life: Duration) -> Temporary {
        self.role_of(period(now, life), life)
    }

    fn role_of(&self, period: i64, life: Duration) -> Temporary {
        let mut rng = Rng::new(self.seed ^ 0x5EC0_0D5E ^ period.unsigned_abs().rotate_left(17));
        let issued = Timestamp::from_second(period.saturating_mul(half(life)));
        let issued = issued.unwrap_or(Timestamp::MAX);
        Temporary {
            id: format!("STS.{}", rng.word(24)),
            secret: rng.word(44),
            token: format!("CAIS{}", rng.word(120)),
            issued,
            expires: after(issued, life),
        }
    }

    /// The secret that this key signs with, when key and token go together and are good.
    pub(crate) fn secret_of(
        &self,
        id: &str,
        token: Option<&str>,
        now: Timestamp,
        life: Duration,
    ) -> Result<String, Refusal> {
        let mismatch = || Refusal::new(400, "InvalidSecurityToken.MismatchWithAccessKey");
        if id == self.id.expose() {
            return match token {
                None => Ok(self.secret.expose().to_owned()),
                Some(_) => Err(mismatch()),
            };
        }
        let unknown = || {
            Refusal::new(404, "InvalidAccessKeyId.NotFound")
                .because("Specified access key is not found.")
        };
        if !id.starts_with("STS.") {
            return Err(unknown());
        }
        let last = period(now, life);
        let mut known = (last - REMEMBERED..=last).map(|period| self.role_of(period, life));
        let temporary = known.find(|t| t.id == id).ok_or_else(unknown)?;
        check_token(token, &temporary.token, temporary.expires, now)?;
        Ok(temporary.secret)
    }
}

fn half(life: Duration) -> i64 {
    i64::try_from(life.as_secs() / 2).unwrap_or(i64::MAX).max(1)
}

fn period(now: Timestamp, life: Duration) -> i64 {
    let since = until(Timestamp::UNIX_EPOCH, now).as_secs();
    i64::try_from(since).unwrap_or(i64::MAX) / half(life)
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
        match keys.secret_of(id, token, now, LIFE) {
            Ok(_) => "ok".to_owned(),
            Err(refusal) => refusal.code,
        }
    }

    #[test]
    fn role_credentials_rotate_and_the_old_ones_are_good_until_they_expire() {
        let keys = keys();
        let old = keys.role(at(0), LIFE);
        let new = keys.role(at(1800), LIFE);
        assert_ne!(old.id, new.id);
        assert_eq!(code(&keys, &old.id, Some(&old.token), at(1800)), "ok");
        let expired = code(&keys, &old.id, Some(&old.token), at(3600));
        assert_eq!(expired, "InvalidSecurityToken.Expired");
    }

    #[test]
    fn key_and_token_must_go_together() {
        let keys = keys();
        let role = keys.role(at(0), LIFE);
        assert_eq!(code(&keys, &role.id, None, at(0)), "MissingSecurityToken");
        let mismatch = "InvalidSecurityToken.MismatchWithAccessKey";
        assert_eq!(code(&keys, &role.id, Some("CAISx"), at(0)), mismatch);
        let malformed = "InvalidSecurityToken.Malformed";
        assert_eq!(code(&keys, &role.id, Some("x"), at(0)), malformed);
        assert_eq!(
            code(&keys, keys.id.expose(), Some(&role.token), at(0)),
            mismatch
        );
        assert_eq!(code(&keys, keys.id.expose(), None, at(0)), "ok");
        let unknown = "InvalidAccessKeyId.NotFound";
        assert_eq!(code(&keys, "LTAI5tOTHER", None, at(0)), unknown);
        assert_eq!(code(&keys, "STS.other", Some("CAIS"), at(0)), unknown);
    }
}
