//! A client of the API server: a request costs milliseconds, a start of kubectl a large part of a second.

use std::fmt;
use std::time::Duration;

use reqwest::{Certificate, Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// Retries end after this time.
const RETRY_TIMEOUT: Duration = Duration::from_secs(120);
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// The API server, with the token of one user.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    server: String,
    token: String,
    http: Client,
}

/// An error response.
struct ErrorResponse {
    status: StatusCode,
    message: String,
}

impl fmt::Debug for ErrorResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.message)
    }
}

impl Api {
    /// A client with the CA certificate and the user's token.
    pub(crate) fn new(server: &str, authority: &str, token: &str) -> Self {
        let authority = Certificate::from_pem(authority.as_bytes()).expect("the CA certificate is valid");
        let http = Client::builder()
            .tls_certs_only([authority])
            .timeout(CALL_TIMEOUT)
            .no_proxy()
            .build()
            .expect("a client with one certificate");
        Self {
            server: server.to_owned(),
            token: token.to_owned(),
            http,
        }
    }

    /// Whether the API server is ready.
    pub(crate) async fn is_ready(&self) -> bool {
        let request = self.http.get(format!("{}/readyz", self.server));
        let response = request.bearer_auth(&self.token).send().await;
        response.is_ok_and(|response| response.status().is_success())
    }

    /// An object, if it exists.
    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        match self.send(&Method::GET, path, None).await {
            Ok(object) => Some(object),
            Err(error) if error.status == StatusCode::NOT_FOUND => None,
            Err(error) => panic!("GET {path}: {error:?}"),
        }
    }

    /// The objects of a collection.
    pub(crate) async fn list(&self, path: &str) -> Vec<Value> {
        let mut list = self.send_ok(&Method::GET, path, None).await;
        serde_json::from_value(list["items"].take()).expect("a list has items")
    }

    /// Creates an object of a collection. If it exists already, an attempt with a lost response created it.
    pub(crate) async fn create(&self, path: &str, object: &Value) -> Value {
        match self.send(&Method::POST, path, Some(object)).await {
            Ok(object) => object,
            Err(error) if error.status == StatusCode::CONFLICT => Value::Null,
            Err(error) => panic!("POST {path}: {error:?}\n{object}"),
        }
    }

    /// Posts an object that is not stored, such as a review.
    pub(crate) async fn post(&self, path: &str, object: &Value) -> Value {
        self.send_ok(&Method::POST, path, Some(object)).await
    }

    /// Changes an object with a merge patch.
    pub(crate) async fn change(&self, path: &str, patch: &Value) -> Value {
        self.send_ok(&Method::PATCH, path, Some(patch)).await
    }

    /// Changes an object with a merge patch if it exists.
    pub(crate) async fn patch_if_exists(&self, path: &str, patch: &Value) {
        match self.send(&Method::PATCH, path, Some(patch)).await {
            Err(error) if error.status != StatusCode::NOT_FOUND => {
                panic!("PATCH {path}: {error:?}");
            }
            Ok(_) | Err(_) => {}
        }
    }

    /// Deletes an object if it exists.
    pub(crate) async fn delete(&self, path: &str) {
        self.delete_with(path, &json!({})).await;
    }

    /// Deletes without grace period, as an operator does if kubelet is unavailable.
    pub(crate) async fn force_delete(&self, path: &str) {
        self.delete_with(path, &json!({"gracePeriodSeconds": 0})).await;
    }

    async fn delete_with(&self, path: &str, options: &Value) {
        match self.send(&Method::DELETE, path, Some(options)).await {
            Err(error) if error.status != StatusCode::NOT_FOUND => {
                panic!("DELETE {path}: {error:?}");
            }
            Ok(_) | Err(_) => {}
        }
    }

    async fn send_ok(&self, method: &Method, path: &str, body: Option<&Value>) -> Value {
        let response = self.send(method, path, body).await;
        response.unwrap_or_else(|error| panic!("{method} {path}: {error:?}"))
    }

    /// One call, retried while the API server is unavailable or throttles it.
    async fn send(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<Value, ErrorResponse> {
        let end = Instant::now() + RETRY_TIMEOUT;
        loop {
            let failure = match self.send_once(method, path, body).await {
                Ok(Err(error)) if is_temporary(error.status) => format!("{error:?}"),
                Ok(response) => return response,
                Err(error) => format!("{error:?}"),
            };
            assert!(Instant::now() < end, "{method} {path}: {failure}");
            sleep(RETRY_INTERVAL).await;
        }
    }

    async fn send_once(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Result<Value, ErrorResponse>, reqwest::Error> {
        let url = format!("{}{path}", self.server);
        let mut request = self.http.request(method.clone(), url).bearer_auth(&self.token);
        if let Some(body) = body {
            let kind = match *method {
                Method::PATCH => "application/merge-patch+json",
                _ => "application/json",
            };
            request = request.header("content-type", kind).body(body.to_string());
        }
        let response = request.send().await?;
        let status = response.status();
        let text = response.text().await?;
        let response: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(match status.is_success() {
            true => Ok(response),
            false => Err(ErrorResponse {
                status,
                message: response["message"]
                    .as_str()
                    .map_or_else(|| response.to_string(), str::to_owned),
            }),
        })
    }
}

fn is_temporary(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

/// A required string field.
pub(crate) fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    let found = object.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_else(|| panic!("no text {pointer} in {object}"))
}
