//! The client of the instance metadata service: instance, region, zone, and the credentials of the RAM role. Uses
//! security hardening mode (tokens); normal mode only if the instance and the configuration allow it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::time::Instant;

use crate::base::{Deadline, error_chain, lock};
use crate::model::id::is_plain;

/// The link-local address of the service on every instance.
pub const DEFAULT_ENDPOINT: &str = "http://100.100.100.200";

const TOKEN_TTL_SECONDS: &str = "300";
/// How long a token is used, leaving time for the request that carries it.
const TOKEN_USE: Duration = Duration::from_secs(240);
const TIMEOUT: Duration = Duration::from_secs(2);
const TOKEN_PATH: &str = "api/token";
const ROLES_PATH: &str = "meta-data/ram/security-credentials/";
/// The identity document, which has all items.
const IDENTITY_PATH: &str = "dynamic/instance-identity/document";
/// Attempts per item: the service has a rate limit, and may invalidate tokens.
const ATTEMPTS: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(300);
/// The maximum pause, even if `Retry-After` is longer.
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Reads metadata. The items never change while a process runs and are cached; the token is cached while it is valid.
#[derive(Debug)]
pub struct Metadata {
    http: Client,
    base: String,
    tokenless: bool,
    cache: Mutex<Cache>,
}

#[derive(Debug, Default)]
struct Cache {
    /// The identity document, once it was requested, and items that were requested separately.
    items: Option<HashMap<String, Value>>,
    /// The token and when to replace it.
    token: Option<(SecretString, Instant)>,
}

/// A path below `meta-data/`, which ends with the key in the identity document.
#[derive(Debug, Clone, Copy)]
pub struct Item(&'static str);

#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    #[error("cannot build the HTTP client")]
    Client(#[source] reqwest::Error),
    /// The machine is not an instance, or cannot reach the service.
    #[error("the metadata service at {base} does not respond for {item}; is this an instance?")]
    Unreachable {
        base: String,
        item: String,
        source: reqwest::Error,
    },
    #[error("the metadata service at {base} returns HTTP {status} for {item}")]
    Status {
        base: String,
        item: String,
        status: u16,
        retry_after: Option<Duration>,
    },
}

impl MetadataError {
    /// Whether a retry may succeed.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Client(_) => false,
            Self::Unreachable { .. } => true,
            Self::Status { status, .. } => *status >= 500 || matches!(*status, 401 | 429),
        }
    }
}

impl Item {
    pub const INSTANCE_ID: Self = Self("instance-id");
    pub const REGION_ID: Self = Self("region-id");
    pub const ZONE_ID: Self = Self("zone-id");
    pub const INSTANCE_TYPE: Self = Self("instance/instance-type");
}

impl Metadata {
    /// The service at this endpoint, to which `/latest/…` is appended. `tokenless` allows requests without a token if
    /// the service does not issue one.
    pub fn new(endpoint: &str, tokenless: bool) -> Result<Self, MetadataError> {
        let http = Client::builder()
            .connect_timeout(TIMEOUT)
            .timeout(TIMEOUT)
            // The token must not be sent elsewhere.
            .redirect(Policy::none())
            .no_proxy()
            // The service is plain HTTP. Reading root certificates would be most of a node's start-up time.
            .tls_certs_only([])
            .build()
            .map_err(MetadataError::Client)?;
        let base = format!("{}/latest", endpoint.trim_end_matches('/'));
        Ok(Self {
            http,
            base,
            tokenless,
            cache: Mutex::default(),
        })
    }

    /// The item, from the cache if possible: the first request reads the identity document with all items. Retries
    /// until the deadline: an instance that has just started may have no network yet, and many that start together
    /// exceed a rate limit.
    pub async fn get(&self, Item(path): Item, deadline: Deadline) -> Result<String, MetadataError> {
        if lock(&self.cache).items.is_none() {
            let identity = if_exists(self.fetch(IDENTITY_PATH, deadline).await)?;
            let identity = identity.as_deref().map(items);
            lock(&self.cache).items = Some(identity.unwrap_or_default());
        }
        let key = path.trim_start_matches("instance/");
        let cached = lock(&self.cache).items.as_ref().and_then(|items| item(items, key));
        if let Some(value) = cached {
            return Ok(value);
        }
        let value = self.fetch(&format!("meta-data/{path}"), deadline).await?;
        let value = value.trim().to_owned();
        let mut cache = lock(&self.cache);
        let items = cache.items.get_or_insert_default();
        items.insert(key.to_owned(), value.as_str().into());
        Ok(value)
    }

    /// The name of the instance's RAM role, if it has one.
    pub async fn role_name(&self) -> Result<Option<String>, MetadataError> {
        let listed = self.fetch(ROLES_PATH, Deadline::after(Duration::ZERO)).await;
        let listed = if_exists(listed)?;
        Ok(listed.as_deref().and_then(first_role))
    }

    /// The JSON document with the role's credentials, which is secret; none if the instance does not have this role.
    pub async fn role_document(&self, role: &str) -> Result<Option<String>, MetadataError> {
        if !is_plain(role) {
            // Not a valid name in RAM; it could change the path.
            return Ok(None);
        }
        let path = format!("{ROLES_PATH}{role}");
        if_exists(self.fetch(&path, Deadline::after(Duration::ZERO)).await)
    }

    /// Retries a transient HTTP status [`ATTEMPTS`] times, and every transient error until the deadline.
    async fn fetch(&self, path: &str, deadline: Deadline) -> Result<String, MetadataError> {
        let mut pause = FIRST_PAUSE;
        let mut attempt = 1;
        loop {
            let error = match self.attempt(path).await {
                Err(error) if error.is_transient() => error,
                outcome => return outcome,
            };
            let (responded, wait) = match &error {
                MetadataError::Status { retry_after, .. } => (true, retry_after.unwrap_or_default()),
                _ => (false, Duration::ZERO),
            };
            let wait = pause.max(wait).min(MAX_PAUSE);
            if deadline.remaining() <= wait && !(responded && attempt < ATTEMPTS) {
                return Err(error);
            }
            tracing::info!("retrying in {wait:?}: {}", error_chain(&error));
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(MAX_PAUSE);
            attempt += 1;
        }
    }

    async fn attempt(&self, path: &str) -> Result<String, MetadataError> {
        let token = self.token().await?;
        let mut request = self.http.get(format!("{}/{path}", self.base));
        if let Some(token) = token {
            request = request.header("X-aliyun-ecs-metadata-token", token.expose_secret());
        }
        let response = request.send().await;
        let response = response.map_err(|source| self.unreachable(path, source))?;
        if response.status() == StatusCode::UNAUTHORIZED {
            // The service has invalidated the token.
            lock(&self.cache).token = None;
        }
        self.read(path, response).await
    }

    /// The cached token, or a new one.
    async fn token(&self) -> Result<Option<SecretString>, MetadataError> {
        if let Some((token, until)) = &lock(&self.cache).token
            && *until > Instant::now()
        {
            return Ok(Some(token.clone()));
        }
        let until = Instant::now() + TOKEN_USE;
        let token = self.new_token().await?;
        lock(&self.cache).token = token.clone().map(|token| (token, until));
        Ok(token)
    }

    /// A new token; none if requests without a token are allowed and the service does not issue one. If the instance
    /// limits the hops of the response, it never reaches a container and the request times out.
    async fn new_token(&self) -> Result<Option<SecretString>, MetadataError> {
        let sent = self
            .http
            .put(format!("{}/{TOKEN_PATH}", self.base))
            .header("X-aliyun-ecs-metadata-token-ttl-seconds", TOKEN_TTL_SECONDS)
            .send()
            .await;
        let response = match sent {
            Ok(response) => response,
            Err(error) if self.tokenless && error.is_timeout() && !error.is_connect() => {
                return Ok(None);
            }
            Err(error) => return Err(self.unreachable(TOKEN_PATH, error)),
        };
        match self.read(TOKEN_PATH, response).await {
            Ok(token) => Ok(Some(token.into())),
            Err(error @ MetadataError::Status { .. }) if self.tokenless && !error.is_transient() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn unreachable(&self, path: &str, source: reqwest::Error) -> MetadataError {
        MetadataError::Unreachable {
            base: self.base.clone(),
            item: path.to_owned(),
            source: source.without_url(),
        }
    }

    async fn read(&self, path: &str, response: reqwest::Response) -> Result<String, MetadataError> {
        if response.status().is_success() {
            let text = response.text().await;
            return text.map_err(|source| self.unreachable(path, source));
        }
        let wait = response.headers().get(RETRY_AFTER);
        let seconds = wait.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        Err(MetadataError::Status {
            base: self.base.clone(),
            item: path.to_owned(),
            status: response.status().as_u16(),
            retry_after: seconds.map(Duration::from_secs),
        })
    }
}

/// The items of an identity document; a malformed one counts as empty.
pub(crate) fn items(document: &str) -> HashMap<String, Value> {
    serde_json::from_str(document).unwrap_or_default()
}

pub(crate) fn item(items: &HashMap<String, Value>, key: &str) -> Option<String> {
    let value = items.get(key)?.as_str()?;
    (!value.is_empty()).then(|| value.to_owned())
}

/// The first role in a list of roles.
pub(crate) fn first_role(listed: &str) -> Option<String> {
    let name = listed.lines().next()?;
    let name = name
        .trim_start()
        .trim_end_matches(|c: char| c == '/' || c.is_whitespace());
    (!name.is_empty()).then(|| name.to_owned())
}

/// The item; none if it does not exist. A service without tokens has no item at all.
fn if_exists(outcome: Result<String, MetadataError>) -> Result<Option<String>, MetadataError> {
    match outcome {
        Ok(text) => Ok(Some(text)),
        Err(MetadataError::Status { status: 404, item, .. }) if item != TOKEN_PATH => Ok(None),
        Err(error) => Err(error),
    }
}
