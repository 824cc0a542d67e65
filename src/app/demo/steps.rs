//! The steps of the demo, as calls of the CSI services.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use tonic::transport::{Channel, Endpoint};

use super::data;
use super::show::Show;
use super::world::World;
use crate::base::Deadline;
use crate::csi::proto;
use crate::csi::proto::controller_client::ControllerClient;
use crate::csi::proto::node_client::NodeClient;
use crate::csi::proto::volume_capability::access_mode::Mode;
use crate::csi::proto::volume_capability::{AccessMode, AccessType, MountVolume};
use crate::csi::proto::volume_content_source::{SnapshotSource, Type as Source};
use crate::model::{Filesystem, Gib};

const SIZE: Gib = Gib(20);
const GROWN: Gib = Gib(30);

/// Timeout of a call, like `--timeout` of a sidecar.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(super) struct Steps {
    controller: ControllerClient<Channel>,
    nodes: Vec<Node>,
    capability: proto::VolumeCapability,
    snapshot_id: Option<String>,
}

/// A node and its volume.
#[derive(Debug)]
struct Node {
    id: String,
    /// `None`: the node plugin does not run.
    client: Option<NodeClient<Channel>>,
    staging: PathBuf,
    pod: PathBuf,
    volume_id: String,
    publish_context: HashMap<String, String>,
}

impl Steps {
    pub(super) async fn new(world: &World, filesystem: Filesystem) -> anyhow::Result<Self> {
        let mount = MountVolume {
            fs_type: filesystem.to_string(),
            ..MountVolume::default()
        };
        let mode = Mode::SingleNodeWriter.into();
        let mut nodes = Vec::new();
        for number in 0..2 {
            let client = match world.root {
                true => Some(NodeClient::new(connect(&world.node_socket(number)).await?)),
                false => None,
            };
            nodes.push(Node {
                id: world.node(number)?.id,
                client,
                staging: world.kubelet(number).join("staging"),
                pod: world.pod(number),
                volume_id: String::new(),
                publish_context: HashMap::new(),
            });
        }
        Ok(Self {
            controller: ControllerClient::new(connect(&world.controller_socket()).await?),
            nodes,
            capability: proto::VolumeCapability {
                access_type: Some(AccessType::Mount(mount)),
                access_mode: Some(AccessMode { mode }),
            },
            snapshot_id: None,
        })
    }

    /// The life cycle; without node plugins, only its steps in the cloud. With `keep`, the restored volume stays
    /// published.
    pub(super) async fn run(&mut self, show: &mut Show, on_nodes: bool, keep: bool) -> anyhow::Result<()> {
        show.step("create the volume", self.create(0)).await?;
        show.step("attach it to node 1", self.attach(0)).await?;
        if on_nodes {
            show.step("format and stage it", self.stage(0)).await?;
            show.step("publish it to a pod", self.publish(0)).await?;
            show.step("write to it", data::write(&self.nodes[0].pod)).await?;
        }
        show.step("take a snapshot", self.take_snapshot(0)).await?;
        if on_nodes {
            let later = data::write_later(&self.nodes[0].pod);
            show.step("write more, after the snapshot", later).await?;
        }
        show.step("grow the disk", self.grow(0)).await?;
        if on_nodes {
            show.step("grow the mounted filesystem", self.grow_mounted(0)).await?;
            show.step("unpublish and unstage it", self.unstage(0)).await?;
        }
        show.step("detach it", self.detach(0)).await?;
        show.step("restore the snapshot", self.create(1)).await?;
        show.step("attach it to node 2", self.attach(1)).await?;
        if on_nodes {
            show.step("stage it", self.stage(1)).await?;
            show.step("publish it to a pod", self.publish(1)).await?;
            show.step("read back and compare", data::verify(&self.nodes[1].pod))
                .await?;
            if keep {
                return Ok(());
            }
            show.step("unpublish and unstage it", self.unstage(1)).await?;
        }
        show.step("detach it", self.detach(1)).await?;
        show.step("delete the volume", self.delete(0)).await?;
        show.step("delete the restored volume", self.delete(1)).await?;
        show.step("delete the snapshot", self.delete_snapshot()).await
    }

    /// Creates the volume of a node, from the snapshot if there is one. As all steps, it returns a remark to print.
    async fn create(&mut self, number: usize) -> anyhow::Result<String> {
        let snapshot_id = self.snapshot_id.clone();
        let source = snapshot_id.map(|snapshot_id| Source::Snapshot(SnapshotSource { snapshot_id }));
        let created = self.controller.create_volume(proto::CreateVolumeRequest {
            name: format!("demo-{number}"),
            capacity_range: Some(at_least(SIZE)),
            volume_capabilities: vec![self.capability.clone()],
            parameters: [("type".to_owned(), "cloud_essd".to_owned())].into(),
            volume_content_source: source.map(|source| proto::VolumeContentSource { r#type: Some(source) }),
            ..proto::CreateVolumeRequest::default()
        });
        let volume = created.await?.into_inner().volume;
        let volume = volume.context("the response has no volume")?;
        let zones = volume.accessible_topology.iter().flat_map(|t| t.segments.values());
        let zones: Vec<_> = zones.map(String::as_str).collect();
        let (id, size) = (&volume.volume_id, gib(volume.capacity_bytes));
        self.nodes[number].volume_id.clone_from(id);
        Ok(format!("{id}: {size} of cloud_essd in {}", zones.join(", ")))
    }

    async fn attach(&mut self, number: usize) -> anyhow::Result<String> {
        let node = &mut self.nodes[number];
        let message = proto::ControllerPublishVolumeRequest {
            volume_id: node.volume_id.clone(),
            node_id: node.id.clone(),
            volume_capability: Some(self.capability.clone()),
            ..proto::ControllerPublishVolumeRequest::default()
        };
        let published = self.controller.controller_publish_volume(message).await?;
        node.publish_context = published.into_inner().publish_context;
        Ok(String::new())
    }

    async fn take_snapshot(&mut self, number: usize) -> anyhow::Result<String> {
        let message = proto::CreateSnapshotRequest {
            source_volume_id: self.nodes[number].volume_id.clone(),
            name: "demo-snapshot".to_owned(),
            ..proto::CreateSnapshotRequest::default()
        };
        // Like the snapshotter sidecar: repeat until the snapshot is ready to use.
        loop {
            let created = self.controller.create_snapshot(message.clone()).await?;
            let snapshot = created.into_inner().snapshot;
            let snapshot = snapshot.context("the response has no snapshot")?;
            if snapshot.ready_to_use {
                self.snapshot_id = Some(snapshot.snapshot_id.clone());
                return Ok(snapshot.snapshot_id);
            }
        }
    }

    async fn grow(&mut self, number: usize) -> anyhow::Result<String> {
        let message = proto::ControllerExpandVolumeRequest {
            volume_id: self.nodes[number].volume_id.clone(),
            capacity_range: Some(at_least(GROWN)),
            volume_capability: Some(self.capability.clone()),
            ..proto::ControllerExpandVolumeRequest::default()
        };
        let expanded = self.controller.controller_expand_volume(message).await?;
        Ok(format!("now {}", gib(expanded.into_inner().capacity_bytes)))
    }

    async fn detach(&mut self, number: usize) -> anyhow::Result<String> {
        let message = proto::ControllerUnpublishVolumeRequest {
            volume_id: self.nodes[number].volume_id.clone(),
            node_id: self.nodes[number].id.clone(),
            ..proto::ControllerUnpublishVolumeRequest::default()
        };
        self.controller.controller_unpublish_volume(message).await?;
        Ok(String::new())
    }

    async fn delete(&mut self, number: usize) -> anyhow::Result<String> {
        let volume_id = self.nodes[number].volume_id.clone();
        let deleted = self.controller.delete_volume(proto::DeleteVolumeRequest {
            volume_id: volume_id.clone(),
            ..proto::DeleteVolumeRequest::default()
        });
        deleted.await?;
        Ok(volume_id)
    }

    async fn delete_snapshot(&mut self) -> anyhow::Result<String> {
        let snapshot_id = self.snapshot_id.take().context("no snapshot was created")?;
        let deleted = self.controller.delete_snapshot(proto::DeleteSnapshotRequest {
            snapshot_id: snapshot_id.clone(),
            ..proto::DeleteSnapshotRequest::default()
        });
        deleted.await?;
        Ok(snapshot_id)
    }

    async fn stage(&mut self, number: usize) -> anyhow::Result<String> {
        let node = &mut self.nodes[number];
        std::fs::create_dir_all(&node.staging)?;
        let message = proto::NodeStageVolumeRequest {
            volume_id: node.volume_id.clone(),
            publish_context: node.publish_context.clone(),
            staging_target_path: text(&node.staging),
            volume_capability: Some(self.capability.clone()),
            ..proto::NodeStageVolumeRequest::default()
        };
        node.client()?.node_stage_volume(message).await?;
        Ok(String::new())
    }

    async fn publish(&mut self, number: usize) -> anyhow::Result<String> {
        let node = &mut self.nodes[number];
        let message = proto::NodePublishVolumeRequest {
            volume_id: node.volume_id.clone(),
            publish_context: node.publish_context.clone(),
            staging_target_path: text(&node.staging),
            target_path: text(&node.pod),
            volume_capability: Some(self.capability.clone()),
            ..proto::NodePublishVolumeRequest::default()
        };
        node.client()?.node_publish_volume(message).await?;
        let table = std::fs::read_to_string("/proc/self/mounts")?;
        let pod = text(&node.pod);
        let line = table.lines().find(|line| line.split(' ').nth(1) == Some(pod.as_str()));
        let line = line.with_context(|| format!("nothing is mounted at {pod}"))?;
        let fields: Vec<&str> = line.split(' ').take(3).collect();
        Ok(fields.join(" "))
    }

    async fn grow_mounted(&mut self, number: usize) -> anyhow::Result<String> {
        let node = &mut self.nodes[number];
        let before = node.total().await?;
        let message = proto::NodeExpandVolumeRequest {
            volume_id: node.volume_id.clone(),
            volume_path: text(&node.pod),
            staging_target_path: text(&node.staging),
            capacity_range: Some(at_least(GROWN)),
            volume_capability: Some(self.capability.clone()),
            ..proto::NodeExpandVolumeRequest::default()
        };
        node.client()?.node_expand_volume(message).await?;
        let after = node.total().await?;
        anyhow::ensure!(after > before, "the filesystem still has {after} bytes");
        Ok(format!("from {} to {}", gib(before), gib(after)))
    }

    async fn unstage(&mut self, number: usize) -> anyhow::Result<String> {
        let node = &mut self.nodes[number];
        let (volume_id, target_path) = (node.volume_id.clone(), text(&node.pod));
        let message = proto::NodeUnpublishVolumeRequest { volume_id, target_path };
        node.client()?.node_unpublish_volume(message).await?;
        let message = proto::NodeUnstageVolumeRequest {
            volume_id: node.volume_id.clone(),
            staging_target_path: text(&node.staging),
        };
        node.client()?.node_unstage_volume(message).await?;
        Ok(String::new())
    }
}

impl Node {
    fn client(&mut self) -> anyhow::Result<&mut NodeClient<Channel>> {
        self.client.as_mut().context("this node is not served")
    }

    /// The size of the mounted filesystem in bytes.
    async fn total(&mut self) -> anyhow::Result<i64> {
        let message = proto::NodeGetVolumeStatsRequest {
            volume_id: self.volume_id.clone(),
            volume_path: text(&self.pod),
            staging_target_path: text(&self.staging),
        };
        let usage = self.client()?.node_get_volume_stats(message).await?.into_inner().usage;
        let bytes = usage
            .iter()
            .find(|usage| usage.unit() == proto::volume_usage::Unit::Bytes);
        Ok(bytes.context("the response has no usage in bytes")?.total)
    }
}

/// Connects to a socket as soon as it is served.
async fn connect(socket: &Path) -> anyhow::Result<Channel> {
    let endpoint = Endpoint::try_from(format!("unix://{}", socket.display()))?.timeout(CALL_TIMEOUT);
    let deadline = Deadline::after(Duration::from_secs(10));
    let mut tick = tokio::time::interval(Duration::from_millis(10));
    loop {
        tick.tick().await;
        match endpoint.connect().await {
            Err(_) if !deadline.has_passed() => {}
            outcome => return outcome.with_context(|| format!("no server on {}", socket.display())),
        }
    }
}

fn at_least(size: Gib) -> proto::CapacityRange {
    proto::CapacityRange {
        required_bytes: size.bytes().to_i64(),
        limit_bytes: 0,
    }
}

fn gib(bytes: i64) -> String {
    let mib = bytes / (1 << 20);
    format!("{}.{} GiB", mib / 1024, mib % 1024 * 10 / 1024)
}

fn text(path: &Path) -> String {
    path.display().to_string()
}
