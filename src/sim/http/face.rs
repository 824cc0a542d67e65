//! What answers a request, whoever reads it off a socket.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::api::Started;
use super::doorman::Nonces;
use super::imds::Sessions;
use super::reply::{self, Wired};
use super::request::Wire;
use crate::sim::credential::Keys;
use crate::sim::shared::Shared;

/// What all requests share.
#[derive(Debug)]
pub(super) struct Face {
    pub(super) shared: Arc<Shared>,
    pub(super) keys: Keys,
    /// Whether only this machine can connect.
    pub(super) loopback: bool,
    memory: Mutex<Memory>,
}

/// What the gateway and the metadata service remember.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub(super) nonces: Nonces,
    pub(super) sessions: Sessions,
    /// The temporary keys that the Security Token Service gave out.
    pub(super) issued: crate::sim::sts::Sessions,
}

impl Face {
    pub(super) fn new(shared: Arc<Shared>, keys: Keys, loopback: bool) -> Self {
        Self {
            shared,
            keys,
            loopback,
            memory: Mutex::default(),
        }
    }

    pub(super) fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request. A call takes effect when its delay is over.
    pub(super) async fn handle(&self, wire: &Wire<'_>) -> Wired {
        match self.start(wire) {
            Started::Decided(wired) => wired,
            Started::Admitted(admitted) => {
                tokio::time::sleep(admitted.delay()).await;
                self.finish(admitted)
            }
        }
    }

    /// Answers a request without waiting. A call takes effect at once, and its response is as late as
    /// if its effect had been.
    pub(super) fn handle_now(&self, wire: &Wire<'_>) -> Wired {
        match self.start(wire) {
            Started::Decided(wired) => wired,
            Started::Admitted(admitted) => {
                let delay = admitted.delay();
                self.finish(admitted).later(delay)
            }
        }
    }

    fn start(&self, wire: &Wire<'_>) -> Started {
        if wire.path == "/" && super::sts::is_for(wire) {
            Started::Decided(self.sts(wire))
        } else if wire.path == "/" {
            self.api(wire)
        } else if let Some(path) = wire.path.strip_prefix("/imds/") {
            Started::Decided(self.imds(wire, path))
        } else if let Some(path) = wire.path.strip_prefix("/_control/") {
            Started::Decided(self.control(wire, path))
        } else {
            Started::Decided(Wired::Respond(reply::text(404, "not found")))
        }
    }
}
