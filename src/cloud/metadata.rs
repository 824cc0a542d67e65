//! The instance metadata service: which machine, region and zone this is. Token mode always.

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

/// Reads metadata and keeps it: what is asked for here never changes while a process runs.
#[derive(Debug)]
pub struct Metadata {
    http: Client,
    base: String,
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
        item: &'static str,
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
        item: &'static str,
        /// Its answer.
        status: u16,
    },
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
    /// The service at this endpoint, to which `/latest/…` is appended.
    ///
    /// # Errors
    /// When the HTTP client cannot be made.
    pub fn new(endpoint: &str) -> Result<Self, MetadataError> {
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
        let unreachable = |source: reqwest::Error| MetadataError::Unreachable {
            base: self.base.clone(),
            item: path,
            source: source.without_url(),
        };
        let token = self
            .http
            .put(format!("{}/api/token", self.base))
            .header("X-aliyun-ecs-metadata-token-ttl-seconds", TOKEN_TTL_SECONDS)
            .send()
            .await
            .map_err(unreachable)?;
        let token = self
            .accept(path, token.status(), token)
            .await?
            .map_err(unreachable)?;
        let answer = self
            .http
            .get(format!("{}/{path}", self.base))
            .header("X-aliyun-ecs-metadata-token", token)
            .send()
            .await
            .map_err(unreachable)?;
        let value = self
            .accept(path, answer.status(), answer)
            .await?
            .map_err(unreachable)?;
        let value = value.trim().to_owned();
        self.known
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(path, value.clone());
        Ok(value)
    }

    async fn accept(
        &self,
        item: &'static str,
        status: StatusCode,
        response: reqwest::Response,
    ) -> Result<reqwest::Result<String>, MetadataError> {
        if status.is_success() {
            return Ok(response.text().await);
        }
        Err(MetadataError::Refused {
            base: self.base.clone(),
            item,
            status: status.as_u16(),
        })
    }
}
