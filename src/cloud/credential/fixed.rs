//! Credentials that are given once: the fake cloud's, or a test's.

use async_trait::async_trait;

use super::{CredentialError, Credentials, Provide};

#[derive(Debug, Clone)]
pub struct Fixed(pub Credentials);

#[async_trait]
impl Provide for Fixed {
    async fn provide(&self) -> Result<Option<Credentials>, CredentialError> {
        Ok(Some(self.0.clone()))
    }
}
