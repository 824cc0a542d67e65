//! Objects as JSON, for commands of operators. Callers name the collections; none reads Secrets.

use kube::Client;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::access::{NOT_FOUND, request_unless};
use super::{Cluster, Result};

/// Objects per page of a list.
const PAGE: u32 = 500;

impl Cluster {
    /// The version of the API server.
    pub async fn version(&self) -> Result<Option<Value>> {
        get(&self.client(), "read the version", "/version").await
    }

    /// An object of this collection, such as `/api/v1/persistentvolumes`; none if it does not exist.
    pub async fn object(&self, collection: &str, name: &str) -> Result<Option<Value>> {
        let path = format!("{collection}/{}", segment(name));
        get(&self.client(), &format!("read {path}"), &path).await
    }

    /// All objects of this collection; none if its API does not exist.
    pub async fn objects(&self, collection: &str) -> Result<Option<Vec<Value>>> {
        let (client, mut all, mut from) = (self.client(), Vec::new(), String::new());
        let step = format!("list {}", collection.rsplit('/').next().unwrap_or_default());
        loop {
            let path = format!("{collection}?limit={PAGE}{from}");
            let Some(mut page) = get(&client, &step, &path).await? else {
                return Ok(None);
            };
            if let Some(items) = page.get_mut("items").and_then(Value::as_array_mut) {
                all.append(items);
            }
            let next = page.pointer("/metadata/continue").and_then(Value::as_str);
            match next.filter(|token| !token.is_empty()) {
                Some(token) => from = format!("&continue={}", segment(token)),
                None => return Ok(Some(all)),
            }
        }
    }
}

/// A name in a path or query.
pub(crate) fn segment(name: &str) -> String {
    let encoded = utf8_percent_encode(name, NON_ALPHANUMERIC).to_string();
    encoded.replace("%2D", "-").replace("%2E", ".")
}

async fn get(client: &Client, step: &str, path: &str) -> Result<Option<Value>> {
    let request = http::Request::get(path).body(Vec::new());
    let request = request.expect("encoded names are valid in paths");
    request_unless(&[NOT_FOUND], step, client.request(request)).await
}
