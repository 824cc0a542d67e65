//! Requests to the HTTP port of a process.

use reqwest::{Client, ClientBuilder, Method, RequestBuilder};
use serde_json::Value;

use crate::common::process::Process;
use crate::common::wait::until;
use crate::running::SOON;

#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) text: String,
}

impl HttpResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    /// The result of this check; `None` if the response has no such check.
    pub(crate) fn is_ok(&self, name: &str) -> Option<bool> {
        let json = self.json();
        let mut checks = json["checks"].as_array().unwrap().iter();
        let check = checks.find(|check| check["name"] == name)?;
        check["ok"].as_bool()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let json = self.json();
        let checks = json["checks"].as_array().unwrap().iter();
        checks.map(|check| check["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// The URL of the HTTP server of the process.
pub(crate) async fn address(process: &Process) -> String {
    until("/healthz is served", SOON, async || {
        let stderr = process.stderr();
        let line = stderr.lines().find(|line| line.contains("serving /healthz"))?;
        let address = line.split("address=").nth(1)?;
        Some(format!("http://{}", address.split_whitespace().next()?))
    })
    .await
}

pub(crate) async fn get(http: &str, path: &str) -> HttpResponse {
    request(Method::GET, http, path).await
}

pub(crate) async fn request(method: Method, http: &str, path: &str) -> HttpResponse {
    response(client().request(method, format!("{http}{path}"))).await
}

/// A client that waits long enough for a busy machine.
pub(crate) fn client() -> Client {
    builder().build().unwrap()
}

pub(crate) fn builder() -> ClientBuilder {
    Client::builder().timeout(SOON).no_proxy()
}

/// Sends a request that must get a response.
pub(crate) async fn response(request: RequestBuilder) -> HttpResponse {
    let response = request.send().await.unwrap();
    HttpResponse {
        status: response.status().as_u16(),
        text: response.text().await.unwrap(),
    }
}
