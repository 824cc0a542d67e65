//! Tests of volume health and statistics.

use super::*;
use crate::model::health::HealthIssue;

async fn health(node: &NodeServices, paths: &[&str]) -> Result<Vec<HealthIssue>> {
    let request = HealthRequest {
        volume: volume(),
        paths: paths.iter().map(|path| path.parse().unwrap()).collect(),
    };
    node.health.health(&request, soon()).await
}

async fn stats(node: &NodeServices) -> VolumeStats {
    let request = path_request("/staging");
    node.health.stats(&request, soon()).await.unwrap()
}

fn reasons(issues: &[HealthIssue]) -> Vec<&str> {
    issues.iter().map(|issue| issue.reason.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_healthy_volume_reports_no_issue_with_or_without_a_path() {
    let (_, node) = world(staged());
    for paths in [&[][..], &["/staging"]] {
        assert_eq!(health(&node, paths).await.unwrap(), []);
    }
    assert!(stats(&node).await.health_issues.is_empty());
    assert_eq!(node.health.storage_health().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_removed_device_is_reported_and_a_missing_volume_is_not_found() {
    let (_, node) = world(FakeState {
        devices: Vec::new(),
        ..staged()
    });
    let found = health(&node, &["/target", "/staging"]).await.unwrap();
    assert_eq!(found[0].reason, "DeviceGone");
    assert!(found[0].message.contains("/staging"), "{:?}", found[0]);
    let missing = health(&node, &[]).await.unwrap_err();
    assert_eq!(missing.failure(), Failure::NoSuchResource, "{missing:?}");
    let stats = stats(&node).await;
    assert_eq!((stats.usage, reasons(&stats.health_issues)), (None, vec!["DeviceGone"]));
}

#[tokio::test]
async fn the_advice_matches_the_fsck_attribute() {
    for (fsck, advice) in [
        (Fsck::Preen, "`e2fsck -p` repairs the filesystem"),
        (Fsck::Journal, "after `e2fsck -f /dev/vdb` has repaired it"),
        (Fsck::None, "run `e2fsck -f /dev/vdb` manually before"),
    ] {
        let (fake, node) = world(with_disk(Content::Blank));
        let mut request = stage_request();
        request.tuning.fsck = fsck;
        node.stager.stage(request, soon()).await.unwrap();
        fake.state().errors = Some("1 error".to_owned());
        fake.state().mounts[0].super_options = "ro".to_owned();
        let found = health(&node, &[]).await.unwrap();
        assert_eq!(reasons(&found), ["RemountedReadOnly", "FilesystemErrors"]);
        for issue in found {
            assert!(issue.message.contains(advice), "{issue:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn health_and_stats_report_issues_instead_of_an_error() {
    const EIO: i32 = 5;
    let with = |change: fn(&mut FakeState)| {
        let mut state = staged();
        change(&mut state);
        state
    };
    for (state, has_usage, expected) in [
        (with(|state| state.hangs = true), false, &["FilesystemHangs"][..]),
        (with(|state| state.errno = Some(EIO)), false, &["FilesystemShutDown"]),
        (
            with(|state| {
                state.stated_size = Some(Bytes(2 << 30));
                state.errors = Some("3 errors".to_owned());
            }),
            true,
            &["DeviceTooSmall", "FilesystemErrors"],
        ),
        (
            with(|state| state.devices[0].read_only = true),
            true,
            &["DeviceReadOnly"],
        ),
        (
            with(|state| state.mounts[0].super_options = "ro,errors=remount-ro".to_owned()),
            true,
            &["RemountedReadOnly"],
        ),
        // The mount is writable.
        (
            with(|state| {
                state.errors = Some("1 error".to_owned());
                state.rejects_writes = true;
            }),
            true,
            &["RemountedReadOnly", "FilesystemErrors"],
        ),
    ] {
        let (_, node) = world(state);
        assert_eq!(reasons(&health(&node, &[]).await.unwrap()), expected);
        let stats = stats(&node).await;
        assert_eq!(reasons(&stats.health_issues), expected);
        let capacity = Some(VolumeUsage::Device(Bytes(1 << 30)));
        assert_eq!(stats.usage != capacity, has_usage, "{expected:?}");
    }
}

#[tokio::test]
async fn a_reattached_disk_with_the_same_name_is_reported_as_gone() {
    let (fake, node) = world(with_disk(Content::Blank));
    stage(&node).await.unwrap();
    assert_eq!(stats(&node).await.health_issues, []);
    fake.state().devices[0].sequence = Some(crate::linux::DeviceSequence::Diskseq(99));
    // A repeated stage finds the mount and changes nothing.
    stage(&node).await.unwrap();
    for _ in 0..2 {
        assert_eq!(stats(&node).await.health_issues[0].reason, "DeviceGone");
        // The name now belongs to another disk.
        fake.state().devices[0].serial = crate::model::Serial::new("bp2");
    }
}
