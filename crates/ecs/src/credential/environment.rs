//! Credentials in environment variables. The project's names take precedence over those of the vendor's SDKs.

use std::collections::HashMap;

use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};

use super::{CredentialError, CredentialProvider, Credentials, from_parts};

/// Access key ID, secret and token.
const NAMES: [[&str; 3]; 2] = [
    ["ACCESS_KEY_ID", "ACCESS_KEY_SECRET", "SECURITY_TOKEN"],
    [
        "ALIBABA_CLOUD_ACCESS_KEY_ID",
        "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
        "ALIBABA_CLOUD_SECURITY_TOKEN",
    ],
];

/// The configuration options, for the error if nothing is configured.
pub(super) const CONFIGURATION_ADVICE: &str = "set ACCESS_KEY_ID and ACCESS_KEY_SECRET, configure a directory with \
                              them, or assign a RAM role to the service account or the instance";

/// The variables at the start of the process.
#[derive(Debug)]
pub struct Environment(HashMap<&'static str, SecretString>);

impl Environment {
    /// Reads the variables with the given lookup. A blank variable counts as unset.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let variables = NAMES.into_iter().flatten().filter_map(|name| {
            let value = lookup(name).filter(|value| !value.trim().is_empty())?;
            Some((name, SecretString::from(value)))
        });
        Self(variables.collect())
    }

    /// Whether any variable of an access key is set.
    pub fn is_set(&self) -> bool {
        let mut keys = NAMES.iter().flat_map(|[id, secret, _]| [id, secret]);
        keys.any(|name| self.0.contains_key(name))
    }

    fn get(&self, name: &str) -> Option<Vec<u8>> {
        self.0.get(name).map(|value| value.expose_secret().into())
    }
}

#[async_trait]
impl CredentialProvider for Environment {
    async fn provide(&self) -> Result<Credentials, CredentialError> {
        for [id, secret, own_token] in NAMES {
            // The vendor SDKs' token is also accepted with the project's names, for compatibility.
            let mut tokens = [own_token].into_iter().chain(NAMES.map(|[.., token]| token));
            let token = tokens.find(|name| self.0.contains_key(name)).unwrap_or(own_token);
            let parts = [id, secret, token].map(|name| (name, self.get(name)));
            if let Some(found) = from_parts("the environment", &parts)? {
                return Ok(found);
            }
        }
        Err(CredentialError::NotConfigured(CONFIGURATION_ADVICE.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> Environment {
        let map: HashMap<String, String> = variables
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect();
        Environment::read(|name| map.get(name).cloned())
    }

    #[tokio::test]
    async fn both_pairs_of_names_work_with_a_token() {
        for (id, secret, token) in [
            ("ACCESS_KEY_ID", "ACCESS_KEY_SECRET", "SECURITY_TOKEN"),
            (
                "ALIBABA_CLOUD_ACCESS_KEY_ID",
                "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
                "ALIBABA_CLOUD_SECURITY_TOKEN",
            ),
        ] {
            let found = environment(&[(id, "k"), (secret, "s"), (token, "t")]).provide().await;
            let found = found.unwrap();
            assert_eq!(found.access_key_id.expose_secret(), "k");
            assert_eq!(found.access_key_secret.expose_secret(), "s");
            assert_eq!(found.security_token.unwrap().expose_secret(), "t");
        }
    }

    #[tokio::test]
    async fn an_incomplete_key_names_the_missing_variable() {
        let error = environment(&[("ACCESS_KEY_ID", "k")]).provide().await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "the environment has ACCESS_KEY_ID, but ACCESS_KEY_SECRET is missing or empty"
        );
    }

    #[tokio::test]
    async fn without_variables_the_error_lists_the_configuration_options() {
        let environment = environment(&[("ACCESS_KEY_ID", "")]);
        assert!(!environment.is_set());
        let error = environment.provide().await.unwrap_err();
        assert!(error.to_string().ends_with(CONFIGURATION_ADVICE), "{error}");
    }
}
