//! The face over HTTP without a socket, for a server that somebody else runs.

use std::sync::Arc;
use std::time::Duration;

use hyper::Request;

use super::face::Face;
use super::reply::Wired;
use super::request::Wire;
use crate::sim::credential::Keys;
use crate::sim::shared::Shared;

/// Answers HTTP requests as the server of the fake cloud does: API, metadata and control path.
///
/// A call takes effect at once, also where the fault `delay-before` says otherwise: only its response is
/// late then. A response that drips comes as a whole, after all of that time.
#[derive(Debug)]
pub struct HttpFace(Face);

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exchange {
    /// It is answered.
    Response(Response),
    /// The connection ends without a response.
    Reset,
    /// The connection stays open without a response.
    Hang,
}

/// A response, and when it is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The headers, lower-case.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// How long after the request it is sent.
    pub delay: Duration,
}

impl HttpFace {
    pub(crate) fn new(shared: Arc<Shared>, keys: Keys) -> Self {
        Self(Face::new(shared, keys, true))
    }

    /// Lets a request take effect.
    #[must_use]
    pub fn answer(&self, request: &Request<Vec<u8>>) -> Exchange {
        let wire = Wire::new(
            request.method(),
            request.uri(),
            request.headers(),
            request.body(),
        );
        match self.0.handle_now(&wire) {
            Wired::Reset => Exchange::Reset,
            Wired::Hang => Exchange::Hang,
            Wired::Respond(response) => Exchange::Response(Response {
                status: response.status,
                headers: response.headers,
                body: response.body,
                delay: response.delay + response.drip,
            }),
        }
    }
}
