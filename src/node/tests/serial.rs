//! Tests of disks whose serial is not their ID without `d-`, and of disks without a serial.

use super::*;
use crate::linux::Link;
use crate::model::Serial;

fn stage_other_serial() -> StageRequest {
    StageRequest {
        volume: Volume::new(volume().id, Serial::new("zz9")),
        ..stage_request()
    }
}

fn with_other_serial() -> FakeState {
    FakeState {
        devices: vec![disk("vdb", 16, "zz9")],
        ..with_disk(Content::Blank)
    }
}

#[tokio::test(start_paused = true)]
async fn calls_that_carry_only_the_id_find_a_disk_with_another_serial() {
    let (fake, node) = world(with_other_serial());
    let request = stage_other_serial();
    let publish = PublishRequest {
        volume: request.volume.clone(),
        ..publish_request(false)
    };
    node.stager.stage(request, soon()).await.unwrap();
    node.publisher.publish(publish, soon()).await.unwrap();
    let node = restarted(&fake, "/", &state_dir(&fake));
    let expand = ExpandRequest {
        volume: volume(),
        path: "/staging".parse().unwrap(),
        required: None,
        limit: None,
        block: false,
    };
    fake.state().stated_size = Some(Bytes(1 << 30));
    node.expander.expand(expand, soon()).await.unwrap();
    let stats = node.health.stats(&path_request("/staging"), soon()).await;
    assert!(matches!(stats.unwrap().usage, Some(VolumeUsage::Filesystem(_))));
    let health = HealthRequest {
        volume: volume(),
        paths: Vec::new(),
    };
    assert_eq!(node.health.health(&health, soon()).await.unwrap(), []);
    let measured = node.health.staged_volumes(soon()).await;
    assert!(measured.len() == 1 && measured[0].stats.is_some());
    take_calls(&fake);
    unpublish(&node).await.unwrap();
    unstage(&node).await.unwrap();
    assert_eq!(
        take_calls(&fake),
        "unmount /target, remove /target, unmount /staging, remove /staging, flush /dev/vdb"
    );
    assert_eq!(node.health.staged_volumes(soon()).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_lost_record_is_written_again_when_the_volume_is_staged_again() {
    let (fake, node) = world(with_other_serial());
    let stage = async || node.stager.stage(stage_other_serial(), soon()).await.unwrap();
    stage().await;
    std::fs::remove_dir_all(state_dir(&fake).join("volume")).unwrap();
    fake.state().in_use = true;
    unstage(&node).await.unwrap_err();
    fake.state().in_use = false;
    stage().await;
    take_calls(&fake);
    unstage(&node).await.unwrap();
    assert_eq!(take_calls(&fake), "unmount /staging, remove /staging, flush /dev/vdb");
}

#[tokio::test(start_paused = true)]
async fn without_a_writable_state_directory_only_a_disk_with_another_serial_is_refused() {
    for (state, request, is_staged) in [
        (with_disk(Content::Blank), stage_request(), true),
        (with_other_serial(), stage_other_serial(), false),
    ] {
        let (fake, node) = world(state);
        std::fs::write(state_dir(&fake).join("volume"), "").unwrap();
        let staged = node.stager.stage(request, soon()).await;
        assert_eq!(staged.is_ok(), is_staged, "{staged:?}");
        assert_eq!(fake.state().mounts.len(), usize::from(is_staged));
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_without_a_serial_is_rejected_with_advice() {
    let (fake, node) = world(FakeState {
        devices: vec![disk("vdb", 16, "")],
        ..with_disk(Content::Blank)
    });
    let error = stage(&node).await.unwrap_err();
    assert_eq!(error.failure(), Failure::DeviceNotFound);
    let advice = "/dev/vdb has no serial: if it is this disk, which was then created before June 2020, take a snapshot of \
                  the disk, create a new disk from the snapshot, and use the new disk";
    assert!(error.to_string().contains(advice), "{error}");
    assert_eq!(take_calls(&fake), "");
}

#[tokio::test(start_paused = true)]
async fn a_stale_link_to_a_disk_that_is_recorded_for_another_volume_does_not_block_unstage() {
    let (fake, node) = world(with_disk(Content::Blank));
    stage(&node).await.unwrap();
    // The disk reports no serial any more.
    fake.state().devices[0].serial = None;
    fake.state().by_id_links = vec![Link {
        path: "/dev/disk/by-id/virtio-bp2".into(),
        target: "../../vdb".into(),
    }];
    let unstage_other = async || {
        let mut other = path_request("/other");
        other.volume = Volume::new("d-bp2".parse().unwrap(), None);
        node.unmounter.unstage(other, soon()).await
    };
    unstage_other().await.unwrap();
    // Without the record it may be the disk of the link.
    std::fs::remove_dir_all(state_dir(&fake).join("volume")).unwrap();
    let error = unstage_other().await.unwrap_err();
    assert_eq!(error.failure(), Failure::DeviceUnidentified);
}
