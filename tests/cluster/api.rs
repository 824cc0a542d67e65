//! A client of the API server: a request costs milliseconds, a start of kubectl a large part of a second.

use std::fmt;
use std::time::Duration;

use reqwest::{Certificate, Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

/// Timeout of a call.
const CALL: Duration = Duration::from_secs(60);
/// How long to retry while the API server is unavailable.
const AWAY: Duration = Duration::from_secs(120);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(200);

/// The API server, with the token of one user.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    server: String,
    token: String,
    http: Client,
}

/// An error response.
struct Refused {
    status: StatusCode,
    message: String,
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.message)
    }
}

impl Api {
    /// A client with the CA certificate and the user's token.
    pub(crate) fn new(server: &str, authority: &str, token: &str) -> Self {
        let authority = Certificate::from_pem(authority.as_bytes()).expect("it was just made");
        let http = Client::builder()
            .tls_certs_only([authority])
            .timeout(CALL)
            .no_proxy()
            .build()
            .expect("a client with one certificate");
        Self {
            server: server.to_owned(),
            token: token.to_owned(),
            http,
        }
    }

    /// Whether it serves.
    pub(crate) async fn is_ready(&self) -> bool {
        let request = self.http.get(format!("{}/readyz", self.server));
        let answer = request.bearer_auth(&self.token).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// An object, if it exists.
    pub(crate) async fn get(&self, path: &str) -> Option<Value> {
        match self.send(&Method::GET, path, None).await {
            Ok(object) => Some(object),
            Err(refused) if refused.status == StatusCode::NOT_FOUND => None,
            Err(refused) => panic!("GET {path}: {refused:?}"),
        }
    }

    /// The objects of a collection.
    pub(crate) async fn list(&self, path: &str) -> Vec<Value> {
        let mut list = self.must(&Method::GET, path, None).await;
        serde_json::from_value(list["items"].take()).expect("a list has items")
    }

    /// Creates an object of a collection. If it exists already, an attempt with a lost response created it.
    pub(crate) async fn create(&self, path: &str, object: &Value) -> Value {
        match self.send(&Method::POST, path, Some(object)).await {
            Ok(object) => object,
            Err(refused) if refused.status == StatusCode::CONFLICT => Value::Null,
            Err(refused) => panic!("POST {path}: {refused:?}\n{object}"),
        }
    }

    /// Posts an object that is not stored, such as a review.
    pub(crate) async fn ask(&self, path: &str, object: &Value) -> Value {
        self.must(&Method::POST, path, Some(object)).await
    }

    /// Changes an object with a merge patch.
    pub(crate) async fn change(&self, path: &str, patch: &Value) -> Value {
        self.must(&Method::PATCH, path, Some(patch)).await
    }

    /// Changes an object with a merge patch if it exists.
    pub(crate) async fn change_if_exists(&self, path: &str, patch: &Value) {
        match self.send(&Method::PATCH, path, Some(patch)).await {
            Err(refused) if refused.status != StatusCode::NOT_FOUND => {
                panic!("PATCH {path}: {refused:?}");
            }
            Ok(_) | Err(_) => {}
        }
    }

    /// Deletes an object if it exists.
    pub(crate) async fn delete(&self, path: &str) {
        self.delete_with(path, &json!({})).await;
    }

    /// Deletes without grace period, as an operator does if kubelet is unavailable.
    pub(crate) async fn delete_by_force(&self, path: &str) {
        self.delete_with(path, &json!({"gracePeriodSeconds": 0})).await;
    }

    async fn delete_with(&self, path: &str, options: &Value) {
        match self.send(&Method::DELETE, path, Some(options)).await {
            Err(refused) if refused.status != StatusCode::NOT_FOUND => {
                panic!("DELETE {path}: {refused:?}");
            }
            Ok(_) | Err(_) => {}
        }
    }

    async fn must(&self, method: &Method, path: &str, body: Option<&Value>) -> Value {
        let answer = self.send(method, path, body).await;
        answer.unwrap_or_else(|refused| panic!("{method} {path}: {refused:?}"))
    }

    /// One call, retried while the API server is unavailable or requests it.
    async fn send(&self, method: &Method, path: &str, body: Option<&Value>) -> Result<Value, Refused> {
        let end = Instant::now() + AWAY;
        loop {
            let failure = match self.once(method, path, body).await {
                Ok(Err(refused)) if is_temporary(refused.status) => format!("{refused:?}"),
                Ok(answer) => return answer,
                Err(error) => format!("{error:?}"),
            };
            assert!(Instant::now() < end, "{method} {path}: {failure}");
            sleep(PAUSE).await;
        }
    }

    async fn once(
        &self,
        method: &Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Result<Value, Refused>, reqwest::Error> {
        let url = format!("{}{path}", self.server);
        let mut request = self.http.request(method.clone(), url).bearer_auth(&self.token);
        if let Some(body) = body {
            let kind = match *method {
                Method::PATCH => "application/merge-patch+json",
                _ => "application/json",
            };
            request = request.header("content-type", kind).body(body.to_string());
        }
        let answer = request.send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        let answer: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(match status.is_success() {
            true => Ok(answer),
            false => Err(Refused {
                status,
                message: answer["message"]
                    .as_str()
                    .map_or_else(|| answer.to_string(), str::to_owned),
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
