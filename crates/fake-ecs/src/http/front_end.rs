//! The HTTP front end, independent of the server that reads the requests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::api::Started;
use super::authenticator::Nonces;
use super::imds::Sessions;
use super::request::HttpRequest;
use super::response::{self, HttpOutcome};
use crate::credential::Keys;
use crate::shared::Shared;

/// State shared by all requests.
#[derive(Debug)]
pub(super) struct FrontEnd {
    pub(super) shared: Arc<Shared>,
    pub(super) keys: Keys,
    /// Whether only local clients can connect.
    pub(super) loopback: bool,
    state: Mutex<GatewayState>,
}

/// State of the gateway and the metadata service.
#[derive(Debug, Default)]
pub(super) struct GatewayState {
    pub(super) nonces: Nonces,
    pub(super) sessions: Sessions,
    /// The temporary credentials issued by the Security Token Service.
    pub(super) issued: crate::sts::Sessions,
}

impl FrontEnd {
    pub(super) fn new(shared: Arc<Shared>, keys: Keys, loopback: bool) -> Self {
        Self {
            shared,
            keys,
            loopback,
            state: Mutex::default(),
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, GatewayState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Processes a request. A call takes effect after its delay.
    pub(super) async fn handle(&self, request: &HttpRequest<'_>) -> HttpOutcome {
        match self.start(request) {
            Started::Decided(outcome) => outcome,
            Started::Admitted(admitted) => {
                tokio::time::sleep(admitted.delay()).await;
                self.finish(admitted)
            }
        }
    }

    /// Processes a request without waiting. A call takes effect immediately, and the delay is added to its response.
    pub(super) fn handle_now(&self, request: &HttpRequest<'_>) -> HttpOutcome {
        match self.start(request) {
            Started::Decided(outcome) => outcome,
            Started::Admitted(admitted) => {
                let delay = admitted.delay();
                self.finish(admitted).later(delay)
            }
        }
    }

    fn start(&self, request: &HttpRequest<'_>) -> Started {
        if request.path == "/" && super::sts::is_for(request) {
            Started::Decided(self.sts(request))
        } else if request.path == "/" {
            self.api(request)
        } else if let Some(path) = request.path.strip_prefix("/imds/") {
            Started::Decided(self.imds(request, path))
        } else if let Some(path) = request.path.strip_prefix("/_control/") {
            Started::Decided(self.control(request, path))
        } else {
            Started::Decided(HttpOutcome::Respond(response::text(404, "not found")))
        }
    }
}
