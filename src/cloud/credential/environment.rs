//! Credentials in environment variables, the project's names before the vendor SDKs' ones.

use std::collections::HashMap;

use async_trait::async_trait;
use secrecy::{ExposeSecret, SecretString};

use super::{CredentialError, Credentials, Provide, assemble};

const PAIRS: [(&str, &str); 2] = [
    ("ACCESS_KEY_ID", "ACCESS_KEY_SECRET"),
    (
        "ALIBABA_CLOUD_ACCESS_KEY_ID",
        "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
    ),
];
const TOKENS: [&str; 2] = ["SECURITY_TOKEN", "ALIBABA_CLOUD_SECURITY_TOKEN"];

/// What an operator can do who has configured nothing.
pub(super) const HOW: &str = "set ACCESS_KEY_ID and ACCESS_KEY_SECRET, name a Secret directory by \
                              --credentials-dir, or give the service account or the instance a RAM \
                              role";

/// The variables, as they were when the process started.
#[derive(Debug)]
pub struct Environment {
    variables: HashMap<&'static str, SecretString>,
}

impl Environment {
    /// Reads the variables by the given lookup (`std::env::var` in the program, a map in tests).
    /// An empty variable counts as unset.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let names = PAIRS
            .iter()
            .flat_map(|(id, secret)| [*id, *secret])
            .chain(TOKENS);
        let variables = names
            .filter_map(|name| {
                let value = lookup(name).filter(|value| !value.trim().is_empty())?;
                Some((name, SecretString::from(value.trim().to_owned())))
            })
            .collect();
        Self { variables }
    }

    /// Whether any of the variables of a key is set.
    pub fn is_set(&self) -> bool {
        PAIRS
            .iter()
            .any(|(id, secret)| self.get(id).is_some() || self.get(secret).is_some())
    }

    fn get(&self, name: &str) -> Option<String> {
        self.variables
            .get(name)
            .map(|value| value.expose_secret().to_owned())
    }
}

#[async_trait]
impl Provide for Environment {
    async fn provide(&self) -> Result<Credentials, CredentialError> {
        for ((id, secret), own_token) in PAIRS.into_iter().zip(TOKENS) {
            // The vendor SDKs' token also goes with the short names, which have long been in use.
            let token = self
                .get(own_token)
                .or_else(|| TOKENS.iter().find_map(|t| self.get(t)));
            let found = assemble(
                "the environment",
                (id, self.get(id)),
                (secret, self.get(secret)),
                token,
            )?;
            if let Some(found) = found {
                return Ok(found);
            }
        }
        Err(CredentialError::Missing(HOW.to_owned()))
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
    async fn either_pair_of_names_works_and_a_token_goes_along() {
        for (id, secret, token) in [
            ("ACCESS_KEY_ID", "ACCESS_KEY_SECRET", "SECURITY_TOKEN"),
            (
                "ALIBABA_CLOUD_ACCESS_KEY_ID",
                "ALIBABA_CLOUD_ACCESS_KEY_SECRET",
                "ALIBABA_CLOUD_SECURITY_TOKEN",
            ),
        ] {
            let found = environment(&[(id, "k"), (secret, "s"), (token, "t")])
                .provide()
                .await;
            let found = found.unwrap();
            assert_eq!(found.access_key_id.expose_secret(), "k");
            assert_eq!(found.secret.expose_secret(), "s");
            assert_eq!(found.security_token.unwrap().expose_secret(), "t");
        }
    }

    #[tokio::test]
    async fn half_a_pair_is_an_error_that_names_the_other_half() {
        let error = environment(&[("ACCESS_KEY_ID", "k")])
            .provide()
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "the environment has ACCESS_KEY_ID but not ACCESS_KEY_SECRET"
        );
    }

    #[tokio::test]
    async fn nothing_set_is_an_error_that_says_what_can_be_configured() {
        let environment = environment(&[("ACCESS_KEY_ID", "")]);
        assert!(!environment.is_set());
        let error = environment.provide().await.unwrap_err();
        assert!(error.to_string().ends_with(HOW), "{error}");
    }
}
