//! The unmodified sidecars, as far as a controller can tell them: one call at a time for an object,
//! each with its timeout, repeated unchanged after a pause that doubles, whatever the code was.
//!
//! external-provisioner, -attacher, -resizer and -snapshotter all repeat after every code; what the
//! code changes is whether the pod is scheduled anew, which no test here has.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tonic::transport::Channel;
use tonic::{Code, Request, Response, Status};

use diskplugin::csi::controller::Service;
use diskplugin::csi::proto;
use diskplugin::csi::proto::controller_client::ControllerClient;
use diskplugin::csi::proto::controller_server::ControllerServer;

/// Where the controller is.
#[derive(Debug, Clone)]
pub(crate) enum Port {
    /// In this process. Whoever gives up drops its handler, as tonic does.
    Inside(ControllerServer<Service>),
    /// Behind a socket.
    Wire(Channel),
}

/// How patient a sidecar is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Of one call, as `--timeout`.
    pub(crate) timeout: Duration,
    /// Before the first repetition, as `--retry-interval-start`.
    pub(crate) first: Duration,
    /// Before any repetition, as `--retry-interval-max`.
    pub(crate) longest: Duration,
    /// With all repetitions: a test that takes longer has failed.
    pub(crate) whole: Duration,
}

/// The sidecars of one controller. Clones share what they count.
#[derive(Debug, Clone)]
pub(crate) struct Sidecar {
    port: Port,
    patience: Patience,
    /// How often each code came, by call.
    codes: Arc<Mutex<BTreeMap<(&'static str, String), u32>>>,
}

/// A message of a call, and how it is made.
pub(crate) trait Call: Clone + Send + Sync + 'static {
    /// The RPC.
    const NAME: &'static str;
    /// What it answers.
    type Answer: Send;
    /// Makes the call.
    fn send(
        port: &Port,
        request: Request<Self>,
    ) -> impl Future<Output = Result<Response<Self::Answer>, Status>> + Send;
}

macro_rules! calls {
    ($($name:literal $method:ident($request:ident) -> $answer:ident;)*) => { $(
        impl Call for proto::$request {
            const NAME: &'static str = $name;
            type Answer = proto::$answer;

            async fn send(
                port: &Port,
                request: Request<Self>,
            ) -> Result<Response<Self::Answer>, Status> {
                match port {
                    Port::Inside(service) => {
                        ControllerClient::new(service.clone()).$method(request).await
                    }
                    Port::Wire(channel) => {
                        // A list of many volumes is larger than the default takes.
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

/// Failures that say nothing about the object: the call may be under way, or was not begun.
pub(crate) fn is_passing(status: &Status) -> bool {
    // What has a source was said by no driver: the connection broke.
    let broken = std::error::Error::source(status).is_some();
    let passing = matches!(
        status.code(),
        Code::Unavailable | Code::Aborted | Code::DeadlineExceeded | Code::Cancelled
    );
    passing || broken
}

impl Sidecar {
    pub(crate) fn new(port: Port, patience: Patience) -> Self {
        Self {
            port,
            patience,
            codes: Arc::default(),
        }
    }

    /// One call, with the timeout.
    pub(crate) async fn once<C: Call>(&self, message: &C) -> Result<C::Answer, Status> {
        let mut request = Request::new(message.clone());
        request.set_timeout(self.patience.timeout);
        let answer = tokio::time::timeout(self.patience.timeout, C::send(&self.port, request));
        let answer = match answer.await {
            Ok(answer) => answer.map(Response::into_inner),
            Err(_) => Err(Status::deadline_exceeded("the caller gave up")),
        };
        let code = answer.as_ref().map_or_else(Status::code, |_| Code::Ok);
        let mut codes = self.codes.lock().unwrap();
        *codes.entry((C::NAME, format!("{code:?}"))).or_default() += 1;
        answer
    }

    /// The call, repeated until it succeeds. `told` hears of every failure.
    pub(crate) async fn insist<C: Call>(
        &self,
        message: &C,
        mut told: impl FnMut(&Status) + Send,
    ) -> C::Answer {
        let end = tokio::time::Instant::now() + self.patience.whole;
        let mut pause = self.patience.first;
        loop {
            match self.once(message).await {
                Ok(answer) => return answer,
                Err(status) => {
                    told(&status);
                    assert!(
                        tokio::time::Instant::now() < end,
                        "{} was repeated for {:?} in vain: {status}",
                        C::NAME,
                        self.patience.whole
                    );
                }
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(self.patience.longest);
        }
    }

    /// How often each code came, a line for each call.
    pub(crate) fn codes(&self) -> String {
        let codes = self.codes.lock().unwrap();
        let mut lines: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for ((call, code), count) in &*codes {
            lines
                .entry(call)
                .or_default()
                .push(format!("{code} {count}"));
        }
        let lines = lines
            .iter()
            .map(|(call, codes)| format!("  {call}: {}\n", codes.join(", ")));
        lines.collect()
    }
}
