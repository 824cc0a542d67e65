//! The sidecars from the controller's point of view: one call at a time for an object, each with its timeout, repeated
//! unchanged with exponential backoff after any error code.
//!
//! external-provisioner, -attacher, -resizer and -snapshotter all retry after any code; the code only decides whether
//! the pod is rescheduled, which these tests do not cover.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};

use diskplugin::csi::controller::Service;
use diskplugin::csi::proto;
use diskplugin::csi::proto::controller_client::ControllerClient;
use diskplugin::csi::proto::controller_server::ControllerServer;

/// How the controller is called.
#[derive(Debug, Clone)]
pub(crate) enum Port {
    /// In this process. A timeout drops the handler, as in tonic.
    InProcess(ControllerServer<Service>),
    /// Over a socket.
    Socket(Channel),
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RetryPolicy {
    /// Timeout of a call, as `--timeout`.
    pub(crate) timeout: Duration,
    /// Pause before the first retry, as `--retry-interval-start`.
    pub(crate) initial: Duration,
    /// Maximum pause, as `--retry-interval-max`.
    pub(crate) max: Duration,
    /// Timeout including all retries, after which the test fails.
    pub(crate) total: Duration,
}

/// The sidecars of one controller. Clones share the counters.
#[derive(Debug, Clone)]
pub(crate) struct Sidecar {
    port: Port,
    retry_policy: RetryPolicy,
    /// The number of each code, by call.
    codes: Arc<Mutex<BTreeMap<(&'static str, String), u32>>>,
}

/// A request message and its call.
pub(crate) trait Call: Clone + Send + Sync + 'static {
    const NAME: &'static str;
    type Response: Send;
    fn send(
        port: &Port,
        request: Request<Self>,
    ) -> impl Future<Output = Result<Response<Self::Response>, Status>> + Send;
}

macro_rules! calls {
    ($($name:literal $method:ident($request:ident) -> $response:ident;)*) => { $(
        impl Call for proto::$request {
            const NAME: &'static str = $name;
            type Response = proto::$response;

            async fn send(
                port: &Port,
                request: Request<Self>,
            ) -> Result<Response<Self::Response>, Status> {
                match port {
                    Port::InProcess(service) => {
                        ControllerClient::new(service.clone()).$method(request).await
                    }
                    Port::Socket(channel) => {
                        // A list of many volumes exceeds the default limit.
                        let client = ControllerClient::new(channel.clone());
                        client.max_decoding_message_size(64 << 20).$method(request).await
                    }
                }
            }
        }
    )* };
}

calls! {
    "CreateVolume" create_volume(CreateVolumeRequest) -> CreateVolumeResponse;
    "DeleteVolume" delete_volume(DeleteVolumeRequest) -> DeleteVolumeResponse;
    "ControllerPublishVolume"
        controller_publish_volume(ControllerPublishVolumeRequest) -> ControllerPublishVolumeResponse;
    "ControllerUnpublishVolume"
        controller_unpublish_volume(ControllerUnpublishVolumeRequest)
        -> ControllerUnpublishVolumeResponse;
    "ControllerExpandVolume"
        controller_expand_volume(ControllerExpandVolumeRequest) -> ControllerExpandVolumeResponse;
    "CreateSnapshot" create_snapshot(CreateSnapshotRequest) -> CreateSnapshotResponse;
    "DeleteSnapshot" delete_snapshot(DeleteSnapshotRequest) -> DeleteSnapshotResponse;
    "ListVolumes" list_volumes(ListVolumesRequest) -> ListVolumesResponse;
    "ControllerGetCapabilities"
        controller_get_capabilities(ControllerGetCapabilitiesRequest)
        -> ControllerGetCapabilitiesResponse;
}

/// Whether the failure is transient: the operation may be in progress or may not have started.
pub(crate) fn is_transient(status: &Status) -> bool {
    // A status with a source is a broken connection, not a response of the driver.
    let broken = std::error::Error::source(status).is_some();
    let transient = matches!(
        status.code(),
        Code::Unavailable | Code::Aborted | Code::DeadlineExceeded | Code::Cancelled
    );
    transient || broken
}

impl Sidecar {
    pub(crate) fn new(port: Port, retry_policy: RetryPolicy) -> Self {
        Self {
            port,
            retry_policy,
            codes: Arc::default(),
        }
    }

    /// A single call with the timeout.
    pub(crate) async fn once<C: Call>(&self, message: &C) -> Result<C::Response, Status> {
        let mut request = Request::new(message.clone());
        request.set_timeout(self.retry_policy.timeout);
        let response = tokio::time::timeout(self.retry_policy.timeout, C::send(&self.port, request));
        let response = match response.await {
            Ok(response) => response.map(Response::into_inner),
            Err(_) => Err(Status::deadline_exceeded("the caller gave up")),
        };
        let code = response.as_ref().map_or_else(Status::code, |_| Code::Ok);
        let mut codes = self.codes.lock().unwrap();
        *codes.entry((C::NAME, format!("{code:?}"))).or_default() += 1;
        response
    }

    /// Repeats the call until it succeeds. `on_failure` receives every failure.
    pub(crate) async fn call_until_success<C: Call>(
        &self,
        message: &C,
        mut on_failure: impl FnMut(&Status) + Send,
    ) -> C::Response {
        let end = tokio::time::Instant::now() + self.retry_policy.total;
        let mut pause = self.retry_policy.initial;
        loop {
            match self.once(message).await {
                Ok(response) => return response,
                Err(status) => {
                    on_failure(&status);
                    assert!(
                        tokio::time::Instant::now() < end,
                        "{} did not succeed within {:?}: {status}",
                        C::NAME,
                        self.retry_policy.total
                    );
                }
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(self.retry_policy.max);
        }
    }

    /// The number of each code, one line per call.
    pub(crate) fn codes(&self) -> String {
        let codes = self.codes.lock().unwrap();
        let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for ((call, code), count) in &*codes {
            lines.entry(call).or_default().push(format!("{code} {count}"));
        }
        let lines = lines
            .iter()
            .map(|(call, codes)| format!("  {call}: {}\n", codes.join(", ")));
        lines.collect()
    }
}
