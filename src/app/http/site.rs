//! The pages of the HTTP port.

use std::fmt::Debug;

use async_trait::async_trait;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Bytes;
use percent_encoding::percent_decode_str;
use serde_json::json;

use tokio::sync::Semaphore;

use super::access::{Access, Authorizer};
use super::disk_state::DiskState;
use crate::app::health::Health;
use crate::app::metrics::{self, Metrics};
use crate::app::telemetry::{Telemetry, Timelines};

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";
const HTML: &str = "text/html; charset=utf-8";

const VOLUMES: &str = "/debug/volumes";
const STATUS: &str = "/status";

const NOT_FOUND: &str = "not found; the pages are /healthz (liveness), /readyz (readiness), /metrics, \
                         /debug/volumes, /debug/volumes/ID and, with --status-page of the controller, /status\n";

/// Key of the reason in the response for a volume without a history.
const ERROR: &str = "error";

/// The sources of the pages.
#[derive(Debug)]
pub(crate) struct Site {
    pub(crate) health: Health,
    pub(crate) metrics: Metrics,
    pub(crate) telemetry: Telemetry,
    /// Set if the page for browsers is enabled.
    pub(crate) status: Option<Box<dyn Page>>,
    /// The disks in the cloud, for a role that calls it.
    pub(crate) disks: Option<Box<dyn DiskState>>,
    pub(crate) authorizer: Authorizer,
    /// Limits the pages that are assembled at the same time.
    pub(crate) pages: Semaphore,
}

/// A page for browsers. A trait, so that the linker leaves the status page out of the program of the node.
#[async_trait]
pub(crate) trait Page: Debug + Send + Sync {
    /// The content, which is read from the state of the process.
    async fn html(&self, health: &Health, timelines: &Timelines) -> String;

    fn headers(&self) -> Vec<(HeaderName, HeaderValue)>;
}

/// Pages other than the probes at the same time.
pub(crate) const MAX_PAGES: usize = 16;

impl Site {
    /// The response. It never contains a key or a secret.
    pub(super) async fn respond(&self, method: &Method, path: &str, headers: &HeaderMap) -> Response<Full<Bytes>> {
        let is_probe = matches!(path, "/healthz" | "/readyz");
        let status_page = self.status.as_ref().filter(|_| path == STATUS);
        let volume = path
            .strip_prefix(VOLUMES)
            .filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let is_page = is_probe || path == "/metrics" || volume.is_some() || status_page.is_some();
        if !is_page {
            return response(StatusCode::NOT_FOUND, TEXT, NOT_FOUND.to_owned());
        }
        if !matches!(*method, Method::GET | Method::HEAD) {
            let text = format!("{method} is not allowed; use GET or HEAD\n");
            let mut response = response(StatusCode::METHOD_NOT_ALLOWED, TEXT, text);
            let allowed = header::HeaderValue::from_static("GET, HEAD");
            response.headers_mut().insert(header::ALLOW, allowed);
            return response;
        }
        if is_probe {
            return self.probe(path).await;
        }
        // Slow readers and reviews leave connections for the probes.
        let Ok(_page) = self.pages.try_acquire() else {
            let text = "too many requests at the same time; try again\n".to_owned();
            return response(StatusCode::SERVICE_UNAVAILABLE, TEXT, text);
        };
        if let Some(refused) = refusal(&self.authorizer.check(headers, path).await, path) {
            return refused;
        }
        if let Some(page) = status_page {
            let text = page.html(&self.health, &self.telemetry.timelines).await;
            let mut response = response(StatusCode::OK, HTML, text);
            for (name, value) in page.headers() {
                response.headers_mut().insert(name, value);
            }
            return response;
        }
        match volume {
            None => response(StatusCode::OK, metrics::CONTENT_TYPE, self.metrics.encode().await),
            Some("" | "/") => self.volumes(),
            Some(volume) => {
                let volume = percent_decode_str(volume.trim_matches('/'));
                self.volume(&volume.decode_utf8_lossy()).await
            }
        }
    }

    async fn probe(&self, path: &str) -> Response<Full<Bytes>> {
        if path == "/healthz" {
            let socket = self.health.alive().await;
            let text = format!("{}: {}\n", socket.name, socket.message);
            return response(probe_status(socket.ok), TEXT, text);
        }
        let readiness = self.health.ready().await;
        let text = serde_json::to_string(&readiness).expect("strings and booleans serialize");
        response(probe_status(readiness.ready), JSON, text + "\n")
    }

    /// All volumes with a history, each with its last call.
    fn volumes(&self) -> Response<Full<Bytes>> {
        let volumes: Vec<_> = self
            .telemetry
            .timelines
            .last_calls()
            .into_iter()
            .map(|(volume, call)| json!({"volume": volume, "lastCall": *call}))
            .collect();
        let text = json!({"volumes": volumes}).to_string();
        response(StatusCode::OK, JSON, text + "\n")
    }

    async fn volume(&self, volume: &str) -> Response<Full<Bytes>> {
        let history = self.telemetry.timelines.history(volume);
        let id = history.as_ref().map_or(volume, |history| &history.volume);
        let disk = match &self.disks {
            Some(disks) => disks.read(id, history.is_some()).await,
            None => None,
        };
        let mut page = match (&history, &disk) {
            (Some(history), _) => json!(history),
            (None, Some(Ok(_))) => json!({"volume": id, "names": [], "calls": []}),
            (None, _) => {
                let mut error = format!(
                    "this process has handled no call for {volume:?} since it started; give a disk ID or the name \
                     of a PersistentVolume"
                );
                if let Some(Err(reason)) = disk {
                    error += &format!("; the state of the disk could not be read: {reason}");
                }
                let text = json!({ERROR: error}).to_string();
                return response(StatusCode::NOT_FOUND, JSON, text + "\n");
            }
        };
        if let Some(disk) = disk {
            page["disk"] = disk.unwrap_or_else(|error| json!({"error": error}));
        }
        response(StatusCode::OK, JSON, page.to_string() + "\n")
    }
}

/// The response to a request that is not permitted.
fn refusal(access: &Access, path: &str) -> Option<Response<Full<Bytes>>> {
    let (status, text) = match access {
        Access::Allowed => return None,
        Access::Unauthenticated => (
            StatusCode::UNAUTHORIZED,
            "a valid bearer token of this cluster is required\n".to_owned(),
        ),
        Access::Forbidden => (
            StatusCode::FORBIDDEN,
            format!("the user needs a ClusterRole with the verb get on the nonResourceURL {path}\n"),
        ),
        Access::Unavailable => (
            StatusCode::SERVICE_UNAVAILABLE,
            "the API server could not authorize the request; see the log of the driver\n".to_owned(),
        ),
    };
    let mut response = response(status, TEXT, text);
    if status == StatusCode::UNAUTHORIZED {
        let scheme = header::HeaderValue::from_static("Bearer");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
    }
    Some(response)
}

fn probe_status(ok: bool) -> StatusCode {
    if ok {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    }
}

fn response(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    // A cached response would be outdated.
    headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-store"));
    response
}
