//! Tests of disks without a serial.

use super::*;
use crate::model::Failure;

#[tokio::test(start_paused = true)]
async fn a_disk_without_a_serial_is_refused_with_the_way_out() {
    let (fake, node) = world(State {
        devices: vec![disk("vdb", 16, "")],
        ..with_disk(Content::Blank)
    });
    let error = node.stager.stage(stage_request(), soon()).await;
    let error = error.unwrap_err();
    assert_eq!(error.failure(), Failure::DeviceNotFound);
    let advice = "/dev/vdb has no serial: if it is this disk, which was then created before June 2020, take a snapshot of \
                  the disk, create a new disk from the snapshot, and use the new disk";
    assert!(error.to_string().contains(advice), "{error}");
    assert!(fake.state().calls.is_empty(), "{:?}", fake.state().calls);
}
