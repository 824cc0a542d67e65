//! The transport over HTTP.

use std::time::Duration;

use async_trait::async_trait;
use http::{Request, Response};
use reqwest::Client;
use reqwest::redirect::Policy;
use tokio_util::bytes::Bytes;

use super::server::{BuildError, Server};
use super::tls::{RejectedCertificate, Trust};
use super::transport::{Action, Lost, Transport};
use crate::base::Deadline;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// HTTP/1.1, with TLS for `https`.
#[derive(Debug)]
pub(super) struct HttpTransport {
    writes: Client,
    /// Separate connections for reads. A connection keeps a buffer of the size of its largest response; those of a
    /// burst of writes stay small.
    reads: Client,
}

impl HttpTransport {
    /// A transport for requests to this server.
    ///
    /// # Errors
    /// If the root certificates cannot be read.
    pub(super) fn new(server: &Server) -> Result<Self, BuildError> {
        let trust = match (&server.trust, server.url.scheme()) {
            // HTTP verifies nothing, and reading all root certificates is a third of the start-up time.
            (_, "http") => None,
            (Some(trust), _) => Some(trust.clone()),
            (None, _) => Some(Trust::new(None).map_err(|error| BuildError::Client(error.into()))?),
        };
        Ok(Self {
            writes: client(server, trust.as_ref())?,
            reads: client(server, trust.as_ref())?,
        })
    }
}

#[async_trait]
impl Transport for HttpTransport {
    async fn send(&self, request: Request<String>, deadline: Deadline) -> Result<Response<Bytes>, Lost> {
        let action = request.extensions().get::<Action>();
        let is_read = action.is_some_and(|action| action.0.starts_with("Describe"));
        let client = if is_read { &self.reads } else { &self.writes };
        let request = reqwest::Request::try_from(request);
        let mut request = request.map_err(|error| Lost::not_sent(error.without_url()))?;
        *request.timeout_mut() = Some(deadline.remaining());
        let response = client.execute(request).await;
        let response = response.map_err(|error| lost(error, None))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let body = response.bytes().await;
        let body = body.map_err(|error| lost(error, Some(status.as_u16())))?;
        let mut whole = Response::new(body);
        (*whole.status_mut(), *whole.headers_mut()) = (status, headers);
        Ok(whole)
    }
}

fn client(server: &Server, trust: Option<&Trust>) -> Result<Client, BuildError> {
    let mut http = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        // A signature must not be sent to another host.
        .redirect(Policy::none())
        .user_agent(concat!("diskplugin-ecs/", env!("CARGO_PKG_VERSION")));
    // A fake cloud on localhost is never behind a proxy.
    if let Some("localhost" | "127.0.0.1" | "[::1]") = server.url.host_str() {
        http = http.no_proxy();
    }
    http = match trust {
        Some(trust) => http.tls_backend_preconfigured(trust.0.clone()),
        None => http.tls_certs_only([]),
    };
    http.build().map_err(|error| BuildError::Client(error.into()))
}

fn lost(error: reqwest::Error, status: Option<u16>) -> Lost {
    Lost {
        was_sent: !error.is_connect(),
        status,
        source: match RejectedCertificate::cause(&error) {
            Some(rejected) => rejected.clone().into(),
            None => error.without_url().into(),
        },
    }
}
