//! Credentials and their providers.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};

mod assume;
mod cache;
mod directory;
mod environment;
mod error;
pub(crate) mod instance;
mod key;
mod oidc;
mod sts;

pub use assume::AssumedRole;
pub use cache::Cache;
pub use directory::Directory;
pub use environment::Environment;
pub use error::CredentialError;
pub use instance::InstanceRole;
pub use oidc::OidcRole;
pub use sts::{RoleSession, Sts};

/// An access key, with a security token if it is temporary. Debug redacts it.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// `AccessKeyId`: not secret, but never logged.
    pub access_key_id: SecretString,
    pub access_key_secret: SecretString,
    /// `SecurityToken` of STS credentials.
    pub security_token: Option<SecretString>,
    /// None for long-lived credentials, and for temporary ones of unknown lifetime.
    pub expires: Option<Timestamp>,
    /// A description of the source for logs and errors, such as "the environment".
    pub origin: Arc<str>,
}

#[async_trait]
pub trait CredentialProvider: Debug + Send + Sync {
    /// The credentials to sign with now.
    async fn provide(&self) -> Result<Credentials, CredentialError>;

    /// Reports that the cloud rejected these credentials: a cache drops them if it still holds exactly these, so that
    /// the next [`CredentialProvider::provide`] returns others.
    fn invalidate(&self, _credentials: &Credentials) {}
}

impl Credentials {
    /// A long-lived access key.
    pub fn new(access_key_id: impl Into<String>, secret: impl Into<String>) -> Self {
        Self {
            access_key_id: access_key_id.into().into(),
            access_key_secret: secret.into().into(),
            security_token: None,
            expires: None,
            origin: Arc::from("the settings"),
        }
    }

    pub fn with_origin(mut self, origin: impl Into<Arc<str>>) -> Self {
        self.origin = origin.into();
        self
    }

    /// Whether key, secret and token are equal. Not in constant time: both sides are the client's own.
    pub fn is_same_as(&self, other: &Self) -> bool {
        let parts = |key: &Self| {
            let token = key.security_token.as_ref();
            [Some(&key.access_key_id), Some(&key.access_key_secret), token]
                .map(|part| part.map(|part| part.expose_secret().to_owned()))
        };
        parts(self) == parts(other)
    }
}

/// Static credentials: those of the fake cloud, or of a test.
#[async_trait]
impl CredentialProvider for Credentials {
    async fn provide(&self) -> Result<Self, CredentialError> {
        Ok(self.clone())
    }
}

/// A name, and what was found under it.
type Part<'a> = (&'a str, Option<Vec<u8>>);

/// The credentials of an id and a secret, none without both, or an error that names the missing or malformed one.
fn from_parts(place: &str, [id, secret, token]: &[Part<'_>; 3]) -> Result<Option<Credentials>, CredentialError> {
    let parse = |(name, bytes): &Part<'_>, punctuation| match bytes {
        Some(bytes) => key::parse(place, name, bytes, punctuation),
        None => Ok(None),
    };
    let incomplete = |present: &str, absent: &str| CredentialError::Incomplete {
        place: place.to_owned(),
        present: present.to_owned(),
        absent: absent.to_owned(),
    };
    match (parse(id, key::ID)?, parse(secret, key::SECRET)?) {
        (Some(id), Some(secret)) => {
            let mut credentials = Credentials::new(id, secret).with_origin(place);
            credentials.security_token = parse(token, key::SECRET)?.map(Into::into);
            Ok(Some(credentials))
        }
        (None, None) => Ok(None),
        (Some(_), None) => Err(incomplete(id.0, secret.0)),
        (None, Some(_)) => Err(incomplete(secret.0, id.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_prints_no_part_of_a_credential() {
        let mut credentials = Credentials::new("LTAI5tKEY", "hunter2");
        credentials.security_token = Some("CAIStoken".to_owned().into());
        let text = format!("{credentials:?}");
        for part in ["LTAI5tKEY", "hunter2", "CAIStoken"] {
            assert!(!text.contains(part), "{text}");
        }
    }

    #[test]
    fn credentials_are_the_same_if_key_secret_and_token_are() {
        let one = Credentials::new("k", "s");
        let mut other = one.clone();
        assert!(one.is_same_as(&other.clone().with_origin("elsewhere")));
        other.security_token = Some("t".to_owned().into());
        assert!(!one.is_same_as(&other));
    }
}
