//! The steps of the demo.

use tonic::transport::Channel;

use super::client::connect;
use super::data;
use super::node::NodeSide;
use super::show::Show;
use super::world::World;
use crate::csi::proto::VolumeCapability;
use crate::csi::proto::controller_client::ControllerClient;
use crate::csi::proto::node_client::NodeClient;
use crate::csi::proto::volume_capability::access_mode::Mode;
use crate::csi::proto::volume_capability::{AccessMode, AccessType, MountVolume};
use crate::model::{Filesystem, Gib};

pub(super) const SIZE: Gib = Gib(20);
pub(super) const GROWN: Gib = Gib(30);

/// The clients and the volume capability that they request.
#[derive(Debug)]
pub(super) struct Life {
    pub(super) controller: ControllerClient<Channel>,
    pub(super) nodes: Vec<NodeSide>,
    pub(super) capability: VolumeCapability,
}

impl Life {
    pub(super) async fn new(world: &World, filesystem: Filesystem) -> anyhow::Result<Self> {
        let mut nodes = Vec::new();
        for number in 0..2 {
            let socket = world.node_socket(number);
            let client = match world.serves_nodes() {
                true => Some(NodeClient::new(connect(&socket).await?)),
                false => None,
            };
            let id = world.node(number)?.id.to_string();
            nodes.push(NodeSide {
                id,
                client,
                kubelet: world.kubelet(number),
            });
        }
        let mount = MountVolume {
            fs_type: filesystem.to_string(),
            ..MountVolume::default()
        };
        Ok(Self {
            controller: ControllerClient::new(connect(&world.controller_socket()).await?),
            nodes,
            capability: VolumeCapability {
                access_type: Some(AccessType::Mount(mount)),
                access_mode: Some(AccessMode {
                    mode: Mode::SingleNodeWriter.into(),
                }),
            },
        })
    }

    /// The complete life cycle, on real block devices. With `keep`, the restored volume stays published.
    pub(super) async fn run_all(&self, show: &mut Show, keep: bool) -> anyhow::Result<()> {
        let (one, two) = (&self.nodes[0], &self.nodes[1]);
        let volume = show.step("create the volume", self.create("demo-data", None)).await?;
        let attached = show.step("attach it to node 1", self.attach(&volume, one)).await?;
        show.step("format and stage it", self.stage(&attached, one)).await?;
        show.step("publish it to a pod", self.publish(&attached, one)).await?;
        let write = async { Ok(((), data::write(&one.pod()).await?)) };
        show.step("write to it", write).await?;
        let snapshot = show.step("take a snapshot", self.snapshot(&volume)).await?;
        let later = async {
            Ok(((), {
                data::write_later(&one.pod()).await?;
                String::new()
            }))
        };
        show.step("write more, after the snapshot", later).await?;
        show.step("grow the disk", self.grow(&volume)).await?;
        show.step("grow the mounted filesystem", self.grow_mounted(&volume, one))
            .await?;
        show.step("unpublish and unstage it", self.unpublish_and_unstage(&volume, one))
            .await?;
        show.step("detach it", self.detach(&volume, one)).await?;
        let restored = show
            .step("restore the snapshot", self.create("demo-restored", Some(&snapshot)))
            .await?;
        let attached = show.step("attach it to node 2", self.attach(&restored, two)).await?;
        show.step("stage it", self.stage(&attached, two)).await?;
        show.step("publish it to a pod", self.publish(&attached, two)).await?;
        let verify = async { Ok(((), data::verify(&two.pod()).await?)) };
        show.step("read back and compare", verify).await?;
        if keep {
            return Ok(());
        }
        show.step("unpublish and unstage it", self.unpublish_and_unstage(&restored, two))
            .await?;
        show.step("detach it", self.detach(&restored, two)).await?;
        self.delete_all(show, &volume, &restored, &snapshot).await
    }

    /// Only the steps in the cloud.
    pub(super) async fn run_cloud_steps(&self, show: &mut Show) -> anyhow::Result<()> {
        let (one, two) = (&self.nodes[0], &self.nodes[1]);
        let volume = show.step("create the volume", self.create("demo-data", None)).await?;
        show.step("attach it to node 1", self.attach(&volume, one)).await?;
        let snapshot = show.step("take a snapshot", self.snapshot(&volume)).await?;
        show.step("grow the disk", self.grow(&volume)).await?;
        show.step("detach it", self.detach(&volume, one)).await?;
        let restored = show
            .step("restore the snapshot", self.create("demo-restored", Some(&snapshot)))
            .await?;
        show.step("attach it to node 2", self.attach(&restored, two)).await?;
        show.step("detach it", self.detach(&restored, two)).await?;
        self.delete_all(show, &volume, &restored, &snapshot).await
    }

    async fn delete_all(&self, show: &mut Show, volume: &str, restored: &str, snapshot: &str) -> anyhow::Result<()> {
        show.step("delete the volume", self.delete(volume)).await?;
        show.step("delete the restored volume", self.delete(restored)).await?;
        show.step("delete the snapshot", self.delete_snapshot(snapshot)).await
    }
}
