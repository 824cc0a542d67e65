//! Requests of ControllerPublishVolume.

use super::*;

pub(crate) fn single_node(disk: &DiskId, node: &InstanceId) -> PublishRequest {
    PublishRequest {
        disk: disk.clone(),
        node: node.clone(),
        read_only: false,
        access: NodeAccess::SingleNode,
        multi_attach: false,
    }
}

impl Setup {
    pub(crate) async fn publish(&self, request: &PublishRequest) -> Result<Disk, Error> {
        self.disks.publisher.publish(minutes(1), request).await
    }
}
