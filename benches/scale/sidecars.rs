//! The callers of a controller: one call per volume at a time, which is repeated until it succeeds.

use std::time::Duration;

use diskplugin::csi::controller::Service;
use diskplugin::csi::proto::controller_server::Controller;
use diskplugin::csi::proto::{ControllerPublishVolumeRequest, CreateVolumeRequest, TopologyRequirement};
use tokio::time::{Instant, sleep, timeout};
use tonic::{Request, Response, Status};

use super::request::{block, deletion, new_volume, of_zone, parameters, publication, unpublication};
use super::times::Times;

/// The chart's `--timeout` of the sidecars.
const TIMEOUT: Duration = Duration::from_secs(150);
/// The sidecars' `--retry-interval-start` and `--retry-interval-max`.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_mins(5);

/// The sidecars of one controller, which runs in this process or is called over its socket. Clones share the
/// measurement.
#[derive(Debug, Clone)]
pub(crate) struct Sidecars<C = Service> {
    pub(crate) service: C,
    pub(crate) times: Times,
}

/// The properties of a requested volume.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) name: String,
    /// `type` of its class.
    pub(crate) category: &'static str,
    /// The zone of the node of its pod.
    pub(crate) zone: String,
}

impl<C: Controller + Clone> Sidecars<C> {
    /// Creates the volume, and returns its ID.
    pub(crate) async fn create(&self, claim: &Claim) -> String {
        let zone = vec![of_zone(&claim.zone)];
        let request = CreateVolumeRequest {
            volume_capabilities: vec![block()],
            parameters: parameters(&[("type", claim.category)]),
            accessibility_requirements: Some(TopologyRequirement {
                requisite: zone.clone(),
                preferred: zone,
            }),
            ..new_volume(&claim.name)
        };
        let send = |service: C, request| async move { service.create_volume(request).await };
        let created = self.retried("CreateVolume", &request, send).await;
        created.volume.unwrap_or_default().volume_id
    }

    pub(crate) async fn publish(&self, volume: &str, node: &str) {
        let request = ControllerPublishVolumeRequest {
            volume_capability: Some(block()),
            ..publication(volume, node)
        };
        let send = |service: C, request| async move { service.controller_publish_volume(request).await };
        self.retried("ControllerPublishVolume", &request, send).await;
    }

    pub(crate) async fn unpublish(&self, volume: &str, node: &str) {
        let request = unpublication(volume, node);
        let send = |service: C, request| async move { service.controller_unpublish_volume(request).await };
        self.retried("ControllerUnpublishVolume", &request, send).await;
    }

    pub(crate) async fn delete(&self, volume: &str) {
        let send = |service: C, request| async move { service.delete_volume(request).await };
        self.retried("DeleteVolume", &deletion(volume), send).await;
    }

    /// A volume from its creation to its deletion, attached to the node for this time.
    pub(crate) async fn live(&self, claim: &Claim, node: &str, used: Duration) {
        let id = self.create(claim).await;
        self.publish(&id, node).await;
        sleep(used).await;
        self.unpublish(&id, node).await;
        self.delete(&id).await;
    }

    /// Repeats a call until it succeeds.
    async fn retried<M, A, F>(&self, rpc: &'static str, message: &M, send: impl Fn(C, Request<M>) -> F + Send) -> A
    where
        M: Clone + Send + Sync,
        A: Send,
        F: Future<Output = Result<Response<A>, Status>> + Send,
    {
        let (start, mut pause) = (Instant::now(), FIRST_RETRY);
        loop {
            let mut request = Request::new(message.clone());
            request.set_timeout(TIMEOUT);
            let response = timeout(TIMEOUT, send(self.service.clone(), request)).await;
            let failure = match response {
                Ok(Ok(response)) => {
                    self.times.succeeded(rpc, start.elapsed());
                    return response.into_inner();
                }
                Ok(Err(status)) => status,
                Err(_) => Status::deadline_exceeded("timeout of the caller"),
            };
            self.times.failed(rpc, failure.code());
            sleep(pause).await;
            pause = (pause * 2).min(LAST_RETRY);
        }
    }
}
