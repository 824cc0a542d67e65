//! The HTTP front end without a socket, for servers of tests.

use std::sync::Arc;
use std::time::Duration;

use hyper::Request;

use super::front_end::FrontEnd;
use super::request::HttpRequest;
use super::response::HttpOutcome;
use crate::sim::credential::Keys;
use crate::sim::shared::Shared;

/// Handles HTTP requests as the server of the fake cloud does: API, metadata and control API.
///
/// A call takes effect immediately, also with the fault `delay-before`, which then delays only the
/// response. The body of a slow response is sent as a whole at the end of its period.
#[derive(Debug)]
pub struct HttpHandler(FrontEnd);

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exchange {
    Response(Response),
    /// The connection ends without a response.
    Reset,
    /// The connection stays open without a response.
    Hang,
}

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
        Self(FrontEnd::new(shared, keys, true))
    }

    /// Handles a request; its effect is immediate.
    #[must_use]
    pub fn answer(&self, request: &Request<Vec<u8>>) -> Exchange {
        let parsed = HttpRequest::new(
            request.method(),
            request.uri(),
            request.headers(),
            request.body(),
        );
        match self.0.handle_now(&parsed) {
            HttpOutcome::Reset => Exchange::Reset,
            HttpOutcome::Hang => Exchange::Hang,
            HttpOutcome::Respond(response) => Exchange::Response(Response {
                status: response.status,
                headers: response.headers,
                body: response.body,
                delay: response.delay + response.drip,
            }),
        }
    }
}
