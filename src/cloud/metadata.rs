//! The instance metadata service: which machine, region and zone this is, and the credentials of its
//! RAM role. Token mode first; without a token only where the machine allows it and nobody forbids it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::header::RETRY_AFTER;
use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::time::Instant;

use crate::base::Deadline;
use crate::base::chain::chain;

/// Where the service answers on every instance.
pub const DEFAULT_ENDPOINT: &str = "http://100.100.100.200";

const TOKEN_TTL_SECONDS: &str = "300";
/// How long a token is used: a good part of its life is left for the request that carries it.
const TOKEN_USE: Duration = Duration::from_secs(240);
const PATIENCE: Duration = Duration::from_secs(2);
const TOKEN: &str = "api/token";
const ROLES: &str = "meta-data/ram/security-credentials/";
/// All that an instance is, in one answer.
const IDENTITY: &str = "dynamic/instance-identity/document";
/// How often one item is asked for: the service limits its rate, and its tokens may be forgotten.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(300);
/// The longest pause, also where the service asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Reads metadata. Which machine this is never changes while a process runs, and is kept; so is the
/// token, as long as it is good.
#[derive(Debug)]
pub struct Metadata {
    http: Client,
    base: String,
    tokenless: bool,
    memory: Mutex<Memory>,
}

#[derive(Debug, Default)]
struct Memory {
    /// The identity document, once it was requested, and the items that were requested singly.
    known: Option<HashMap<String, Value>>,
    /// It opens the service's secrets.
    token: Option<(SecretString, Instant)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// `i-…`
    InstanceId,
    /// `cn-beijing`
    RegionId,
    /// `cn-beijing-c`
    ZoneId,
    /// `ecs.g6.large`
    InstanceType,
}

#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    #[error("cannot build the HTTP client")]
    Client(#[source] reqwest::Error),
    /// The service does not answer: not an instance, or out of its reach.
    #[error("the metadata service at {base} does not answer for {item}; is this an instance?")]
    Unreachable {
        base: String,
        item: String,
        source: reqwest::Error,
    },
    #[error("the metadata service at {base} answers HTTP {status} for {item}")]
    Refused {
        base: String,
        item: String,
        status: u16,
        /// How long it asks to be left alone.
        pause: Option<Duration>,
    },
}

impl MetadataError {
    /// Whether it may pass by itself.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Client(_) => false,
            Self::Unreachable { .. } => true,
            Self::Refused { status, .. } => *status >= 500 || matches!(*status, 401 | 429),
        }
    }

    /// Whether the service has no such item: not one without tokens, which has no item at all.
    fn is_missing_item(&self) -> bool {
        matches!(self, Self::Refused { status, item, .. }
            if *status == StatusCode::NOT_FOUND.as_u16() && item != TOKEN)
    }
}

impl Item {
    /// The path below `meta-data/` and the key in the identity document.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::InstanceId => ("instance-id", "instance-id"),
            Self::RegionId => ("region-id", "region-id"),
            Self::ZoneId => ("zone-id", "zone-id"),
            Self::InstanceType => ("instance/instance-type", "instance-type"),
        }
    }
}

impl Metadata {
    /// The service at this endpoint, to which `/latest/…` is appended. `tokenless` allows requests
    /// without a token where none can be had.
    pub fn new(endpoint: &str, tokenless: bool) -> Result<Self, MetadataError> {
        let http = Client::builder()
            .connect_timeout(PATIENCE)
            .timeout(PATIENCE)
            // The token is for this service alone.
            .redirect(Policy::none())
            .no_proxy()
            // It is plain HTTP on every instance. Reading the machine's certificates would be most of
            // what a node does to start.
            .tls_certs_only([])
            .build()
            .map_err(MetadataError::Client)?;
        let base = format!("{}/latest", endpoint.trim_end_matches('/'));
        Ok(Self {
            http,
            base,
            tokenless,
            memory: Mutex::default(),
        })
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The item, from memory where it was asked for before: the first question is for the identity document, which answers
    /// all others with it. Asked again until the deadline while the service does not answer: a machine that has just
    /// started may have no network yet, and many that start together exceed a rate.
    pub async fn get(&self, item: Item, deadline: Deadline) -> Result<String, MetadataError> {
        if self.memory().known.is_none() {
            let identity = unless_missing(self.fetch(IDENTITY, deadline).await)?;
            // A document that cannot be read says nothing.
            let identity = identity.and_then(|text| serde_json::from_str(&text).ok());
            self.memory().known = Some(identity.unwrap_or_default());
        }
        let (path, key) = item.names();
        let memory = self.memory().known.as_ref().and_then(|known| {
            let value = known.get(key)?.as_str()?;
            (!value.is_empty()).then(|| value.to_owned())
        });
        if let Some(value) = memory {
            return Ok(value);
        }
        let value = self.fetch(&format!("meta-data/{path}"), deadline).await?;
        let value = value.trim().to_owned();
        let mut memory = self.memory();
        let known = memory.known.get_or_insert_default();
        known.insert(key.to_owned(), value.as_str().into());
        Ok(value)
    }

    /// The name of the instance's RAM role; none when it has no role.
    pub async fn role_name(&self) -> Result<Option<String>, MetadataError> {
        let listed = unless_missing(self.fetch(ROLES, Deadline::after(Duration::ZERO)).await)?;
        let name = listed.as_deref().and_then(|text| text.lines().next());
        let name = name.map(|name| name.trim().trim_end_matches('/').to_owned());
        Ok(name.filter(|name| !name.is_empty()))
    }

    /// The JSON document with the role's credentials, all of it secret; none when the instance has not this role.
    pub async fn role_document(&self, role: &str) -> Result<Option<String>, MetadataError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !role.chars().all(plain) {
            // RAM has no such names, and this one would lead to another path.
            return Ok(None);
        }
        let path = format!("{ROLES}{role}");
        unless_missing(self.fetch(&path, Deadline::after(Duration::ZERO)).await)
    }

    /// Repeats a refusal that may pass a few times, and whatever may pass until the deadline.
    async fn fetch(&self, path: &str, deadline: Deadline) -> Result<String, MetadataError> {
        let mut pause = PAUSE;
        let mut attempt = 1;
        loop {
            let error = match self.attempt(path).await {
                Err(error) if error.is_passing() => error,
                outcome => return outcome,
            };
            let (answered, asked) = match &error {
                MetadataError::Refused { pause, .. } => (true, pause.unwrap_or_default()),
                _ => (false, Duration::ZERO),
            };
            let wait = pause.max(asked).min(LONGEST_PAUSE);
            if deadline.remaining() <= wait && !(answered && attempt < ATTEMPTS) {
                return Err(error);
            }
            tracing::info!("asking again in {wait:?}: {}", chain(&error));
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
            attempt += 1;
        }
    }

    async fn attempt(&self, path: &str) -> Result<String, MetadataError> {
        let token = self.token().await?;
        let mut request = self.http.get(format!("{}/{path}", self.base));
        if let Some(token) = token {
            request = request.header("X-aliyun-ecs-metadata-token", token.expose_secret());
        }
        let answer = request.send().await;
        let answer = answer.map_err(|source| self.unreachable(path, source))?;
        if answer.status() == StatusCode::UNAUTHORIZED {
            // The service has forgotten it.
            self.memory().token = None;
        }
        self.accept(path, answer).await
    }

    /// The token, a new one where the last has served its time.
    async fn token(&self) -> Result<Option<SecretString>, MetadataError> {
        if let Some((token, until)) = &self.memory().token
            && *until > Instant::now()
        {
            return Ok(Some(token.clone()));
        }
        let until = Instant::now() + TOKEN_USE;
        let token = self.new_token().await?;
        self.memory().token = token.clone().map(|token| (token, until));
        Ok(token)
    }

    /// A new token; none where requests may do without and none can be had. A machine that limits the
    /// hops of the answer never lets it get into a container: that is a timeout.
    async fn new_token(&self) -> Result<Option<SecretString>, MetadataError> {
        let asked = self
            .http
            .put(format!("{}/{TOKEN}", self.base))
            .header("X-aliyun-ecs-metadata-token-ttl-seconds", TOKEN_TTL_SECONDS)
            .send()
            .await;
        let answer = match asked {
            Ok(answer) => answer,
            Err(error) if self.tokenless && error.is_timeout() && !error.is_connect() => {
                return Ok(None);
            }
            Err(error) => return Err(self.unreachable(TOKEN, error)),
        };
        match self.accept(TOKEN, answer).await {
            Ok(token) => Ok(Some(token.into())),
            Err(error @ MetadataError::Refused { .. }) if self.tokenless && !error.is_passing() => {
                Ok(None)
            }
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

    async fn accept(&self, path: &str, answer: reqwest::Response) -> Result<String, MetadataError> {
        let status = answer.status();
        let wait = answer.headers().get(RETRY_AFTER);
        let seconds = wait.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let pause = seconds.map(Duration::from_secs);
        if status.is_success() {
            let text = answer.text().await;
            return text.map_err(|source| self.unreachable(path, source));
        }
        Err(MetadataError::Refused {
            base: self.base.clone(),
            item: path.to_owned(),
            status: status.as_u16(),
            pause,
        })
    }
}

fn unless_missing(outcome: Result<String, MetadataError>) -> Result<Option<String>, MetadataError> {
    match outcome {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.is_missing_item() => Ok(None),
        Err(error) => Err(error),
    }
}
