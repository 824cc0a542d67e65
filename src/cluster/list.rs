//! Complete lists in pages. A list that fails is an error: an object that was not read must not count as missing.

use std::fmt::Debug;

use kube::Api;
use kube::api::ListParams;
use serde::de::DeserializeOwned;

use super::access::soon;
use super::error::code;
use super::{Error, Result};
use crate::base::Elapsed;

/// Objects per page, which limits the memory of parsing.
const PAGE: u32 = 500;

/// How often a list starts again because the API server no longer has the version of its first page.
const TRIES: usize = 3;

/// HTTP status of a page whose version the API server no longer has.
const EXPIRED: u16 = 410;

pub(super) async fn list<K>(api: &Api<K>, resource: &str) -> Result<Vec<K>>
where
    K: Clone + Debug + DeserializeOwned,
{
    list_selected(api, resource, &ListParams::default()).await
}

/// All objects that the selectors of these parameters select.
pub(super) async fn list_selected<K>(api: &Api<K>, resource: &str, selectors: &ListParams) -> Result<Vec<K>>
where
    K: Clone + Debug + DeserializeOwned,
{
    let mut tries = 1;
    loop {
        match pages(api, selectors.clone()).await {
            Err(Ok(error)) if code(&error) == Some(EXPIRED) && tries < TRIES => tries += 1,
            outcome => return outcome.map_err(|outcome| Error::of(&format!("list {resource}"), outcome)),
        }
    }
}

type Outcome<T> = std::result::Result<T, std::result::Result<kube::Error, Elapsed>>;

async fn pages<K>(api: &Api<K>, selectors: ListParams) -> Outcome<Vec<K>>
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
