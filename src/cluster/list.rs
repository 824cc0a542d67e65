//! Complete lists in pages. A list that fails is an error: an object that was not read must not count as missing.

use std::fmt::Debug;

use kube::Api;
use kube::api::ListParams;
use serde::de::DeserializeOwned;

use super::access::soon;
use super::error::code;
use crate::base::Elapsed;

/// Objects per page, which limits the memory of parsing.
const PAGE: u32 = 500;

/// How often a list starts again because the API server no longer has the version of its first page.
const TRIES: usize = 3;

/// HTTP status of a page whose version the API server no longer has.
const EXPIRED: u16 = 410;

/// A list that is not complete.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    #[error("cannot list {resource}: {message}. Grant the user of the kubeconfig `list` of {resource}")]
    Forbidden { resource: String, message: String },
    #[error(
        "cannot list {resource}: the API server does not accept the credentials: {message}. Renew those of the kubeconfig"
    )]
    Unauthorized { resource: String, message: String },
    #[error("cannot list {resource}: no response in time. Check whether the API server is reachable")]
    TimedOut { resource: String },
    #[error("cannot list {resource}: the API server responds with {code}: {message}")]
    Rejected {
        resource: String,
        code: u16,
        message: String,
    },
    #[error(
        "cannot list {resource}: the API server has the group {group} without them. Install or upgrade all CRDs of snapshots"
    )]
    NotServed { resource: String, group: &'static str },
    #[error("cannot list {resource}. Check whether the API server is reachable")]
    Unreadable {
        resource: String,
        #[source]
        source: Box<kube::Error>,
    },
}

impl ListError {
    /// Whether no list can be read: the API server is unreachable, or rejects the credentials.
    #[must_use]
    pub fn is_general(&self) -> bool {
        match self {
            Self::Unauthorized { .. } | Self::TimedOut { .. } | Self::Unreadable { .. } => true,
            Self::Forbidden { .. } | Self::Rejected { .. } | Self::NotServed { .. } => false,
        }
    }

    pub(super) fn new(resource: &str, outcome: Result<kube::Error, Elapsed>) -> Self {
        let resource = resource.to_owned();
        match outcome {
            Err(Elapsed) => Self::TimedOut { resource },
            Ok(kube::Error::Api(status)) => {
                let (code, message) = (status.code, status.message);
                match code {
                    401 => Self::Unauthorized { resource, message },
                    403 => Self::Forbidden { resource, message },
                    _ => Self::Rejected {
                        resource,
                        code,
                        message,
                    },
                }
            }
            Ok(source) => Self::Unreadable {
                resource,
                source: Box::new(source),
            },
        }
    }
}

pub(super) async fn list<K>(api: &Api<K>, resource: &str) -> Result<Vec<K>, ListError>
where
    K: Clone + Debug + DeserializeOwned,
{
    let all = list_selected(api, &ListParams::default()).await;
    all.map_err(|outcome| ListError::new(resource, outcome))
}

/// All objects that the selectors of these parameters select.
pub(super) async fn list_selected<K>(
    api: &Api<K>,
    selectors: &ListParams,
) -> Result<Vec<K>, Result<kube::Error, Elapsed>>
where
    K: Clone + Debug + DeserializeOwned,
{
    let mut tries = 1;
    loop {
        match pages(api, selectors.clone()).await {
            Err(Ok(error)) if code(&error) == Some(EXPIRED) && tries < TRIES => tries += 1,
            outcome => return outcome,
        }
    }
}

async fn pages<K>(api: &Api<K>, selectors: ListParams) -> Result<Vec<K>, Result<kube::Error, Elapsed>>
where
    K: Clone + Debug + DeserializeOwned,
{
    let mut objects = Vec::new();
    let mut params = selectors.limit(PAGE);
    loop {
        let page = soon().bound(api.list(&params)).await.map_err(Err)?.map_err(Ok)?;
        objects.extend(page.items);
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return Ok(objects),
        }
    }
}
