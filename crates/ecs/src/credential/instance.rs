//! The RAM role of the instance, from the metadata service.

use std::sync::atomic::{AtomicBool, Ordering};

use super::environment::CONFIGURATION_ADVICE;
use super::sts::StsCredentials;
use super::{CredentialError, CredentialProvider, Credentials};
use crate::base::error_chain;
use crate::metadata::Metadata;
use async_trait::async_trait;
use serde::Deserialize;
use serde_json::Value;

/// Credentials of the instance's role. Every call sends one or two requests: wrap it in a [`super::Cache`].
#[derive(Debug)]
pub struct InstanceRole {
    metadata: Metadata,
    role: Option<String>,
    /// Whether this is the default because nothing else is configured, and it has not returned credentials: then an
    /// error lists the configuration options.
    is_unproven_default: AtomicBool,
}

impl InstanceRole {
    /// The role of this name; without a name, the role that the metadata service lists.
    pub fn new(metadata: Metadata, role: Option<String>, is_default: bool) -> Self {
        Self {
            metadata,
            role,
            is_unproven_default: AtomicBool::new(is_default),
        }
    }

    async fn fetch(&self) -> Result<Credentials, CredentialError> {
        use CredentialError::NotConfigured;
        let role = match &self.role {
            Some(role) => role.clone(),
            None => {
                let listed = self.metadata.role_name().await?;
                listed.ok_or_else(|| NotConfigured("the instance has no RAM role".to_owned()))?
            }
        };
        let document = self.metadata.role_document(&role).await?;
        let document = document.ok_or_else(|| NotConfigured(format!("the instance has no RAM role {role:?}")))?;
        parse(&document, &format!("the instance role {role}"))
    }
}

/// The credentials in the document of a role.
pub(crate) fn parse(document: &str, origin: &str) -> Result<Credentials, CredentialError> {
    let invalid = |why| CredentialError::InvalidResponse {
        from: origin.to_owned(),
        why,
    };
    // The parse error may contain a part of a secret.
    let malformed = |_: serde_json::Error| invalid("it cannot be parsed");
    let document: Value = serde_json::from_str(document).map_err(malformed)?;
    if document["Code"] != "Success" {
        return Err(invalid("its Code is not Success"));
    }
    let issued = StsCredentials::deserialize(document).map_err(malformed)?;
    issued.into_credentials(origin)
}

#[async_trait]
impl CredentialProvider for InstanceRole {
    async fn provide(&self) -> Result<Credentials, CredentialError> {
        match self.fetch().await {
            Ok(credentials) => {
                self.is_unproven_default.store(false, Ordering::Relaxed);
                Ok(credentials)
            }
            Err(error) if self.is_unproven_default.load(Ordering::Relaxed) => {
                let why = match &error {
                    CredentialError::NotConfigured(why) => why.clone(),
                    _ => error_chain(&error),
                };
                Err(CredentialError::NotConfigured(format!(
                    "{CONFIGURATION_ADVICE}; the last source, the role of the instance, failed: {why}"
                )))
            }
            Err(error) => Err(error),
        }
    }
}
