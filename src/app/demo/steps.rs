//! The steps of the demo.

use super::client::connect;
use super::controller::ControllerSide;
use super::data;
use super::node::NodeSide;
use super::show::Show;
use super::world::World;
use crate::csi::proto::VolumeCapability;
use crate::csi::proto::controller_client::ControllerClient;
use crate::csi::proto::node_client::NodeClient;
use crate::csi::proto::volume_capability::access_mode::Mode;
use crate::csi::proto::volume_capability::{AccessMode, AccessType, MountVolume};
use crate::model::Filesystem;

#[derive(Debug)]
pub(super) struct Steps {
    controller: ControllerSide,
    nodes: Vec<NodeSide>,
}

impl Steps {
    pub(super) async fn new(world: &World, filesystem: Filesystem) -> anyhow::Result<Self> {
        let mount = MountVolume {
            fs_type: filesystem.to_string(),
            ..MountVolume::default()
        };
        let capability = VolumeCapability {
            access_type: Some(AccessType::Mount(mount)),
            access_mode: Some(AccessMode {
                mode: Mode::SingleNodeWriter.into(),
            }),
        };
        let mut nodes = Vec::new();
        for number in 0..2 {
            let socket = world.node_socket(number);
            let client = match world.serves_nodes() {
                true => Some(NodeClient::new(connect(&socket).await?)),
                false => None,
            };
            nodes.push(NodeSide {
                id: world.node(number)?.id.to_string(),
                client,
                kubelet: world.kubelet(number),
                capability: capability.clone(),
            });
        }
        let controller = ControllerSide {
            client: ControllerClient::new(connect(&world.controller_socket()).await?),
            capability,
        };
        Ok(Self { controller, nodes })
    }

    /// The complete life cycle, on real block devices. With `keep`, the restored volume stays published.
    pub(super) async fn run_all(&self, show: &mut Show, keep: bool) -> anyhow::Result<()> {
        let (controller, one, two) = (&self.controller, &self.nodes[0], &self.nodes[1]);
        let volume = show
            .step("create the volume", controller.create("demo-data", None))
            .await?;
        let attached = show
            .step("attach it to node 1", controller.attach(&volume, one))
            .await?;
        show.step("format and stage it", one.stage(&attached)).await?;
        show.step("publish it to a pod", one.publish(&attached)).await?;
        let write = async { Ok(((), data::write(&one.pod()).await?)) };
        show.step("write to it", write).await?;
        let snapshot = show.step("take a snapshot", controller.snapshot(&volume)).await?;
        let later = async {
            Ok(((), {
                data::write_later(&one.pod()).await?;
                String::new()
            }))
        };
        show.step("write more, after the snapshot", later).await?;
        show.step("grow the disk", controller.grow(&volume)).await?;
        show.step("grow the mounted filesystem", one.grow_mounted(&volume))
            .await?;
        show.step("unpublish and unstage it", one.unpublish_and_unstage(&volume))
            .await?;
        show.step("detach it", controller.detach(&volume, one)).await?;
        let restored = show
            .step(
                "restore the snapshot",
                controller.create("demo-restored", Some(&snapshot)),
            )
            .await?;
        let attached = show
            .step("attach it to node 2", controller.attach(&restored, two))
            .await?;
        show.step("stage it", two.stage(&attached)).await?;
        show.step("publish it to a pod", two.publish(&attached)).await?;
        let verify = async { Ok(((), data::verify(&two.pod()).await?)) };
        show.step("read back and compare", verify).await?;
        if keep {
            return Ok(());
        }
        show.step("unpublish and unstage it", two.unpublish_and_unstage(&restored))
            .await?;
        show.step("detach it", controller.detach(&restored, two)).await?;
        self.delete_all(show, &volume, &restored, &snapshot).await
    }

    /// Only the steps in the cloud.
    pub(super) async fn run_cloud_steps(&self, show: &mut Show) -> anyhow::Result<()> {
        let (controller, one, two) = (&self.controller, &self.nodes[0], &self.nodes[1]);
        let volume = show
            .step("create the volume", controller.create("demo-data", None))
            .await?;
        show.step("attach it to node 1", controller.attach(&volume, one))
            .await?;
        let snapshot = show.step("take a snapshot", controller.snapshot(&volume)).await?;
        show.step("grow the disk", controller.grow(&volume)).await?;
        show.step("detach it", controller.detach(&volume, one)).await?;
        let restored = show
            .step(
                "restore the snapshot",
                controller.create("demo-restored", Some(&snapshot)),
            )
            .await?;
        show.step("attach it to node 2", controller.attach(&restored, two))
            .await?;
        show.step("detach it", controller.detach(&restored, two)).await?;
        self.delete_all(show, &volume, &restored, &snapshot).await
    }

    async fn delete_all(&self, show: &mut Show, volume: &str, restored: &str, snapshot: &str) -> anyhow::Result<()> {
        let controller = &self.controller;
        show.step("delete the volume", controller.delete(volume)).await?;
        show.step("delete the restored volume", controller.delete(restored))
            .await?;
        show.step("delete the snapshot", controller.delete_snapshot(snapshot))
            .await
    }
}
