//! The pages of the HTTP port.

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get};
use http::{HeaderName, Method, StatusCode, Uri, header};
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::json;
use tokio::sync::Semaphore;

use super::access::Authorizer;
use super::disk_state::DiskState;
use super::health::Health;
use super::metrics::{self, Metrics};
use crate::cluster::review::Decision;
use crate::telemetry::{Telemetry, Timelines};

const JSON: &str = "application/json";

const VOLUMES: &str = "/debug/volumes";

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
    pub(crate) authorizer: Arc<Authorizer>,
}

/// A page for browsers. A trait, so that the linker leaves the status page out of the program of the node.
#[async_trait]
pub(crate) trait Page: Debug + Send + Sync {
    /// The page, which is read from the state of the process.
    async fn response(&self, health: &Health, timelines: &Timelines, query: Option<&str>) -> Response;
}

/// Pages other than the probes at the same time.
const MAX_PAGES: usize = 16;

/// The routes of the port. No page contains a key or a secret.
pub(super) fn router(site: Site) -> Router {
    let site = Arc::new(site);
    let admission = Arc::new((Arc::clone(&site), Semaphore::new(MAX_PAGES)));
    let admission = from_fn_with_state(admission, admit);
    let page = |page: MethodRouter<Arc<Site>>| page.route_layer(admission.clone());
    let mut router = Router::new()
        .route("/healthz", get(alive))
        .route("/readyz", get(ready))
        .route("/metrics", page(get(metrics)))
        .route("/debug/volumes", page(get(volumes)))
        .route("/debug/volumes/", page(get(volumes)))
        .route("/debug/volumes/{*volume}", page(get(volume)));
    if site.status.is_some() {
        router = router.route("/status", page(get(status)));
    }
    router
        .fallback(async || (StatusCode::NOT_FOUND, NOT_FOUND))
        .method_not_allowed_fallback(async |method: Method| {
            let text = format!("{method} is not allowed; use GET or HEAD\n");
            (StatusCode::METHOD_NOT_ALLOWED, text)
        })
        // A cached response would be outdated.
        .layer(map_response(async |response: Response| {
            ([(header::CACHE_CONTROL, "no-store")], response)
        }))
        .with_state(site)
}

/// Limits the pages that are assembled at the same time, and who may read them: slow readers and reviews leave
/// connections for the probes.
async fn admit(State(admission): State<Arc<(Arc<Site>, Semaphore)>>, request: Request, next: Next) -> Response {
    let (site, permits) = admission.as_ref();
    let Ok(_permit) = permits.try_acquire() else {
        let text = "too many requests at the same time; try again\n";
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    };
    let path = request.uri().path();
    match site.authorizer.check(request.headers(), path).await {
        Some(Decision::Allowed) => next.run(request).await,
        Some(Decision::Unauthenticated) => {
            let scheme = [(header::WWW_AUTHENTICATE, "Bearer")];
            let text = "a valid bearer token of this cluster is required\n";
            (StatusCode::UNAUTHORIZED, scheme, text).into_response()
        }
        Some(Decision::Forbidden) => {
            let text = format!("the user needs a ClusterRole with the verb get on the nonResourceURL {path}\n");
            (StatusCode::FORBIDDEN, text).into_response()
        }
        None => {
            let text = "the API server could not authorize the request; see the log of the driver\n";
            (StatusCode::SERVICE_UNAVAILABLE, text).into_response()
        }
    }
}

async fn alive(State(site): State<Arc<Site>>) -> impl IntoResponse {
    let socket = site.health.alive().await;
    (
        probe_status(socket.ok),
        format!("{}: {}\n", socket.name, socket.message),
    )
}

async fn ready(State(site): State<Arc<Site>>) -> impl IntoResponse {
    let readiness = site.health.ready().await;
    (probe_status(readiness.ready), json_page(&readiness))
}

fn probe_status(ok: bool) -> StatusCode {
    match ok {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    }
}

async fn metrics(State(site): State<Arc<Site>>) -> impl IntoResponse {
    let kind = [(header::CONTENT_TYPE, metrics::CONTENT_TYPE)];
    (kind, site.metrics.encode().await)
}

async fn status(State(site): State<Arc<Site>>, uri: Uri) -> Response {
    // The route exists only with the page.
    let Some(page) = &site.status else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let timelines = &site.telemetry.timelines;
    page.response(&site.health, timelines, uri.query()).await
}

/// All volumes with a history, each with its last call.
async fn volumes(State(site): State<Arc<Site>>) -> impl IntoResponse {
    let last = site.telemetry.timelines.last_calls().into_iter();
    let volumes: Vec<_> = last
        .map(|(volume, call)| json!({"volume": volume, "lastCall": *call}))
        .collect();
    json_page(&json!({"volumes": volumes}))
}

/// The history of a volume, and the state of its disk.
async fn volume(State(site): State<Arc<Site>>, uri: Uri) -> Response {
    // `Path` would reject what is not UTF-8.
    let volume = uri.path().strip_prefix(VOLUMES).unwrap_or_default().trim_matches('/');
    let volume: &str = &percent_decode_str(volume).decode_utf8_lossy();
    let history = site.telemetry.timelines.history(volume);
    let id = history.as_ref().map_or(volume, |history| &history.volume);
    let disk = match &site.disks {
        Some(disks) => disks.read(id, history.is_some()).await,
        None => None,
    };
    let mut page = match (&history, &disk) {
        (Some(history), _) => json!(history),
        (None, Some(Ok(_))) => json!({"volume": id, "names": [], "calls": []}),
        (None, _) => {
            let mut error = format!(
                "this process has handled no call for {volume:?} since it started; give a disk ID or the name of a \
                 PersistentVolume"
            );
            if let Some(Err(reason)) = disk {
                error += &format!("; the state of the disk could not be read: {reason}");
            }
            return (StatusCode::NOT_FOUND, json_page(&json!({ERROR: error}))).into_response();
        }
    };
    if let Some(disk) = disk {
        page["disk"] = disk.unwrap_or_else(|error| json!({"error": error}));
    }
    json_page(&page).into_response()
}

fn json_page(page: &impl Serialize) -> ([(HeaderName, &'static str); 1], String) {
    let text = serde_json::to_string(page).expect("strings and numbers serialize");
    ([(header::CONTENT_TYPE, JSON)], text + "\n")
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use tower::Service;

    use super::*;

    /// The status and the text of a page of a node whose instance is unknown.
    async fn get(path: &str) -> (StatusCode, String) {
        let telemetry = Telemetry::default();
        let site = Site {
            health: Health {
                unknown_location: Some("no metadata".to_owned()),
                ..Health::new("unix:///csi.sock".parse().unwrap())
            },
            metrics: Metrics::new("node", &telemetry.metrics, Vec::new()),
            telemetry,
            status: None,
            disks: None,
            authorizer: Arc::default(),
        };
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router(site).call(request).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn volumes_are_found_by_any_name() {
        for (path, name) in [
            ("/debug/volumes/d-1", "d-1"),
            ("/debug/volumes//d-1/", "d-1"),
            ("/debug/volumes/a%2Fb", "a/b"),
            ("/debug/volumes/%2Fa%2F", "/a/"),
            ("/debug/volumes/%ff", "\u{fffd}"),
            ("/debug/volumes//", ""),
        ] {
            let (status, text) = get(path).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
            let start = json!(format!("this process has handled no call for {name:?} since")).to_string();
            let start = format!("{{\"error\":{}", start.trim_end_matches('"'));
            assert!(text.starts_with(&start), "{path}: {text}");
        }
        assert_eq!(get("/debug/volumes/").await.1, "{\"volumes\":[]}\n");
    }

    #[tokio::test]
    async fn readiness_starts_with_the_result() {
        let (status, text) = get("/readyz").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        let check = "{\"name\":\"location\",\"ok\":false,\"message\":\"no metadata\"}";
        assert_eq!(text, format!("{{\"ready\":false,\"checks\":[{check}]}}\n"));
    }

    #[tokio::test]
    async fn clients_recognize_a_page_that_does_not_exist() {
        let (status, text) = get("/other").await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(text.starts_with(crate::ops::process_client::NOT_FOUND_START), "{text}");
    }
}
