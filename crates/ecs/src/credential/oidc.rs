//! A role assumed with the OIDC token of a service account (RAM Roles for Service Accounts, RRSA).

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use secrecy::SecretString;

use super::{CredentialError, CredentialProvider, Credentials, RoleSession, Sts, key};

/// The maximum length that the service accepts.
const MAX_TOKEN_LENGTH: usize = 20_000;

/// Credentials of the role. Every [`CredentialProvider::provide`] calls the service: wrap it in a [`super::Cache`].
#[derive(Debug)]
pub struct OidcRole {
    sts: Arc<Sts>,
    provider_arn: String,
    token_file: PathBuf,
    session: RoleSession,
}

impl OidcRole {
    /// The role that the token in the file may assume through this identity provider.
    pub fn new(sts: Arc<Sts>, provider_arn: String, token_file: PathBuf, session: RoleSession) -> Self {
        Self {
            sts,
            provider_arn,
            token_file,
            session,
        }
    }

    /// Reads the current token: it is replaced before it expires.
    async fn token(&self) -> Result<SecretString, CredentialError> {
        let path = &self.token_file;
        let invalid = |why| CredentialError::InvalidToken {
            path: path.clone(),
            why,
        };
        let bytes = tokio::fs::read(path).await;
        let bytes = bytes.map_err(|source| CredentialError::Unreadable {
            path: path.clone(),
            source,
        })?;
        let token = key::parse(&path.display().to_string(), "the OIDC token", &bytes, key::SECRET)?;
        let token = token.ok_or_else(|| invalid("it is empty"))?;
        if token.len() > MAX_TOKEN_LENGTH {
            return Err(invalid("it is longer than 20000 bytes"));
        }
        if token.split('.').count() != 3 {
            return Err(invalid("a token has three parts, separated by dots"));
        }
        Ok(SecretString::from(token))
    }
}

#[async_trait]
impl CredentialProvider for OidcRole {
    async fn provide(&self) -> Result<Credentials, CredentialError> {
        let (token, session) = (self.token().await?, &self.session);
        let origin = format!("the OIDC role {}", session.role_arn);
        let assumed = self.sts.assume_with_token(&self.provider_arn, &token, session, &origin);
        assumed.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerClock;
    use crate::base::SystemClock;
    use crate::sign::Scheme;

    async fn error(content: &str) -> String {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        std::fs::write(&file, content).unwrap();
        let clock = ServerClock::new(Arc::new(SystemClock));
        // An unused port: no call is made.
        let sts = Sts::new("http://127.0.0.1:9".parse().unwrap(), Scheme::V1, clock).unwrap();
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
    async fn an_invalid_token_file_is_reported_without_its_content() {
        assert!(error(" \n").await.ends_with("it is empty"));
        let text = error("hunter2.\u{200b}.x").await;
        assert!(
            text.contains("U+200B at position 9") && !text.contains("hunter"),
            "{text}"
        );
        let text = error("hunter2.hunter3").await;
        assert!(text.contains("three parts") && !text.contains("hunter"));
        assert!(error(&"x".repeat(20_001)).await.contains("longer"));
    }
}
