//! A role that is assumed with other credentials: of another account, or with fewer rights.

use std::sync::Arc;

use async_trait::async_trait;

use super::{CredentialError, Credentials, Provide, RoleSession, Sts};

/// The role, by way of a source that may assume it. Every call costs one of the service: put a cache before it.
#[derive(Debug)]
pub struct AssumedRole {
    base: Arc<dyn Provide>,
    sts: Arc<Sts>,
    session: RoleSession,
}

impl AssumedRole {
    /// The role that the credentials of `base` may assume.
    pub fn new(base: Arc<dyn Provide>, sts: Arc<Sts>, session: RoleSession) -> Self {
        Self { base, sts, session }
    }

    async fn assume(&self, base: &Credentials) -> Result<Credentials, CredentialError> {
        let role = &self.session.role_arn;
        let origin = format!("role {role}, assumed with {}", base.origin);
        self.sts.assume(base, &self.session, &origin).await
    }

    fn cannot(&self, source: CredentialError) -> CredentialError {
        CredentialError::Base {
            role: self.session.role_arn.clone(),
            source: Box::new(source),
        }
    }
}

#[async_trait]
impl Provide for AssumedRole {
    async fn provide(&self) -> Result<Credentials, CredentialError> {
        let base = self.base.provide().await;
        let base = base.map_err(|error| self.cannot(error))?;
        let mut assumed = self.assume(&base).await;
        // The key that signs may itself be a temporary one, or have been replaced.
        if assumed
            .as_ref()
            .is_err_and(CredentialError::is_about_the_key)
        {
            self.base.refused(&base);
            if let Ok(other) = self.base.provide().await
                && !other.same_as(&base)
            {
                assumed = self.assume(&other).await;
            }
        }
        assumed.map_err(|error| self.cannot(error))
    }

    fn refused(&self, credentials: &Credentials) {
        self.base.refused(credentials);
    }
}
