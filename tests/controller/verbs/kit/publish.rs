//! Requests of ControllerPublishVolume.

use diskplugin::disk::{Error, NodeAccess, PublishRequest};
use diskplugin::model::{Disk, DiskId, InstanceId};

use crate::verbs::kit::{Setup, minutes};

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
