//! `all-in-one` with a fake cloud that throttles and has stock-outs, and calls for its volumes.

use diskplugin::csi::proto::controller_client::ControllerClient;
use tonic::transport::Channel;

use crate::common::csi::{capability, create, endpoint, info, publish, volume};
use crate::common::machine::TestDir;
use crate::common::process::diskplugin;
use crate::common::request::{deletion, unpublication};
use crate::common::shell::sh;
use crate::common::volume::{NodePort, NodeVolume};
use crate::running::{HTTP, Running};

const ZONE: &str = "cn-beijing-b";

/// A running driver. Dropping it leaves no mount and no device.
pub(crate) struct Driver {
    running: Running,
    node: String,
    /// `HOST:PORT` of `/metrics`.
    pub(crate) http: String,
    directory: TestDir,
}

impl Driver {
    pub(crate) async fn start() -> Self {
        let directory = TestDir::new();
        let flag = |name: &str, path: &str| format!("--{name}={}", directory.path().join(path).display());
        let running = Running::of(|socket| {
            let start = diskplugin([
                "all-in-one",
                "--rate-limits=account=50",
                "--cloud=mock",
                "--back-with=loop",
                "--zones",
                ZONE,
                HTTP,
                "--metrics-inventory-interval=10s",
                "--max-volumes-per-node=5",
                // Polls take several calls, and some calls are throttled.
                "--create-delay=300ms",
                "--attach-delay=300ms",
                "--throttle=CreateDisk=2/1s",
                &format!("--out-of-stock={ZONE}/cloud_ssd"),
                &endpoint(socket),
            ]);
            start.args([
                flag("kubelet-dir", ""),
                flag("state-dir", "state"),
                flag("device-dir", "devices"),
            ])
        });
        let running = running.await;
        Self {
            node: info(&running.channel).await.unwrap().node_id,
            http: running.http().await.trim_start_matches("http://").to_owned(),
            running,
            directory,
        }
    }

    fn volume(&self, id: &str) -> NodeVolume {
        let port = NodePort::Socket(self.running.channel.clone());
        let directory = self.directory.path().join(id);
        NodeVolume::new(port, id.to_owned(), &directory, Some(capability()))
    }

    fn controller(&self) -> ControllerClient<Channel> {
        ControllerClient::new(self.running.channel.clone())
    }

    /// Creates, attaches, formats and mounts a volume, and writes to it.
    pub(crate) async fn stage(&self, name: &str) -> String {
        let id = create(&self.running.channel, name).await.unwrap();
        publish(&self.running.channel, &id, &self.node).await.unwrap();
        let volume = self.volume(&id);
        std::fs::create_dir_all(&volume.staging).unwrap();
        volume.stage().await.unwrap();
        self.write(&id).await;
        id
    }

    /// Writes to a staged volume until the data is on its device.
    pub(crate) async fn write(&self, id: &str) {
        let file = format!("{}/data", self.volume(id).staging);
        let write = format!("dd if=/dev/urandom of={file} bs=64k count=16 conv=fsync status=none");
        sh(&write).await;
    }

    /// Deletes a staged volume.
    pub(crate) async fn delete(&self, id: &str) {
        self.volume(id).unstage().await.unwrap();
        let mut controller = self.controller();
        let unpublish = unpublication(id, &self.node);
        controller.controller_unpublish_volume(unpublish).await.unwrap();
        controller.delete_volume(deletion(id)).await.unwrap();
    }

    /// Calls that fail: a category that is out of stock, and volumes that do not exist.
    pub(crate) async fn fail(&self, name: &str) {
        let mut request = volume(name);
        request.parameters.insert("type".to_owned(), "cloud_ssd".to_owned());
        self.controller().create_volume(request).await.unwrap_err();
        publish(&self.running.channel, "d-missing", &self.node)
            .await
            .unwrap_err();
    }

    /// Creates volumes faster than the quota permits.
    pub(crate) async fn exceed_the_quota(&self, name: &str) {
        let creates = (0..8).map(|at| {
            let (channel, name) = (self.running.channel.clone(), format!("{name}-{at}"));
            async move { create(&channel, &name).await.unwrap() }
        });
        let mut running: tokio::task::JoinSet<_> = creates.collect();
        while let Some(created) = running.join_next().await {
            created.unwrap();
        }
    }

    /// Ends as kubelet ends it.
    pub(crate) async fn stop(self) {
        self.running.stop().await;
    }
}
