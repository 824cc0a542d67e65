//! Access keys and where they come from.

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
mod instance;
mod oidc;
mod select;
mod sts;

pub use assume::AssumedRole;
pub use cache::Cache;
pub use directory::Directory;
pub use environment::Environment;
pub use error::CredentialError;
pub use instance::InstanceRole;
pub use oidc::OidcRole;
pub use select::{Assume, Oidc, SelectError, Selected, Selection, Sources, select};
pub use sts::{RoleSession, Sts};

/// An access key, with a token where it is a temporary one. Debug prints none of it.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// `AccessKeyId`: not secret by itself, yet it never goes into a log either.
    pub access_key_id: SecretString,
    pub secret: SecretString,
    /// `SecurityToken` of STS credentials.
    pub security_token: Option<SecretString>,
    /// When temporary credentials end; none for those that last, and where it is not told.
    pub expires: Option<Timestamp>,
    /// Where they come from, in words for logs and errors: "the environment".
    pub origin: Arc<str>,
}

#[async_trait]
pub trait Provide: Debug + Send + Sync {
    /// The credentials to sign with now.
    async fn provide(&self) -> Result<Credentials, CredentialError>;

    /// Says that the cloud refused a call for these credentials: whoever keeps exactly these forgets
    /// them, so that the next [`Provide::provide`] brings others. Newer ones are left alone.
    fn refused(&self, _credentials: &Credentials) {}
}

impl Credentials {
    /// A long-lived access key.
    pub fn new(access_key_id: impl Into<String>, secret: impl Into<String>) -> Self {
        Self {
            access_key_id: access_key_id.into().into(),
            secret: secret.into().into(),
            security_token: None,
            expires: None,
            origin: Arc::from("the settings"),
        }
    }

    /// With the place that they come from.
    pub fn from_origin(mut self, origin: impl Into<Arc<str>>) -> Self {
        self.origin = origin.into();
        self
    }

    /// Whether key, secret and token are the same. Both sides are ours: the time that it takes tells nobody anything.
    pub fn same_as(&self, other: &Self) -> bool {
        let parts = |of: &Self| {
            let token = of.security_token.as_ref();
            [Some(&of.access_key_id), Some(&of.secret), token]
                .map(|part| part.map(|part| part.expose_secret().to_owned()))
        };
        parts(self) == parts(other)
    }
}

/// Credentials that never change: those of the fake cloud, or of a test.
#[async_trait]
impl Provide for Credentials {
    async fn provide(&self) -> Result<Self, CredentialError> {
        Ok(self.clone())
    }
}

/// Pairs up what was found: both, neither, or an error that names the missing half.
fn assemble(
    place: &str,
    id: (&str, Option<String>),
    secret: (&str, Option<String>),
    token: Option<String>,
) -> Result<Option<Credentials>, CredentialError> {
    let incomplete = |present: &str, absent: &str| CredentialError::Incomplete {
        place: place.to_owned(),
        present: present.to_owned(),
        absent: absent.to_owned(),
    };
    match (id.1, secret.1) {
        (Some(id), Some(secret)) => {
            let mut credentials = Credentials::new(id, secret).from_origin(place);
            credentials.security_token = token.map(Into::into);
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
    fn credentials_are_the_same_when_key_secret_and_token_are() {
        let one = Credentials::new("k", "s");
        let mut other = one.clone();
        assert!(one.same_as(&other.clone().from_origin("elsewhere")));
        other.security_token = Some("t".to_owned().into());
        assert!(!one.same_as(&other));
    }
}
