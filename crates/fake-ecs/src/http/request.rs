//! A parsed HTTP request.

use std::collections::BTreeMap;

use hyper::{HeaderMap, Method, Uri};

use super::query;

#[derive(Debug)]
pub(super) struct HttpRequest<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) query: BTreeMap<String, String>,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: &'a [u8],
}

impl<'a> HttpRequest<'a> {
    pub(super) fn new(method: &'a Method, uri: &'a Uri, headers: &HeaderMap, body: &'a [u8]) -> Self {
        let headers = headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
            (name.as_str().to_owned(), value)
        });
        Self {
            method: method.as_str(),
            path: uri.path(),
            query: query::decode(uri.query().unwrap_or_default()),
            headers: headers.collect(),
            body,
        }
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(super) fn host(&self) -> &str {
        self.header("host").unwrap_or("ecs.example")
    }

    /// The parameters in the body, if it is a form.
    pub(super) fn form(&self) -> BTreeMap<String, String> {
        let kind = self.header("content-type").unwrap_or_default();
        if kind.starts_with("application/x-www-form-urlencoded") {
            query::decode(&String::from_utf8_lossy(self.body))
        } else {
            BTreeMap::new()
        }
    }
}
