//! The instance metadata service: which machine, region and zone this is, and the credentials of its
//! RAM role. Token mode first; without a token only where the machine allows it and nobody forbids it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};

/// Where the service answers on every instance.
pub const DEFAULT_ENDPOINT: &str = "http://100.100.100.200";

const TOKEN_TTL_SECONDS: &str = "300";
const PATIENCE: Duration = Duration::from_secs(2);
const TOKEN: &str = "api/token";
const ROLES: &str = "meta-data/ram/security-credentials/";
/// How often one item is asked for: the service limits its rate, and its tokens may be forgotten.
const ATTEMPTS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(300);

/// Reads metadata. Which machine this is never changes while a process runs, and is kept.
#[derive(Debug)]
pub struct Metadata {
    http: Client,
    base: String,
    tokenless: bool,
    known: Mutex<HashMap<&'static str, String>>,
}

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// `i-…`
    InstanceId,
    /// `cn-beijing`
    RegionId,
    /// `cn-beijing-c`
    ZoneId,
}

/// Why an item could not be had.
#[derive(Debug, thiserror::Error)]
pub enum MetadataError {
    /// The HTTP client cannot be made.
    #[error("cannot build the HTTP client")]
    Client(#[source] reqwest::Error),
    /// The service does not answer: not an instance, or out of its reach.
    #[error("the metadata service at {base} does not answer for {item}; is this an instance?")]
    Unreachable {
        /// Where it was looked for.
        base: String,
        /// What was asked.
        item: String,
        /// Why not.
        #[source]
        source: reqwest::Error,
    },
    /// The service said no.
    #[error("the metadata service at {base} answers HTTP {status} for {item}")]
    Refused {
        /// Where it is.
        base: String,
        /// What was asked.
        item: String,
        /// Its answer.
        status: u16,
    },
}

impl MetadataError {
    /// Whether it may pass by itself.
    #[must_use]
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
    fn path(self) -> &'static str {
        match self {
            Self::InstanceId => "meta-data/instance-id",
            Self::RegionId => "meta-data/region-id",
            Self::ZoneId => "meta-data/zone-id",
        }
    }
}

impl Metadata {
    /// The service at this endpoint, to which `/latest/…` is appended. `tokenless` allows requests
    /// without a token where none can be had.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
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
            known: Mutex::default(),
        })
    }

    /// The item, from memory where it was asked for before.
    ///
    /// # Errors
    /// When the service does not answer or refuses.
    pub async fn get(&self, item: Item) -> Result<String, MetadataError> {
        let path = item.path();
        if let Some(value) = self
            .known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(path)
        {
            return Ok(value.clone());
        }
        let value = self.fetch(path).await?.trim().to_owned();
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(path, value.clone());
        Ok(value)
    }

    /// The name of the instance's RAM role; none when it has no role.
    ///
    /// # Errors
    /// When the service does not answer or refuses.
    pub async fn role_name(&self) -> Result<Option<String>, MetadataError> {
        let listed = unless_missing(self.fetch(ROLES).await)?;
        let name = listed.as_deref().and_then(|text| text.lines().next());
        let name = name.map(|name| name.trim().trim_end_matches('/').to_owned());
        Ok(name.filter(|name| !name.is_empty()))
    }

    /// The JSON document with the role's credentials, all of it secret; none when the instance has
    /// not this role.
    ///
    /// # Errors
    /// When the service does not answer or refuses.
    pub async fn role_document(&self, role: &str) -> Result<Option<String>, MetadataError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        if !role.chars().all(plain) {
            // RAM has no such names, and this one would lead to another path.
            return Ok(None);
        }
        unless_missing(self.fetch(&format!("{ROLES}{role}")).await)
    }

    async fn fetch(&self, path: &str) -> Result<String, MetadataError> {
        let mut attempt = 1;
        loop {
            match self.attempt(path).await {
                Err(error @ MetadataError::Refused { .. })
                    if error.is_passing() && attempt < ATTEMPTS =>
                {
                    tokio::time::sleep(PAUSE * attempt).await;
                    attempt += 1;
                }
                outcome => return outcome,
            }
        }
    }

    async fn attempt(&self, path: &str) -> Result<String, MetadataError> {
        let token = self.token().await?;
        let mut request = self.http.get(format!("{}/{path}", self.base));
        if let Some(token) = token {
            request = request.header("X-aliyun-ecs-metadata-token", token);
        }
        let answer = request.send().await;
        let answer = answer.map_err(|source| self.unreachable(path, source))?;
        self.accept(path, answer).await
    }

    /// A token for one request; none where the request may do without and none can be had. A machine
    /// that limits the hops of the answer never lets it get into a container: that is a timeout.
    async fn token(&self) -> Result<Option<String>, MetadataError> {
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
            Ok(token) => Ok(Some(token)),
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
        if status.is_success() {
            let text = answer.text().await;
            return text.map_err(|source| self.unreachable(path, source));
        }
        Err(MetadataError::Refused {
            base: self.base.clone(),
            item: path.to_owned(),
            status: status.as_u16(),
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
