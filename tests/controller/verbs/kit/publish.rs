//! Requests of ControllerPublishVolume, and their rejection by the cloud.

use serde_json::json;

use diskplugin::disk::{DiskServices, Error, NodeAccess, PublishRequest};
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

pub(crate) async fn publish(disks: &DiskServices, request: &PublishRequest) -> Result<Disk, Error> {
    disks.publisher.publish(minutes(1), request).await
}

pub(crate) fn reject_attach(setup: &Setup, code: &str, status: u16) {
    let kind = json!({"code": {"status": status, "code": code}});
    setup.fault("AttachDisk", &kind);
}
