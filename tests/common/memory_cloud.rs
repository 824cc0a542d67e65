//! The client on the fake cloud in memory, in tokio's time, which may be paused.

use std::sync::Arc;

use async_trait::async_trait;
use diskplugin::base::{Clock, Deadline};
use ecs::credential::{CredentialProvider, Credentials};
use ecs::sign::Scheme;
use ecs::transport::{Lost, Transport};
use ecs::{Client, ServerClock, Settings};
use fake_ecs::{Cloud, HttpHandler, Options, TokioClock};
use http::{HeaderValue, Request, Response};
use jiff::Timestamp;
use tokio_util::bytes::Bytes;

/// The fake cloud as a transport.
#[derive(Debug)]
pub(crate) struct MemoryTransport(HttpHandler);

impl MemoryTransport {
    pub(crate) fn new(cloud: &Cloud) -> Self {
        Self(cloud.http())
    }
}

#[async_trait]
impl Transport for MemoryTransport {
    async fn send(&self, request: Request<String>, deadline: Deadline) -> Result<Response<Bytes>, Lost> {
        let mut request = request.map(String::into_bytes);
        let host = request.uri().authority().expect("the URI is absolute");
        let host = HeaderValue::from_str(host.as_str()).expect("a host is printable");
        request.headers_mut().insert("host", host);
        let served = deadline.bound(self.0.serve(request)).await;
        let served = served.map_err(lost)?;
        let served = served.map_err(lost)?;
        let response = Response::builder().status(served.status);
        let headers = served.headers.into_iter();
        let response = headers.fold(response, |response, (name, value)| response.header(name, value));
        response.body(served.body.into()).map_err(lost)
    }
}

fn lost(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Lost {
    let was_sent = true;
    Lost {
        was_sent,
        ..Lost::not_sent(error)
    }
}

/// The clock of the fake cloud as that of a client.
#[derive(Debug)]
pub(crate) struct CloudClock(pub(crate) Cloud);

impl Clock for CloudClock {
    fn now(&self) -> Timestamp {
        self.0.now()
    }
}

/// A fake cloud in tokio's time, which starts at the same time in every test.
pub(crate) fn start<'a>(flags: impl IntoIterator<Item = &'a str>) -> Cloud {
    let options = Options::from_flags(flags).expect("the flags are valid");
    let epoch = Timestamp::from_second(1_800_000_000).expect("a time in range");
    Cloud::in_memory(&options, Arc::new(TokioClock::starting_at(epoch)))
}

/// A client with the access key of the fake cloud.
pub(crate) fn client(cloud: &Cloud) -> Client {
    client_over(cloud, Arc::new(MemoryTransport::new(cloud)))
}

/// The same over another transport.
pub(crate) fn client_over(cloud: &Cloud, transport: Arc<dyn Transport>) -> Client {
    let (id, secret) = cloud.access_key();
    let settings = settings(cloud, Arc::new(Credentials::new(id, secret)));
    Client::over(transport, settings)
}

/// The settings of a client with these credentials, in the time of the fake cloud.
pub(crate) fn settings(cloud: &Cloud, credentials: Arc<dyn CredentialProvider>) -> Settings {
    Settings {
        server: "http://memory".parse().expect("an endpoint"),
        region: cloud.region().parse().expect("a region"),
        scheme: Scheme::V1,
        credentials,
        clock: ServerClock::new(Arc::new(CloudClock(cloud.clone()))),
    }
}
