//! A role assumed with other credentials (`AssumeRole`).

use std::sync::Arc;

use async_trait::async_trait;

use super::{CredentialError, CredentialProvider, Credentials, RoleSession, Sts};

/// Credentials of a role that the credentials of `base` may assume. Every [`CredentialProvider::provide`] calls the
/// service: wrap it in a [`super::Cache`].
#[derive(Debug)]
pub struct AssumedRole {
    base: Arc<dyn CredentialProvider>,
    sts: Arc<Sts>,
    session: RoleSession,
}

impl AssumedRole {
    pub fn new(base: Arc<dyn CredentialProvider>, sts: Arc<Sts>, session: RoleSession) -> Self {
        Self { base, sts, session }
    }

    async fn assume(&self, base: &Credentials) -> Result<Credentials, CredentialError> {
        let role = &self.session.role_arn;
        let origin = format!("role {role}, assumed with {}", base.origin);
        self.sts.assume(base, &self.session, &origin).await
    }

    fn error(&self, source: CredentialError) -> CredentialError {
        CredentialError::AssumeRole {
            role: self.session.role_arn.clone(),
            source: Box::new(source),
        }
    }
}

#[async_trait]
impl CredentialProvider for AssumedRole {
    async fn provide(&self) -> Result<Credentials, CredentialError> {
        let base = self.base.provide().await;
        let base = base.map_err(|error| self.error(error))?;
        let mut assumed = self.assume(&base).await;
        // The base credentials may be temporary, or have been replaced.
        if assumed.as_ref().is_err_and(CredentialError::is_key_rejected) {
            self.base.invalidate(&base);
            if let Ok(other) = self.base.provide().await
                && !other.is_same_as(&base)
            {
                assumed = self.assume(&other).await;
            }
        }
        assumed.map_err(|error| self.error(error))
    }

    fn invalidate(&self, credentials: &Credentials) {
        self.base.invalidate(credentials);
    }
}
