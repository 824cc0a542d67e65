//! The node plugin in the guest, and the calls that kubelet makes.

use std::collections::HashMap;
use std::time::Duration;

use diskplugin::csi::proto::identity_client::IdentityClient;
use diskplugin::csi::proto::node_client::NodeClient;
use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use diskplugin::csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use diskplugin::csi::proto::volume_health::VolumeHealthEntry;
use diskplugin::csi::proto::{
    CapacityRange, NodeExpandVolumeRequest, NodeGetVolumeHealthRequest, NodeGetVolumeStatsRequest,
    NodeGetVolumeStatsResponse, NodePublishVolumeRequest, NodeStageVolumeRequest, NodeUnpublishVolumeRequest,
    NodeUnstageVolumeRequest, ProbeRequest, VolumeCapability,
};
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use super::disk::Disk;
use super::machine::Guest;
use crate::common::wait::until;

/// Timeout of a call on a busy machine.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(90);

/// The node plugin in a guest.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    client: NodeClient<Channel>,
}

/// A volume as kubelet uses it: one staging directory, one pod.
#[derive(Debug, Clone)]
pub(crate) struct Volume {
    node: Node,
    pub(crate) id: String,
    serial: String,
    pub(super) capability: VolumeCapability,
    /// The volume context, from the parameters of the class.
    pub(crate) context: HashMap<String, String>,
    /// `readonly` of NodePublishVolume, as in a pod's volume mount.
    pub(crate) readonly: bool,
    pub(crate) staging: String,
    pub(crate) target: String,
}

/// A filesystem for one writer.
pub(crate) fn filesystem(fs_type: &str) -> VolumeCapability {
    VolumeCapability {
        access_type: Some(AccessType::Mount(MountVolume {
            fs_type: fs_type.to_owned(),
            ..Default::default()
        })),
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeWriter.into(),
        }),
    }
}

/// A raw device for one writer.
pub(crate) fn block() -> VolumeCapability {
    VolumeCapability {
        access_type: Some(AccessType::Block(BlockVolume {})),
        ..filesystem("")
    }
}

/// The capability with a read-only access mode.
pub(crate) fn read_only(capability: VolumeCapability) -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeReaderOnly.into(),
        }),
        ..capability
    }
}

impl Guest {
    /// Starts the node plugin, which logs to the host, and waits until it is ready.
    pub(crate) async fn node(&self) -> Node {
        self.node_with("debug", "/dev/ttyS1").await
    }

    /// Like [`Guest::node`], with this log level and log file in the guest.
    pub(crate) async fn node_with(&self, level: &str, log: &str) -> Node {
        // Behind a pipe the log has no colors. No background process may keep the output of this command open, because
        // the agent waits for its end.
        let start = format!(
            "RUST_LOG={level} setsid diskplugin node --endpoint=unix:///run/csi/csi.sock --node-id=i-guest \
             --zone=cn-beijing-c > >(exec cat > {log} 2>&1) 2>&1 < /dev/null & echo $! > /run/node.pid"
        );
        self.sh(&start).await;
        let endpoint = Endpoint::try_from(format!("http://127.0.0.1:{}", self.csi));
        let endpoint = endpoint.expect("an address");
        let channel = until("the node plugin is ready", CALL_TIMEOUT, async || {
            let channel = endpoint.connect().await.ok()?;
            let probe = IdentityClient::new(channel.clone()).probe(ProbeRequest {}).await;
            (probe.ok()?.into_inner().ready == Some(true)).then_some(channel)
        })
        .await;
        Node {
            client: NodeClient::new(channel),
        }
    }
}

impl Node {
    pub(crate) fn volume(&self, disk: &Disk, capability: VolumeCapability) -> Volume {
        let id = disk.volume();
        Volume {
            node: self.clone(),
            serial: disk.serial.clone(),
            staging: format!("/var/lib/kubelet/plugins/kubernetes.io/csi/diskplugin.csi.example/{id}/globalmount"),
            target: format!("/var/lib/kubelet/pods/{id}/volumes/kubernetes.io~csi/{id}/mount"),
            capability,
            context: HashMap::new(),
            readonly: false,
            id,
        }
    }
}

impl Volume {
    /// The path of a file on the published volume.
    pub(crate) fn file(&self) -> String {
        format!("{}/file", self.target)
    }

    pub(crate) async fn stage(&self) -> Result<(), Status> {
        self.stage_within(CALL_TIMEOUT).await
    }

    pub(crate) async fn stage_within(&self, time: Duration) -> Result<(), Status> {
        let mut request = Request::new(NodeStageVolumeRequest {
            volume_id: self.id.clone(),
            staging_target_path: self.staging.clone(),
            volume_capability: Some(self.capability.clone()),
            volume_context: self.context.clone(),
            publish_context: [("serial".to_owned(), self.serial.clone())].into(),
            ..Default::default()
        });
        request.set_timeout(time);
        self.node.client.clone().node_stage_volume(request).await.map(drop)
    }

    pub(crate) async fn publish(&self) -> Result<(), Status> {
        self.publish_within(CALL_TIMEOUT).await
    }

    pub(crate) async fn publish_within(&self, time: Duration) -> Result<(), Status> {
        let mut request = Request::new(NodePublishVolumeRequest {
            volume_id: self.id.clone(),
            staging_target_path: self.staging.clone(),
            target_path: self.target.clone(),
            readonly: self.readonly,
            volume_capability: Some(self.capability.clone()),
            volume_context: self.context.clone(),
            publish_context: [("serial".to_owned(), self.serial.clone())].into(),
            ..Default::default()
        });
        request.set_timeout(time);
        self.node.client.clone().node_publish_volume(request).await.map(drop)
    }

    pub(crate) async fn unpublish(&self) -> Result<(), Status> {
        let mut request = Request::new(NodeUnpublishVolumeRequest {
            volume_id: self.id.clone(),
            target_path: self.target.clone(),
        });
        request.set_timeout(CALL_TIMEOUT);
        self.node.client.clone().node_unpublish_volume(request).await.map(drop)
    }

    pub(crate) async fn unstage(&self) -> Result<(), Status> {
        let mut request = Request::new(NodeUnstageVolumeRequest {
            volume_id: self.id.clone(),
            staging_target_path: self.staging.clone(),
        });
        request.set_timeout(CALL_TIMEOUT);
        self.node.client.clone().node_unstage_volume(request).await.map(drop)
    }

    /// Stages and publishes.
    pub(crate) async fn mount(&self) {
        let staged = self.stage().await;
        staged.unwrap_or_else(|error| panic!("staging {}: {error}", self.id));
        let published = self.publish().await;
        published.unwrap_or_else(|error| panic!("publishing {}: {error}", self.id));
    }

    /// Stages and publishes with the retries of kubelet.
    pub(crate) async fn publish_with_retries(&self) {
        until("the volume is published", CALL_TIMEOUT, async || {
            let staged = self.stage().await;
            staged
                .inspect_err(|error| eprintln!("staging {}: {error}", self.id))
                .ok()?;
            let published = self.publish().await;
            published
                .inspect_err(|error| eprintln!("publishing {}: {error}", self.id))
                .ok()
        })
        .await;
    }

    /// Unpublishes and unstages.
    pub(crate) async fn unmount(&self) {
        let unpublished = self.unpublish().await;
        unpublished.unwrap_or_else(|error| panic!("unpublishing {}: {error}", self.id));
        let unstaged = self.unstage().await;
        unstaged.unwrap_or_else(|error| panic!("unstaging {}: {error}", self.id));
    }

    /// Expands the published volume; returns the new size.
    pub(crate) async fn expand(&self, size: u64) -> Result<i64, Status> {
        let mut request = Request::new(NodeExpandVolumeRequest {
            volume_id: self.id.clone(),
            volume_path: self.target.clone(),
            staging_target_path: self.staging.clone(),
            capacity_range: Some(CapacityRange {
                required_bytes: i64::try_from(size).expect("a disk's size"),
                limit_bytes: 0,
            }),
            volume_capability: Some(self.capability.clone()),
            ..Default::default()
        });
        request.set_timeout(CALL_TIMEOUT);
        let response = self.node.client.clone().node_expand_volume(request).await?;
        Ok(response.into_inner().capacity_bytes)
    }

    pub(crate) async fn stats(&self) -> Result<NodeGetVolumeStatsResponse, Status> {
        self.stats_within(CALL_TIMEOUT).await
    }

    pub(crate) async fn stats_within(&self, time: Duration) -> Result<NodeGetVolumeStatsResponse, Status> {
        let mut request = Request::new(NodeGetVolumeStatsRequest {
            volume_id: self.id.clone(),
            volume_path: self.target.clone(),
            staging_target_path: self.staging.clone(),
        });
        request.set_timeout(time);
        let response = self.node.client.clone().node_get_volume_stats(request).await?;
        Ok(response.into_inner())
    }

    /// The conditions from NodeGetVolumeHealth; empty for a healthy volume.
    pub(crate) async fn health(&self) -> Result<Vec<VolumeHealthEntry>, Status> {
        self.health_within(CALL_TIMEOUT).await
    }

    pub(crate) async fn health_within(&self, time: Duration) -> Result<Vec<VolumeHealthEntry>, Status> {
        let mut request = Request::new(NodeGetVolumeHealthRequest {
            volume_id: self.id.clone(),
            volume_publish_path: self.target.clone(),
            staging_target_path: self.staging.clone(),
        });
        request.set_timeout(time);
        let mut client = self.node.client.clone();
        let response = client.node_get_volume_health(request).await?.into_inner();
        Ok(response
            .volume_health
            .expect("the response has the health")
            .health_statuses)
    }
}
