//! An API server in memory that has one Lease, and its faults.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::*;

/// The API server, which has one Lease, and the way to it. Clones share both.
#[derive(Debug, Clone, Default)]
pub(super) struct ApiServer {
    pub(super) state: Arc<Mutex<State>>,
    pub(super) fault: Arc<Mutex<Fault>>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) lease: Option<Value>,
    pub(super) version: u64,
    /// `METHOD` of all requests.
    pub(super) calls: Vec<Method>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Fault {
    #[default]
    None,
    /// Packets are lost, and sent again when the server is back.
    Away,
    /// Requests take effect, without a response.
    NoResponse,
    Forbidden,
}

impl ApiServer {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The same server, over a connection with its own faults.
    pub(super) fn another_connection(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
            fault: Arc::default(),
        }
    }

    pub(super) fn set(&self, fault: Fault) {
        *self.fault.lock().unwrap() = fault;
    }

    pub(super) fn fault(&self) -> Fault {
        *self.fault.lock().unwrap()
    }

    /// Writes the Lease as somebody else.
    pub(super) fn write(&self, spec: &Value) {
        self.state().put(json!({"metadata": {"name": NAME}, "spec": spec}));
    }

    pub(super) fn holder(&self) -> Option<String> {
        let state = self.state();
        let holder = state.lease.as_ref()?.pointer("/spec/holderIdentity")?;
        holder.as_str().map(str::to_owned)
    }

    pub(super) async fn respond(
        self,
        request: Request<Body>,
    ) -> std::result::Result<Response<Full<Bytes>>, Infallible> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        sleep(LATENCY).await;
        while self.fault() == Fault::Away {
            sleep(seconds(0.2)).await;
        }
        let fault = self.fault();
        let (code, response) = match fault {
            Fault::Forbidden => (403, status(403)),
            _ => self.state().handle(&head.method, &body),
        };
        if fault == Fault::NoResponse {
            std::future::pending::<()>().await;
        }
        sleep(LATENCY).await;
        let body = Full::new(Bytes::from(response.to_string()));
        Ok(Response::builder().status(code).body(body).unwrap())
    }

    pub(super) fn candidate(&self, identity: &str) -> Candidate {
        let server = self.clone();
        let service = tower::service_fn(move |request| server.clone().respond(request));
        Candidate::of(Client::new(service, "storage"), config(identity))
    }
}

impl State {
    pub(super) fn put(&mut self, mut lease: Value) -> (u16, Value) {
        self.version += 1;
        lease["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.lease = Some(lease.clone());
        (200, lease)
    }

    pub(super) fn handle(&mut self, method: &Method, body: &[u8]) -> (u16, Value) {
        self.calls.push(method.clone());
        let version = |lease: &Value| lease["metadata"]["resourceVersion"].clone();
        match (method, &self.lease) {
            (&Method::GET, Some(lease)) => (200, lease.clone()),
            (&Method::POST, Some(_)) => (409, status(409)),
            (&Method::POST, None) => self.put(serde_json::from_slice(body).unwrap()),
            (&Method::PUT, Some(lease)) => {
                let wanted: Value = serde_json::from_slice(body).unwrap();
                assert_ne!(version(&wanted), Value::Null, "a write without a version");
                match version(&wanted) == version(lease) {
                    true => self.put(wanted),
                    false => (409, status(409)),
                }
            }
            _ => (404, status(404)),
        }
    }
}

pub(super) fn status(code: u16) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code, "message": "no",
        "reason": "x",
    })
}
