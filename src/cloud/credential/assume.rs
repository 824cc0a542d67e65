//! A role that is assumed with other credentials: of another account, or with fewer rights.

use std::sync::Arc;

use async_trait::async_trait;

use super::renewal::others_than;
use super::{CredentialError, Credentials, Provide, RoleSession, Sts};

/// The role, by way of a source that may assume it. Every call costs one of the service: put a cache
/// before it.
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
    async fn provide(&self) -> Result<Option<Credentials>, CredentialError> {
        let base = self.base.provide().await;
        let base = base
            .and_then(|base| {
                base.ok_or_else(|| CredentialError::Missing("none to assume it with".to_owned()))
            })
            .map_err(|error| self.cannot(error))?;
        let error = match self.assume(&base).await {
            Ok(assumed) => return Ok(Some(assumed)),
            Err(error) => error,
        };
        // The key that signs may itself be a temporary one, or have been replaced.
        if error.is_about_the_key()
            && let Ok(Some(other)) = others_than(&base, &*self.base).await
        {
            let assumed = self.assume(&other).await;
            return assumed.map(Some).map_err(|error| self.cannot(error));
        }
        Err(self.cannot(error))
    }

    fn refused(&self, credentials: &Credentials) {
        self.base.refused(credentials);
    }
}
