//! The state that all requests share: the cloud, its keys, nonces and sessions.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::imds_sessions::Sessions;
use super::nonces::Nonces;
use crate::credential::Keys;
use crate::shared::Shared;

/// State shared by all requests.
#[derive(Debug)]
pub(super) struct Gateway {
    pub(super) shared: Arc<Shared>,
    pub(super) keys: Keys,
    /// Whether only local clients can connect.
    pub(super) loopback: bool,
    state: Mutex<GatewayState>,
}

#[derive(Debug, Default)]
pub(super) struct GatewayState {
    pub(super) nonces: Nonces,
    pub(super) sessions: Sessions,
    /// The temporary credentials issued by the Security Token Service.
    pub(super) issued: crate::sts::Sessions,
}

impl Gateway {
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
}
