//! A disk to detach.

use diskplugin::model::DiskId;

use crate::verbs::kit::{Setup, minutes, node_one};

pub(crate) async fn attached(setup: &Setup, name: &str) -> DiskId {
    let disk = setup.disk(name).await;
    setup
        .disks
        .attacher
        .attach(minutes(5), &disk, &node_one())
        .await
        .unwrap();
    disk
}
