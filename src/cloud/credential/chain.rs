//! Sources in order; the first that is configured counts.

use std::sync::Arc;

use async_trait::async_trait;

use super::{CredentialError, Credentials, Provide};

/// What an operator can do who has configured nothing.
pub(super) const HOW: &str = "set ACCESS_KEY_ID and ACCESS_KEY_SECRET, name a Secret directory by \
                              --credentials-dir, or give the service account or the instance a RAM \
                              role";

/// Asks each source in turn. A source that is configured and broken ends the search: signing with
/// another identity than the one that was meant would be worse than failing.
#[derive(Debug)]
pub struct Chain {
    sources: Vec<Arc<dyn Provide>>,
}

impl Chain {
    /// The sources, first come first asked.
    pub fn new(sources: Vec<Arc<dyn Provide>>) -> Self {
        Self { sources }
    }
}

#[async_trait]
impl Provide for Chain {
    async fn provide(&self) -> Result<Option<Credentials>, CredentialError> {
        for source in &self.sources {
            if let Some(found) = source.provide().await? {
                return Ok(Some(found));
            }
        }
        Err(CredentialError::Missing(HOW.to_owned()))
    }

    fn refused(&self, credentials: &Credentials) {
        for source in &self.sources {
            source.refused(credentials);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Directory, Environment, Fixed};
    use super::*;

    #[tokio::test]
    async fn the_next_source_is_asked_only_when_one_is_not_configured() {
        let unset = Arc::new(Environment::read(|_| None));
        let fixed = Arc::new(Fixed(Credentials::new("k", "s")));
        assert!(
            Chain::new(vec![unset, fixed])
                .provide()
                .await
                .unwrap()
                .is_some()
        );
    }

    #[tokio::test]
    async fn a_broken_source_ends_the_search() {
        let broken = Arc::new(Directory::new("/nowhere"));
        let fixed = Arc::new(Fixed(Credentials::new("k", "s")));
        assert!(Chain::new(vec![broken, fixed]).provide().await.is_err());
    }
}
