//! The HTTP interface without a socket, for tests.

use std::sync::Arc;
use std::time::Duration;

use hyper::Request;
use tokio_util::task::TaskTracker;

use super::gateway::Gateway;
use super::request::HttpRequest;
use super::response::HttpOutcome;
use crate::credential::Keys;
use crate::run_to_completion::run_to_completion;
use crate::shared::Shared;

/// Handles HTTP requests as the server of the fake cloud does: API, metadata and control API.
#[derive(Debug, Clone)]
pub struct HttpHandler {
    gateway: Arc<Gateway>,
    tasks: TaskTracker,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exchange {
    Response(Response),
    /// The connection ends without a response.
    Reset,
    /// The connection stays open without a response.
    Hang,
}

/// The connection ended without a response.
#[derive(Debug, thiserror::Error)]
#[error("the connection is reset")]
pub struct Reset;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    /// The delay after the request.
    pub delay: Duration,
}

impl HttpHandler {
    pub(crate) fn new(shared: Arc<Shared>, keys: Keys) -> Self {
        Self {
            gateway: Arc::new(Gateway::new(shared, keys, true)),
            tasks: TaskTracker::new(),
        }
    }

    /// Handles a request without waiting. A call takes effect immediately, also with the fault `delay-before`, which
    /// then delays only the response. The body of a slow response is sent as a whole at the end of its period.
    #[must_use]
    pub fn respond(&self, request: &Request<Vec<u8>>) -> Exchange {
        self.gateway.handle_now(&parse(request)).into()
    }

    /// Handles a request in tokio's time, which may be paused: waits for the delays of the request and of the response.
    /// As in the real cloud, a call completes even if its caller stops waiting.
    ///
    /// # Errors
    /// The connection ended without a response.
    pub async fn serve(&self, request: Request<Vec<u8>>) -> Result<Response, Reset> {
        let gateway = Arc::clone(&self.gateway);
        let work = async move { gateway.handle(&parse(&request)).await };
        match run_to_completion(&self.tasks, work).await.into() {
            Exchange::Response(response) => {
                tokio::time::sleep(response.delay).await;
                Ok(response)
            }
            Exchange::Reset => Err(Reset),
            Exchange::Hang => std::future::pending().await,
        }
    }
}

fn parse(request: &Request<Vec<u8>>) -> HttpRequest<'_> {
    HttpRequest::new(request.method(), request.uri(), request.headers(), request.body())
}

impl From<HttpOutcome> for Exchange {
    fn from(outcome: HttpOutcome) -> Self {
        match outcome {
            HttpOutcome::Reset => Self::Reset,
            HttpOutcome::Hang => Self::Hang,
            HttpOutcome::Respond(response) => Self::Response(Response {
                status: response.status,
                headers: response.headers,
                body: response.body,
                delay: response.delay + response.drip,
            }),
        }
    }
}
