//! A loopback address per run, so that ports assigned by the kernel stay free until they are used.

use std::collections::HashSet;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::Mutex;

use uuid::Uuid;

/// The process that listens on this port owns the address.
const CLAIM_PORT: u16 = 15_999;
const MAX_ATTEMPTS: usize = 100;

/// An address of 127.0.0.0/8, owned until it is dropped.
#[derive(Debug)]
pub(crate) struct Address {
    ip: Ipv4Addr,
    used: Mutex<HashSet<u16>>,
    _claim: TcpListener,
}

impl Address {
    /// Claims a free address.
    pub(crate) fn claim() -> Self {
        let claimed = (0..MAX_ATTEMPTS).find_map(|_| {
            let [a, b, c, ..] = *Uuid::new_v4().as_bytes();
            // Neither 127.0.0.1, which others use, nor the first or last address of a block.
            let ip = Ipv4Addr::new(127, a.clamp(1, 254), b, c.clamp(1, 254));
            let claim = TcpListener::bind((ip, CLAIM_PORT)).ok()?;
            Some(Self {
                ip,
                used: Mutex::default(),
                _claim: claim,
            })
        });
        claimed.expect("a loopback address can be bound to")
    }

    pub(crate) fn ip(&self) -> Ipv4Addr {
        self.ip
    }

    /// A new port. No other process gets it: clients connect from 127.0.0.1.
    pub(crate) fn port(&self) -> u16 {
        let mut used = self.used.lock().unwrap();
        loop {
            let free = TcpListener::bind((self.ip, 0)).expect("there are free ports");
            let port = free.local_addr().expect("the listener is bound").port();
            if used.insert(port) {
                return port;
            }
        }
    }

    /// `ADDRESS:PORT` with a new port.
    pub(crate) fn listen(&self) -> String {
        format!("{}:{}", self.ip, self.port())
    }
}
