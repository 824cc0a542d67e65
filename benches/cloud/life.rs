//! The lifecycle of a volume, with the calls of the sidecars.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use diskplugin::csi::proto::controller_client::ControllerClient;
use diskplugin::csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, access_mode};
use diskplugin::csi::proto::{
    CapacityRange, ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest, CreateVolumeRequest,
    DeleteVolumeRequest, VolumeCapability,
};
use tokio::time::{Instant, sleep};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use crate::timing::Timings;

/// The chart's `--timeout` of the sidecars.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The sidecars' `--retry-interval-start`; it doubles with each failure.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The sidecars' `--retry-interval-max` is 5 minutes; a run is over by then.
const LAST_RETRY: Duration = Duration::from_secs(32);

/// The provisioner and the attacher, each with its own connection.
#[derive(Debug, Clone)]
pub(crate) struct Sidecars {
    pub(crate) provisioner: Channel,
    pub(crate) attacher: Channel,
    pub(crate) timings: Arc<Mutex<Timings>>,
}

impl Sidecars {
    /// Creates a volume, publishes it to the node, unpublishes and deletes it. Each call is repeated until it succeeds.
    pub(crate) async fn life(self, number: u32, node: String) {
        let create = CreateVolumeRequest {
            name: format!("pvc-{number}"),
            capacity_range: Some(CapacityRange {
                required_bytes: 20 << 30,
                limit_bytes: 0,
            }),
            volume_capabilities: vec![block()],
            parameters: [("type".to_owned(), "cloud_essd".to_owned())].into(),
            ..CreateVolumeRequest::default()
        };
        let created = self
            .retried("CreateVolume", || async {
                let mut client = ControllerClient::new(self.provisioner.clone());
                client.create_volume(timed(&create)).await
            })
            .await;
        let volume_id = created.volume.unwrap_or_default().volume_id;
        let publish = ControllerPublishVolumeRequest {
            volume_id: volume_id.clone(),
            node_id: node.clone(),
            volume_capability: Some(block()),
            ..ControllerPublishVolumeRequest::default()
        };
        self.retried("ControllerPublishVolume", || async {
            let mut client = ControllerClient::new(self.attacher.clone());
            client.controller_publish_volume(timed(&publish)).await
        })
        .await;
        let unpublish = ControllerUnpublishVolumeRequest {
            volume_id: volume_id.clone(),
            node_id: node,
            ..ControllerUnpublishVolumeRequest::default()
        };
        self.retried("ControllerUnpublishVolume", || async {
            let mut client = ControllerClient::new(self.attacher.clone());
            client.controller_unpublish_volume(timed(&unpublish)).await
        })
        .await;
        let delete = DeleteVolumeRequest {
            volume_id,
            ..DeleteVolumeRequest::default()
        };
        self.retried("DeleteVolume", || async {
            let mut client = ControllerClient::new(self.provisioner.clone());
            client.delete_volume(timed(&delete)).await
        })
        .await;
    }

    async fn retried<T, F>(&self, rpc: &'static str, call: impl Fn() -> F) -> T
    where
        F: Future<Output = Result<Response<T>, Status>>,
    {
        let mut pause = FIRST_RETRY;
        loop {
            let start = Instant::now();
            let outcome = call().await;
            let time = start.elapsed();
            match outcome {
                Ok(response) => {
                    self.timings().succeeded(rpc, time);
                    return response.into_inner();
                }
                Err(status) => self.timings().failed(rpc, status.code()),
            }
            sleep(pause).await;
            pause = (pause * 2).min(LAST_RETRY);
        }
    }

    fn timings(&self) -> std::sync::MutexGuard<'_, Timings> {
        self.timings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn block() -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode {
            mode: access_mode::Mode::SingleNodeWriter.into(),
        }),
        access_type: Some(AccessType::Block(BlockVolume {})),
    }
}

fn timed<T: Clone>(message: &T) -> Request<T> {
    let mut request = Request::new(message.clone());
    request.set_timeout(TIMEOUT);
    request
}
