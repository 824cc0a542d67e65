//! A role that is assumed with an OIDC token (RRSA: a service account's role): the cluster mounts the
//! token into the pod, and no key is needed anywhere.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use secrecy::SecretString;

use super::{CredentialError, Credentials, Provide, RoleSession, Sts};

/// The service takes no longer token.
const LONGEST: usize = 20_000;

/// The role of a service account. Every call costs one of the service: put a cache before it.
#[derive(Debug)]
pub struct OidcRole {
    sts: Arc<Sts>,
    provider_arn: String,
    token_file: PathBuf,
    session: RoleSession,
    origin: String,
}

impl OidcRole {
    /// The role that the token in the file may assume, by way of this identity provider.
    pub fn new(
        sts: Arc<Sts>,
        provider_arn: String,
        token_file: PathBuf,
        session: RoleSession,
    ) -> Self {
        let origin = format!("the OIDC role {}", session.role_arn);
        Self {
            sts,
            provider_arn,
            token_file,
            session,
            origin,
        }
    }

    /// The token as it is now: the cluster replaces it long before it expires.
    async fn token(&self) -> Result<SecretString, CredentialError> {
        let path = self.token_file.clone();
        let unusable = |why| CredentialError::NoToken {
            path: path.clone(),
            why,
        };
        let text = tokio::fs::read_to_string(&path).await;
        let text = text.map_err(|source| CredentialError::Unreadable {
            path: path.clone(),
            source,
        })?;
        let token = text.trim();
        if token.is_empty() {
            return Err(unusable("it is empty"));
        }
        if token.len() > LONGEST {
            return Err(unusable("it is longer than a token may be"));
        }
        if token.split('.').count() != 3 {
            return Err(unusable("a token has three parts, divided by dots"));
        }
        Ok(SecretString::from(token.to_owned()))
    }
}

#[async_trait]
impl Provide for OidcRole {
    async fn provide(&self) -> Result<Credentials, CredentialError> {
        let token = self.token().await?;
        self.sts
            .assume_with_token(&self.provider_arn, &token, &self.session, &self.origin)
            .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::SystemClock;
    use crate::cloud::sign::Scheme;

    async fn refusal(content: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        std::fs::write(&file, content).unwrap();
        let clock = Arc::new(SystemClock);
        // Nobody listens there, and nobody is asked.
        let sts = Sts::new("http://127.0.0.1:9", Scheme::V1, clock).unwrap();
        let session = RoleSession {
            role_arn: "acs:ram::1:role/r".to_owned(),
            name: "test".to_owned(),
            duration: None,
            external_id: None,
        };
        let role = OidcRole::new(Arc::new(sts), "p".to_owned(), file, session);
        role.provide().await.unwrap_err().to_string()
    }

    #[tokio::test]
    async fn a_file_without_a_token_is_told_without_its_content() {
        assert!(refusal(" \n").await.ends_with("it is empty"));
        let text = refusal("hunter2.hunter3").await;
        assert!(text.contains("three parts") && !text.contains("hunter"));
        assert!(refusal(&"x".repeat(20_001)).await.contains("longer"));
    }
}
