//! One attempt of a call: credentials, signature, HTTP exchange.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use serde::de::DeserializeOwned;

use super::api_health::ApiHealth;
use super::credential::{CredentialError, CredentialProvider, Credentials};
use super::error::{Condition, Error, Kind};
use super::request_secrets::RequestSecrets;
use super::response::{Response, retry_after};
use super::server_clock::ServerClock;
use super::sign::{API_VERSION, Scheme, SignedRequest, UnsignedRequest};
use super::signing_key::SigningKey;
use super::wire::params::Params;
use crate::base::{Clock, without_user_info};
use crate::model::RegionId;

/// A request without a response within this time is considered lost, so that a dead connection does
/// not use up the deadline.
const TIMEOUT: Duration = Duration::from_secs(15);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Transport {
    http: Client,
    /// Separate connections for reads. A connection keeps a buffer of the size of its largest response; those of a burst
    /// of writes stay small.
    read_http: Client,
    server: Server,
    settings: Settings,
    health: ApiHealth,
    signing_key: SigningKey,
}

#[derive(Debug)]
pub struct Settings {
    /// `https://host` or, for tests, `http://host:port`.
    pub endpoint: String,
    /// Sent with every call.
    pub region: RegionId,
    pub scheme: Scheme,
    pub credentials: Arc<dyn CredentialProvider>,
    /// The time of the signatures.
    pub clock: ServerClock,
}

#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Shown without user information, which can be a password.
    #[error(
        "{0:?} is not an endpoint of the form http://HOST[:PORT] or https://HOST[:PORT], without user and password"
    )]
    Endpoint(String),
    /// Usually the certificate bundle is missing.
    #[error("cannot build the HTTP client")]
    Client(#[source] reqwest::Error),
}

#[derive(Debug, thiserror::Error)]
enum RejectedValue {
    #[error("the region is {0}")]
    Region(RegionId),
    #[error("the credentials came from {0}")]
    Key(Arc<str>),
}

/// A request with its response.
struct Sent {
    /// The time in the signature.
    time: Timestamp,
    secrets: RequestSecrets,
    response: Response,
}

impl Sent {
    /// Whether the cloud rejected the time, and the clock is corrected now.
    fn is_time_corrected(&self, clock: &ServerClock) -> bool {
        self.response.rejects_time() && clock.correct(self.time, &self.response.headers)
    }
}

impl Transport {
    pub fn new(settings: Settings) -> Result<Self, BuildError> {
        let server: Server = settings.endpoint.parse()?;
        Ok(Self {
            http: server.client(TIMEOUT)?,
            read_http: server.client(TIMEOUT)?,
            server,
            settings,
            health: ApiHealth::default(),
            signing_key: SigningKey::default(),
        })
    }

    /// The clock whose minutes are the windows of the rate limit.
    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        self.settings.clock.local()
    }

    pub fn api_health(&self) -> ApiHealth {
        self.health.clone()
    }

    pub fn server_clock(&self) -> ServerClock {
        self.settings.clock.clone()
    }

    /// A number that changes with the access key of the calls.
    pub(super) fn key_generation(&self) -> u64 {
        self.signing_key.generation()
    }

    /// Signs and sends the call once, or twice if its time was rejected: then it had no effect. The caller applies the deadline.
    ///
    /// # Errors
    /// [`Kind::Ambiguous`] if the response was lost.
    pub async fn attempt<T: DeserializeOwned>(
        &self,
        action: &'static str,
        params: &Params,
    ) -> Result<T, Error> {
        let settings = &self.settings;
        let credentials = settings.credentials.provide().await;
        let credentials = credentials.map_err(|error| no_credentials(action, error))?;
        self.signing_key.record(&credentials);
        let params = params.clone().set("RegionId", &settings.region);
        let mut sent = self.send(action, &params, &credentials).await?;
        if sent.is_time_corrected(&settings.clock) {
            sent = self.send(action, &params, &credentials).await?;
            // For the next call.
            sent.is_time_corrected(&settings.clock);
        }
        let Sent {
            response, secrets, ..
        } = sent;
        let outcome = match response.parse(action, &secrets) {
            Err(error) if !response.is_success() => {
                Err(self.after_rejection(error, &credentials).await)
            }
            outcome => outcome,
        };
        self.health.record_result(outcome.as_ref().err());
        outcome
    }

    async fn send(
        &self,
        action: &'static str,
        params: &Params,
        credentials: &Credentials,
    ) -> Result<Sent, Error> {
        let clock = &self.settings.clock;
        let time = clock.now();
        let signed = self.settings.scheme.sign(&UnsignedRequest {
            action,
            version: API_VERSION,
            params: params.as_map(),
            host: &self.server.host,
            credentials,
            time,
            nonce: &uuid::Uuid::new_v4().simple().to_string(),
        });
        let secrets = RequestSecrets::from_request(credentials, &signed);
        let is_read = action.starts_with("Describe");
        let http = if is_read { &self.read_http } else { &self.http };
        let exchange = self.server.post(http, action, signed, String::new());
        let response = self.health.track(&self.server.host, exchange).await?;
        clock.record(&response.headers);
        Ok(Sent {
            time,
            secrets,
            response,
        })
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
        error
            .with_kind(kind)
            .with_source(RejectedValue::Key(origin))
    }
}

/// The error of a call that could not be signed and was not sent.
fn no_credentials(action: &'static str, error: CredentialError) -> Error {
    let failed = if error.is_transient() {
        Error::new(Kind::Unreachable, action)
            .with_message("no valid credentials are available at the moment")
    } else {
        Error::new(Kind::Credentials, action)
    };
    failed.with_source(error)
}

pub fn validate_endpoint(text: &str) -> Result<(), BuildError> {
    text.parse().map(|_: Server| ())
}

/// The endpoint of a service of the cloud.
#[derive(Debug)]
pub(super) struct Server {
    url: Url,
    /// The value of the `Host` header, which the V3 signature covers.
    pub(super) host: String,
}

impl FromStr for Server {
    type Err = BuildError;

    fn from_str(endpoint: &str) -> Result<Self, BuildError> {
        let invalid = || BuildError::Endpoint(without_user_info(endpoint));
        let mut url = Url::parse(endpoint).map_err(|_| invalid())?;
        let is_http = matches!(url.scheme(), "http" | "https");
        // User information would never be sent, but shown in reports.
        let has_user = !url.username().is_empty() || url.password().is_some();
        let name = url.host_str().filter(|_| is_http && !has_user);
        let name = name.ok_or_else(invalid)?;
        let host = match url.port() {
            Some(port) => format!("{name}:{port}"),
            None => name.to_owned(),
        };
        url.set_path("/");
        Ok(Self { url, host })
    }
}

impl Server {
    /// A client for this server.
    pub(super) fn client(&self, timeout: Duration) -> Result<Client, BuildError> {
        let mut http = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(timeout)
            // A signature must not be sent to another host.
            .redirect(Policy::none())
            .user_agent(concat!("diskplugin/", env!("CARGO_PKG_VERSION")));
        // A fake cloud on localhost is never behind a proxy.
        if let Some("localhost" | "127.0.0.1" | "[::1]") = self.url.host_str() {
            http = http.no_proxy();
        }
        if self.url.scheme() == "http" {
            // HTTP verifies nothing, and reading all root certificates is a third of the start-up time.
            http = http.tls_certs_only([]);
        }
        http.build().map_err(BuildError::Client)
    }

    /// Sends a signed request and reads the complete response.
    pub(super) async fn post(
        &self,
        http: &Client,
        action: &'static str,
        signed: SignedRequest,
        body: String,
    ) -> Result<Response, Error> {
        let mut url = self.url.clone();
        url.set_query(Some(&signed.query));
        let mut request = http.post(url).body(body);
        for (name, value) in signed.headers {
            request = request.header(name, value);
        }
        let response = request.send().await;
        let response = response.map_err(|error| self.lost(action, error))?;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let retry_after = retry_after(&headers);
        let body = response.bytes().await;
        let body = body.map_err(|error| self.lost(action, error).with_status(status))?;
        Ok(Response {
            status,
            retry_after,
            headers,
            body,
        })
    }

    /// The error of a lost response. It contains only the host, because the URL contains key id and signature.
    fn lost(&self, action: &'static str, error: reqwest::Error) -> Error {
        let kind = if error.is_connect() {
            Kind::Unreachable
        } else {
            Kind::Ambiguous
        };
        let scheme = self.url.scheme();
        Error::new(kind, action)
            .with_message(format!("no response from {scheme}://{}", self.host))
            .with_source(error.without_url())
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::base::SystemClock;

    /// A provider that never returns.
    #[derive(Debug)]
    struct Slow;

    #[async_trait]
    impl CredentialProvider for Slow {
        async fn provide(&self) -> Result<Credentials, CredentialError> {
            std::future::pending().await
        }
    }

    #[test]
    fn an_endpoint_has_no_user_information() {
        for valid in [
            "https://ecs.example",
            "http://127.0.0.1:8480/",
            "http://[::1]:1",
            "http://127.0.0.1:8480/imds/i-1",
        ] {
            assert!(validate_endpoint(valid).is_ok(), "{valid}");
        }
        for invalid in [
            "ecs.example",
            "ftp://ecs.example",
            "https://name@ecs.example",
            "https://name:hidden@ecs.example",
            "https://:hidden@ecs.example",
        ] {
            let error = validate_endpoint(invalid).unwrap_err().to_string();
            assert!(!error.contains("hidden"), "{error}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_credential_provider_is_not_an_outage() {
        let transport = Transport::new(Settings {
            endpoint: "http://127.0.0.1:9".to_owned(),
            region: "cn-beijing".parse().unwrap(),
            scheme: Scheme::V3,
            credentials: Arc::new(Slow),
            clock: ServerClock::new(Arc::new(SystemClock)),
        })
        .unwrap();
        let params = Params::default();
        let attempt = transport.attempt::<()>("DescribeDisks", &params);
        let outcome = tokio::time::timeout(Duration::from_secs(60), attempt).await;
        assert!(outcome.is_err());
        assert!(transport.api_health().report().outage.is_none());
    }
}
