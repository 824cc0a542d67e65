//! `all-in-one` with a fake cloud that throttles and has stock-outs, and calls for its volumes.

use std::path::{Path, PathBuf};
use std::time::Duration;

use diskplugin::csi::proto::controller_client::ControllerClient;
use diskplugin::csi::proto::node_client::NodeClient;
use diskplugin::csi::proto::{
    ControllerUnpublishVolumeRequest, DeleteVolumeRequest, NodeStageVolumeRequest, NodeUnstageVolumeRequest,
};
use nix::sys::signal::Signal;
use tonic::transport::Channel;

use crate::common::csi::{capability, create, endpoint, info, publish, volume};
use crate::common::process::{Process, diskplugin};
use crate::common::shell::{clean_up, sh};
use crate::common::wait::until;

const TIMEOUT: Duration = Duration::from_secs(60);
const ZONE: &str = "cn-beijing-b";

/// A running driver. Dropping it leaves no mount and no device.
pub(crate) struct Driver {
    process: Process,
    channel: Channel,
    node: String,
    /// `HOST:PORT` of `/metrics`.
    pub(crate) http: String,
    directory: Directory,
}

struct Directory(tempfile::TempDir);

impl Drop for Directory {
    fn drop(&mut self) {
        clean_up(self.0.path());
    }
}

impl Directory {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }
}

impl Driver {
    pub(crate) async fn start() -> Self {
        let directory = Directory(tempfile::tempdir().unwrap());
        let socket = directory.path("csi.sock");
        let flag = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let start = diskplugin([
            "all-in-one",
            "--rate-limits=account=50",
            "--cloud=mock",
            "--back-with=loop",
            "--zones",
            ZONE,
            "--http-address=127.0.0.1:0",
            "--metrics-inventory-interval=10s",
            "--max-volumes-per-node=5",
            // Polls take several calls, and some calls are throttled.
            "--create-delay=300ms",
            "--attach-delay=300ms",
            "--throttle=CreateDisk=2/1s",
            &format!("--out-of-stock={ZONE}/cloud_ssd"),
            &endpoint(&socket),
            &flag("kubelet-dir", directory.0.path()),
            &flag("state-dir", &directory.path("state")),
            &flag("device-dir", &directory.path("devices")),
        ]);
        let (process, channel) = start.ready(&socket).await;
        let http = until("/metrics is served", TIMEOUT, async || {
            let stderr = process.stderr();
            let line = stderr.lines().find(|line| line.contains("serving /healthz"))?;
            let address = line.split("address=").nth(1)?;
            Some(address.split_whitespace().next()?.to_owned())
        })
        .await;
        let node = info(&channel).await.unwrap().node_id;
        Self {
            process,
            channel,
            node,
            http,
            directory,
        }
    }

    fn staging(&self, volume: &str) -> String {
        self.directory.path(volume).display().to_string()
    }

    /// Creates, attaches, formats and mounts a volume, and writes to it.
    pub(crate) async fn stage(&self, name: &str) -> String {
        let id = create(&self.channel, name).await.unwrap();
        publish(&self.channel, &id, &self.node).await.unwrap();
        let staging = self.staging(&id);
        std::fs::create_dir_all(&staging).unwrap();
        let request = NodeStageVolumeRequest {
            volume_id: id.clone(),
            staging_target_path: staging,
            volume_capability: Some(capability()),
            ..NodeStageVolumeRequest::default()
        };
        let mut node = NodeClient::new(self.channel.clone());
        node.node_stage_volume(request).await.unwrap();
        self.write(&id).await;
        id
    }

    /// Writes to a staged volume until the data is on its device.
    pub(crate) async fn write(&self, id: &str) {
        let file = format!("{}/data", self.staging(id));
        sh(&format!(
            "dd if=/dev/urandom of={file} bs=64k count=16 conv=fsync status=none"
        ))
        .await;
    }

    /// Deletes a staged volume.
    pub(crate) async fn delete(&self, id: &str) {
        let unstage = NodeUnstageVolumeRequest {
            volume_id: id.to_owned(),
            staging_target_path: self.staging(id),
        };
        let mut node = NodeClient::new(self.channel.clone());
        node.node_unstage_volume(unstage).await.unwrap();
        let unpublish = ControllerUnpublishVolumeRequest {
            volume_id: id.to_owned(),
            node_id: self.node.clone(),
            ..ControllerUnpublishVolumeRequest::default()
        };
        let mut controller = ControllerClient::new(self.channel.clone());
        controller.controller_unpublish_volume(unpublish).await.unwrap();
        let delete = DeleteVolumeRequest {
            volume_id: id.to_owned(),
            ..DeleteVolumeRequest::default()
        };
        controller.delete_volume(delete).await.unwrap();
    }

    /// Calls that fail: a category that is out of stock, and volumes that do not exist.
    pub(crate) async fn fail(&self, name: &str) {
        let mut request = volume(name);
        request.parameters.insert("type".to_owned(), "cloud_ssd".to_owned());
        let mut controller = ControllerClient::new(self.channel.clone());
        controller.create_volume(request).await.unwrap_err();
        publish(&self.channel, "d-missing", &self.node).await.unwrap_err();
    }

    /// Creates volumes faster than the quota permits.
    pub(crate) async fn exceed_the_quota(&self, name: &str) {
        let creates = (0..8).map(|at| {
            let (channel, name) = (self.channel.clone(), format!("{name}-{at}"));
            async move { create(&channel, &name).await.unwrap() }
        });
        let mut running: tokio::task::JoinSet<_> = creates.collect();
        while let Some(created) = running.join_next().await {
            created.unwrap();
        }
    }

    /// Ends as kubelet ends it.
    pub(crate) async fn stop(self) {
        self.process.signal(Signal::SIGTERM);
        let ended = self.process.ended().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
}
