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
async fn a_registered_btrfs_with_the_same_uuid_is_unregistered_or_named_if_it_is_mounted() {
    for (duplicate_mounts, same_uuid, calls) in [
        (
            1,
            Vec::new(),
            "mkdir /staging, btrfs device scan --forget, mount /staging",
        ),
        (9, vec!["vdc".to_owned()], "mkdir /staging, remove /staging"),
    ] {
        let (fake, node) = world(FakeState {
            duplicate_mounts,
            same_uuid,
            ..btrfs()
        });
        let staged = node.stager.stage(btrfs_request(), soon()).await;
        assert_eq!(staged.is_ok(), duplicate_mounts == 1);
        if let Err(error) = staged {
            assert_eq!(error.failure(), Failure::DuplicateFilesystem);
            assert!(error.to_string().contains("mounted from vdc"), "{error}");
        }
        assert_eq!(take_calls(&fake), calls);
    }
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
