//! The node plugin in the guest, and the calls that kubelet makes.

use std::path::Path;
use std::time::Duration;

use diskplugin::csi::proto::identity_client::IdentityClient;
use diskplugin::csi::proto::{ProbeRequest, VolumeCapability};
use tonic::Status;
use tonic::transport::{Channel, Endpoint};

use super::disk::Disk;
use super::machine::Guest;
use crate::common::volume::{NodePort, NodeVolume};
use crate::common::wait::until;

/// Timeout of a call on a busy machine.
pub(crate) const CALL_TIMEOUT: Duration = Duration::from_secs(90);

/// The node plugin in a guest.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    channel: Channel,
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
        Node { channel }
    }
}

impl Node {
    pub(crate) fn volume(&self, disk: &Disk, capability: VolumeCapability) -> NodeVolume {
        let id = disk.volume();
        let kubelet = Path::new("/var/lib/kubelet");
        let port = NodePort::Socket(self.channel.clone());
        NodeVolume {
            timeout: CALL_TIMEOUT,
            staging: format!("/var/lib/kubelet/plugins/kubernetes.io/csi/diskplugin.csi.example/{id}/globalmount"),
            target: format!("/var/lib/kubelet/pods/{id}/volumes/kubernetes.io~csi/{id}/mount"),
            publish_context: [("serial".to_owned(), disk.serial.clone())].into(),
            ..NodeVolume::new(port, id, kubelet, Some(capability))
        }
    }
}

impl NodeVolume {
    /// The path of a file on the published volume.
    pub(crate) fn file(&self) -> String {
        format!("{}/file", self.target)
    }

    /// Stages and publishes with the retries of kubelet.
    pub(crate) async fn publish_with_retries(&self) {
        until("the volume is published", CALL_TIMEOUT, async || {
            let print = |error: &Status| eprintln!("{}: {error}", self.id);
            self.stage().await.inspect_err(print).ok()?;
            self.publish().await.inspect_err(print).ok()
        })
        .await;
    }
}
