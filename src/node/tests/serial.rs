//! Tests of disks without a serial.

use super::*;
use crate::host::Link;
use crate::model::Failure;

fn state_dir(fake: &FakeHost) -> PathBuf {
    fake.state().state_dir.as_ref().unwrap().path().to_owned()
}

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

#[tokio::test(start_paused = true)]
async fn a_stale_link_to_a_disk_that_is_recorded_for_another_volume_does_not_block_unstage() {
    let (fake, node) = world(with_disk(Content::Blank));
    node.stager.stage(stage_request(), soon()).await.unwrap();
    // The disk reports no serial any more.
    fake.state().devices[0].serial = None;
    fake.state().by_id_links = vec![Link {
        path: "/dev/disk/by-id/virtio-bp2".into(),
        target: "../../vdb".into(),
    }];
    let other = || UnstageRequest {
        volume: Volume::new("d-bp2".parse().unwrap(), None),
        staging: "/other".parse().unwrap(),
    };
    node.unstager.unstage(other(), soon()).await.unwrap();
    // Without the record it may be the disk of the link.
    std::fs::remove_dir_all(state_dir(&fake).join("volume")).unwrap();
    let error = node.unstager.unstage(other(), soon()).await.unwrap_err();
    assert_eq!(error.failure(), Failure::DeviceUnidentified);
}
