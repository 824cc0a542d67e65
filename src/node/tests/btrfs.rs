//! Tests of copies of a btrfs on one node.

use super::*;

fn btrfs_request() -> StageRequest {
    StageRequest {
        access: Access::Mount {
            filesystem: Filesystem::Btrfs,
            flags: MountFlags::default(),
        },
        ..stage_request()
    }
}

fn btrfs() -> FakeState {
    with_disk(filesystem(Filesystem::Btrfs, 1 << 30))
}

#[tokio::test(start_paused = true)]
async fn a_registered_but_unmounted_btrfs_with_the_same_uuid_is_unregistered() {
    let (fake, node) = world(FakeState {
        duplicate_mounts: 1,
        ..btrfs()
    });
    node.stager.stage(btrfs_request(), soon()).await.unwrap();
    assert_eq!(
        fake.state().calls,
        ["mkdir /staging", "btrfs device scan --forget", "mount /staging"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_mounted_btrfs_with_the_same_uuid_is_named() {
    let (fake, node) = world(FakeState {
        duplicate_mounts: 9,
        same_uuid: vec!["vdc".to_owned()],
        ..btrfs()
    });
    let error = node.stager.stage(btrfs_request(), soon()).await.unwrap_err();
    assert_eq!(error.failure(), crate::model::Failure::DuplicateFilesystem);
    assert!(error.to_string().contains("mounted from vdc"), "{error}");
    assert_eq!(fake.state().calls, ["mkdir /staging", "remove /staging"]);
}

#[tokio::test(start_paused = true)]
async fn a_mount_of_another_device_is_removed() {
    for (state, request) in [(btrfs(), btrfs_request()), (with_disk(Content::Blank), stage_request())] {
        let (fake, node) = world(FakeState {
            mounts_another_device: true,
            ..state
        });
        let error = error_chain(&node.stager.stage(request, soon()).await.unwrap_err());
        assert!(error.contains("mounted the filesystem of another device"), "{error}");
        assert!(fake.state().mounts.is_empty());
    }
}
