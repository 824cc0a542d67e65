//! The role of the instance that this runs on, from its metadata service.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use serde::Deserialize;

use super::environment::HOW;
use super::sts::Issued;
use super::{CredentialError, Credentials, Provide};
use crate::base::chain::chain;
use crate::cloud::metadata::Metadata;

/// The role of the instance. Every call costs one or two of the service: put a cache before it.
#[derive(Debug)]
pub struct InstanceRole {
    metadata: Metadata,
    role: Option<String>,
    /// Whether it is asked only because nothing else is configured: as long as it never had any credentials, an error
    /// says what can be configured.
    last_resort: bool,
    found: AtomicBool,
}

#[derive(Deserialize)]
struct Document {
    #[serde(rename = "Code")]
    code: String,
}

impl InstanceRole {
    /// The role of this name; without a name the one that the instance has.
    pub fn new(metadata: Metadata, role: Option<String>, last_resort: bool) -> Self {
        Self {
            metadata,
            role,
            last_resort,
            found: AtomicBool::new(false),
        }
    }

    async fn fetch(&self) -> Result<Credentials, CredentialError> {
        use CredentialError::Missing;
        let role = match &self.role {
            Some(role) => role.clone(),
            None => {
                let told = self.metadata.role_name().await;
                let told = told.map_err(CredentialError::Metadata)?;
                told.ok_or_else(|| Missing("the instance has no RAM role".to_owned()))?
            }
        };
        let document = self.metadata.role_document(&role).await;
        let document = document.map_err(CredentialError::Metadata)?;
        let document =
            document.ok_or_else(|| Missing(format!("the instance has no RAM role {role:?}")))?;
        let origin = format!("the instance role {role}");
        let unusable = |why| CredentialError::Unusable {
            from: origin.clone(),
            why,
        };
        // What cannot be read is not told: it may be half of a secret.
        let read = serde_json::from_str::<Document>(&document);
        let read = read.map_err(|_| unusable("it cannot be read"))?;
        if read.code != "Success" {
            return Err(unusable("its Code is not Success"));
        }
        let issued = serde_json::from_str::<Issued>(&document);
        issued
            .map_err(|_| unusable("it cannot be read"))?
            .accept(&origin)
    }
}

#[async_trait]
impl Provide for InstanceRole {
    async fn provide(&self) -> Result<Credentials, CredentialError> {
        match self.fetch().await {
            Ok(credentials) => {
                self.found.store(true, Ordering::Relaxed);
                Ok(credentials)
            }
            Err(error) if self.last_resort && !self.found.load(Ordering::Relaxed) => {
                let why = match &error {
                    CredentialError::Missing(why) => why.clone(),
                    _ => chain(&error),
                };
                Err(CredentialError::Missing(format!("{HOW}; else: {why}")))
            }
            Err(error) => Err(error),
        }
    }
}
