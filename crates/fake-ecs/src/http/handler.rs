//! The HTTP interface without a socket, for tests.

use std::sync::Arc;

use hyper::Request;
use tokio_util::task::TaskTracker;

use super::gateway::Gateway;
use super::request::HttpRequest;
use super::response::{Exchange, Response};
use crate::credential::Keys;
use crate::run_to_completion::run_to_completion;
use crate::shared::Shared;

/// Handles HTTP requests as the server of the fake cloud does: API, metadata and control API.
#[derive(Debug, Clone)]
pub struct HttpHandler {
    gateway: Arc<Gateway>,
    tasks: TaskTracker,
}

/// The connection ended without a response.
#[derive(Debug, thiserror::Error)]
#[error("the connection is reset")]
pub struct Reset;

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
        let mut exchange = self.gateway.handle_now(&parse(request));
        if let Exchange::Response(response) = &mut exchange {
            response.delay += std::mem::take(&mut response.drip);
        }
        exchange
    }

    /// Handles a request in tokio's time, which may be paused: waits for the delays of the request and of the response.
    /// As in the real cloud, a call completes even if its caller stops waiting.
    ///
    /// # Errors
    /// The connection ended without a response.
    pub async fn serve(&self, request: Request<Vec<u8>>) -> Result<Response, Reset> {
        let gateway = Arc::clone(&self.gateway);
        let work = async move { gateway.handle(&parse(&request)).await };
        match run_to_completion(&self.tasks, work).await {
            Exchange::Response(response) => {
                tokio::time::sleep(response.delay + response.drip).await;
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
