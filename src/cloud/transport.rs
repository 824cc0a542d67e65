//! One attempt at one call: credentials, signature, HTTP, answer.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use serde::de::DeserializeOwned;

use super::answer::{Answer, throttle_hint};
use super::confidential::Confidential;
use super::credential::{CredentialError, Credentials, Provide};
use super::error::{Condition, Error, Kind};
use super::sign::{API_VERSION, Attempt, Scheme, Signed};
use super::standing::Standing;
use super::wire::params::Params;
use crate::base::Clock;
use crate::model::RegionId;

/// No answer within this time counts as lost, so that a dead connection does not eat the deadline.
const PATIENCE: Duration = Duration::from_secs(15);
const CONNECT: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub struct Transport {
    http: Client,
    /// Connections grow buffers of the size of their largest response and keep them. Those of a burst of orders stay
    /// small if reads do not use them.
    reads: Client,
    server: Server,
    settings: Settings,
    standing: Standing,
}

#[derive(Debug)]
pub struct Settings {
    /// `https://host` or, for tests, `http://host:port`.
    pub endpoint: String,
    /// Sent with every call.
    pub region: RegionId,
    pub scheme: Scheme,
    pub credentials: Arc<dyn Provide>,
    /// Wall time of the signatures.
    pub clock: Arc<dyn Clock>,
}

/// Why there can be no transport.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("{0:?} is no endpoint: http://HOST[:PORT] or https://HOST[:PORT] is")]
    Endpoint(String),
    /// The HTTP client cannot be made: no certificate bundle, mostly.
    #[error("cannot build the HTTP client")]
    Client(#[source] reqwest::Error),
}

/// What was refused.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("the region is {0}")]
    Region(RegionId),
    #[error("the credentials came from {0}")]
    Key(Arc<str>),
}

impl Transport {
    pub fn new(settings: Settings) -> Result<Self, BuildError> {
        let server: Server = settings.endpoint.parse()?;
        Ok(Self {
            http: server.client(PATIENCE)?,
            reads: server.client(PATIENCE)?,
            server,
            settings,
            standing: Standing::default(),
        })
    }

    /// The clock that signs, whose minutes the cloud counts calls by.
    pub(super) fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.settings.clock)
    }

    pub fn standing(&self) -> Standing {
        self.standing.clone()
    }

    /// Sends the call once, signed anew. The caller bounds it by the deadline.
    ///
    /// # Errors
    /// Whatever went wrong, as [`Error`]; [`Kind::Ambiguous`] when the answer was lost.
    pub async fn attempt<T: DeserializeOwned>(
        &self,
        action: &'static str,
        params: &Params,
    ) -> Result<T, Error> {
        let settings = &self.settings;
        let credentials = settings.credentials.provide().await;
        let credentials = credentials.map_err(|error| no_credentials(action, error))?;
        let params = params.clone().set("RegionId", &settings.region);
        let signed = settings.scheme.sign(&Attempt {
            action,
            version: API_VERSION,
            params: params.as_map(),
            host: &self.server.host,
            credentials: &credentials,
            time: settings.clock.now(),
            nonce: &uuid::Uuid::new_v4().simple().to_string(),
        });
        let confidential = Confidential::of(&credentials, &signed);
        let is_read = action.starts_with("Describe");
        let http = if is_read { &self.reads } else { &self.http };
        let exchange = self.server.post(http, action, signed, String::new());
        let answer = self.standing.wait(&self.server.host, exchange).await?;
        let outcome = match answer.read(action, &confidential) {
            Err(refusal) if !answer.is_success() => {
                Err(self.after_refusal(refusal, &credentials).await)
            }
            outcome => outcome,
        };
        self.standing.judge(outcome.as_ref().err());
        outcome
    }

    /// The error of a refused call, which names the region that was refused. Where the credentials were refused, it is [`Kind::Expired`], worth
    /// one more attempt, only if there are others now.
    async fn after_refusal(&self, refusal: Error, used: &Credentials) -> Error {
        match (refusal.kind(), refusal.condition()) {
            (Kind::Expired, _) => self.settings.credentials.refused(used),
            // The secret of a key does not change, but a mounted Secret may have been replaced between
            // its reading and the call, and the key been switched off since.
            (Kind::Denied, Condition::SignatureMismatch | Condition::KeyInactive) => {}
            _ if refusal.is_of_region() => {
                return refusal.with_source(Refused::Region(self.settings.region.clone()));
            }
            _ => return refusal,
        }
        let kind = match self.settings.credentials.provide().await {
            Ok(found) if found.same_as(used) => Kind::Denied,
            Ok(_) => Kind::Expired,
            Err(error) => return no_credentials(refusal.action(), error),
        };
        let origin = Arc::clone(&used.origin);
        refusal.with_kind(kind).with_source(Refused::Key(origin))
    }
}

/// The error of a call that could not be signed: nothing was sent.
fn no_credentials(action: &'static str, error: CredentialError) -> Error {
    let failed = if error.is_passing() {
        Error::new(Kind::Unreachable, action)
            .with_message("there are no valid credentials at the moment")
    } else {
        Error::new(Kind::Credentials, action)
    };
    failed.with_source(error)
}

pub fn check_endpoint(text: &str) -> Result<(), BuildError> {
    text.parse().map(|_: Server| ())
}

/// Where a service of the cloud answers.
#[derive(Debug)]
pub(super) struct Server {
    url: Url,
    /// As the `Host` header will carry it: the V3 signature covers it.
    pub(super) host: String,
}

impl FromStr for Server {
    type Err = BuildError;

    fn from_str(endpoint: &str) -> Result<Self, BuildError> {
        let invalid = || BuildError::Endpoint(endpoint.to_owned());
        let mut url = Url::parse(endpoint).map_err(|_| invalid())?;
        let is_http = matches!(url.scheme(), "http" | "https");
        let name = url.host_str().filter(|_| is_http).ok_or_else(invalid)?;
        let host = match url.port() {
            Some(port) => format!("{name}:{port}"),
            None => name.to_owned(),
        };
        url.set_path("/");
        Ok(Self { url, host })
    }
}

impl Server {
    /// A client for it, for which no answer within `patience` counts as lost.
    pub(super) fn client(&self, patience: Duration) -> Result<Client, BuildError> {
        let mut http = Client::builder()
            .connect_timeout(CONNECT)
            .timeout(patience)
            // A signature is for one host: no other one is shown it.
            .redirect(Policy::none())
            .user_agent(concat!("diskplugin/", env!("CARGO_PKG_VERSION")));
        // A fake cloud on this machine is never behind the environment's proxy.
        if let Some("localhost" | "127.0.0.1" | "[::1]") = self.url.host_str() {
            http = http.no_proxy();
        }
        if self.url.scheme() == "http" {
            // Nothing is verified: reading all root certificates takes a third of the start-up time.
            http = http.tls_certs_only([]);
        }
        http.build().map_err(BuildError::Client)
    }

    /// Sends what was signed, and gets the answer whole.
    pub(super) async fn post(
        &self,
        http: &Client,
        action: &'static str,
        signed: Signed,
        body: String,
    ) -> Result<Answer, Error> {
        let mut url = self.url.clone();
        url.set_query(Some(&signed.query));
        let mut request = http.post(url).body(body);
        for (name, value) in signed.headers {
            request = request.header(name, value);
        }
        let response = request.send().await;
        let response = response.map_err(|error| self.lost(action, error))?;
        let status = response.status().as_u16();
        let hint = throttle_hint(response.headers());
        let body = response.bytes().await;
        let body = body.map_err(|error| self.lost(action, error).with_status(status))?;
        Ok(Answer { status, hint, body })
    }

    /// The error of an answer that did not come. The URL carries key id and signature: only the host may reach the error.
    fn lost(&self, action: &'static str, error: reqwest::Error) -> Error {
        let kind = if error.is_connect() {
            Kind::Unreachable
        } else {
            Kind::Ambiguous
        };
        let scheme = self.url.scheme();
        Error::new(kind, action)
            .with_message(format!("no answer from {scheme}://{}", self.host))
            .with_source(error.without_url())
    }
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;

    use super::*;
    use crate::base::SystemClock;

    /// A source that does not answer.
    #[derive(Debug)]
    struct Slow;

    #[async_trait]
    impl Provide for Slow {
        async fn provide(&self) -> Result<Credentials, CredentialError> {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_source_of_credentials_is_no_silent_cloud() {
        let transport = Transport::new(Settings {
            endpoint: "http://127.0.0.1:9".to_owned(),
            region: "cn-beijing".parse().unwrap(),
            scheme: Scheme::V3,
            credentials: Arc::new(Slow),
            clock: Arc::new(SystemClock),
        })
        .unwrap();
        let params = Params::default();
        let attempt = transport.attempt::<()>("DescribeDisks", &params);
        let outcome = tokio::time::timeout(Duration::from_secs(60), attempt).await;
        assert!(outcome.is_err());
        assert!(transport.standing().report().silent.is_none());
    }
}
