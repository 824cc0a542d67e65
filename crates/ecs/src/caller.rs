//! One attempt of a call: credentials, signature, exchange.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;

use super::api_health::ApiHealth;
use super::credential::{CredentialError, CredentialProvider, Credentials};
use super::error::{Condition, Error, Kind};
use super::request_secrets::RequestSecrets;
use super::server::Server;
use super::server_clock::ServerClock;
use super::sign::{API_VERSION, Scheme, UnsignedRequest};
use super::tls;
use super::transport::Transport;
use super::wire::params::Params;
use crate::base::{Deadline, lock};
use crate::model::RegionId;

/// A request without a response within this time is considered lost, so that a dead connection does
/// not use up the deadline.
const TIMEOUT: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(super) struct Caller {
    transport: Arc<dyn Transport>,
    pub(super) settings: Settings,
    pub(super) health: ApiHealth,
    pub(super) signing_key: SigningKey,
}

#[derive(Debug)]
pub struct Settings {
    pub server: Server,
    /// Sent with every call.
    pub region: RegionId,
    pub scheme: Scheme,
    pub credentials: Arc<dyn CredentialProvider>,
    /// The time of the signatures.
    pub clock: ServerClock,
}

#[derive(Debug, thiserror::Error)]
enum RejectedValue {
    #[error("the region is {0}")]
    Region(RegionId),
    #[error("the credentials came from {0}")]
    Key(Arc<str>),
}

/// The last access key ID, and the number of changes.
#[derive(Debug, Default)]
pub(super) struct SigningKey(Mutex<(u64, Option<SecretString>)>);

impl SigningKey {
    /// Records the key of a call that is about to be sent.
    fn record(&self, id: &SecretString) {
        let mut last = lock(&self.0);
        let known = last.1.replace(id.clone());
        // The first key is not a change: the rows that it reads would be outdated immediately.
        let is_change = known.is_some_and(|known| known.expose_secret() != id.expose_secret());
        last.0 += u64::from(is_change);
    }

    pub(super) fn generation(&self) -> u64 {
        lock(&self.0).0
    }
}

impl Caller {
    pub(super) fn new(settings: Settings, transport: Arc<dyn Transport>) -> Self {
        Self {
            transport,
            settings,
            health: ApiHealth::default(),
            signing_key: SigningKey::default(),
        }
    }

    /// Signs and sends the call once, or twice if its time was rejected: then it had no effect. The caller applies the
    /// deadline.
    ///
    /// # Errors
    /// [`Kind::Ambiguous`] if the response was lost.
    pub(super) async fn attempt<T: DeserializeOwned>(&self, action: &'static str, params: &Params) -> Result<T, Error> {
        let settings = &self.settings;
        let credentials = settings.credentials.provide().await;
        let credentials = credentials.map_err(|error| no_credentials(action, error))?;
        self.signing_key.record(&credentials.access_key_id);
        let mut params = params.clone();
        params.insert("RegionId".to_owned(), settings.region.to_string());
        let Settings { server, clock, .. } = settings;
        let sign = |time| {
            let signed = settings.scheme.sign(&UnsignedRequest {
                action,
                version: API_VERSION,
                params: &params,
                host: &server.host,
                credentials: &credentials,
                time,
                nonce: &uuid::Uuid::new_v4().simple().to_string(),
            });
            let secrets = RequestSecrets::from_request(&credentials, &signed);
            (signed, secrets)
        };
        let send = |signed| {
            let deadline = Deadline::after(TIMEOUT);
            let exchange = server.post(&*self.transport, action, signed, String::new(), deadline);
            self.health.track(&server.host, exchange)
        };
        let (_, secrets, response) = clock.exchange(sign, send).await?;
        let outcome = match response.parse(action, &secrets) {
            Err(error) if !response.is_success() => Err(self.after_rejection(error, &credentials).await),
            outcome => outcome,
        };
        self.health.record_result(outcome.as_ref().err());
        outcome
    }

    /// Adds the rejected region or the origin of rejected credentials to the error. Rejected credentials are
    /// [`Kind::Expired`], which is retried once, only if the provider has other credentials now.
    async fn after_rejection(&self, error: Error, used: &Credentials) -> Error {
        match (error.kind(), error.condition()) {
            (Kind::Expired, _) => self.settings.credentials.invalidate(used),
            // A mounted Secret may have been replaced, and the old key disabled, between reading and the call.
            (Kind::Denied, Condition::SignatureMismatch | Condition::KeyInactive) => {}
            _ if error.is_about_region() => {
                return error.with_source(RejectedValue::Region(self.settings.region.clone()));
            }
            _ => return error,
        }
        let kind = match self.settings.credentials.provide().await {
            Ok(found) if found.is_same_as(used) => Kind::Denied,
            Ok(_) => Kind::Expired,
            Err(source) => return no_credentials(error.action(), source),
        };
        let origin = Arc::clone(&used.origin);
        error.with_kind(kind).with_source(RejectedValue::Key(origin))
    }
}

/// The error of a call that could not be signed and was not sent.
fn no_credentials(action: &'static str, error: CredentialError) -> Error {
    let failed = if error.is_transient() {
        let condition = tls::rejection(&error).unwrap_or(Condition::Unreachable);
        Error::of(condition, action).with_message("no valid credentials are available at the moment")
    } else {
        Error::new(Kind::Credentials, action)
    };
    failed.with_source(error)
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::base::SystemClock;
    use crate::http_transport::HttpTransport;

    /// A provider that never returns.
    #[derive(Debug)]
    struct Slow;

    #[async_trait]
    impl CredentialProvider for Slow {
        async fn provide(&self) -> Result<Credentials, CredentialError> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_credential_provider_is_not_an_outage() {
        let server: Server = "http://127.0.0.1:9".parse().unwrap();
        let transport = Arc::new(HttpTransport::new(&server).unwrap());
        let settings = Settings {
            server,
            region: "cn-beijing".parse().unwrap(),
            scheme: Scheme::V3,
            credentials: Arc::new(Slow),
            clock: ServerClock::new(Arc::new(SystemClock)),
        };
        let caller = Caller::new(settings, transport);
        let params = Params::new();
        let attempt = caller.attempt::<()>("DescribeDisks", &params);
        let outcome = tokio::time::timeout(Duration::from_secs(60), attempt).await;
        assert!(outcome.is_err());
        assert!(caller.health.report().outage.is_none());
    }

    #[test]
    fn another_access_key_changes_the_number_and_another_secret_does_not() {
        let key = SigningKey::default();
        let first = key.generation();
        for secret in ["a", "b"] {
            key.record(&Credentials::new("LTAI-1", secret).access_key_id);
            assert_eq!(key.generation(), first);
        }
        key.record(&Credentials::new("LTAI-2", "b").access_key_id);
        assert_ne!(key.generation(), first);
    }
}
