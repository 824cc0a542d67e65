//! Tests of volume health and statistics.

use super::*;

fn health(paths: &[&str]) -> HealthRequest {
    HealthRequest {
        volume: volume(),
        paths: paths.iter().map(|path| path.parse().unwrap()).collect(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_healthy_volume_reports_no_issue_with_or_without_a_path() {
    let (_, node) = world(staged());
    for paths in [&[][..], &["/staging"]] {
        assert_eq!(node.health.health(&health(paths), soon()).await.unwrap(), []);
    }
    assert_eq!(node.health.storage_health().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_removed_device_is_reported_and_a_missing_volume_is_not_found() {
    let state = FakeState {
        devices: Vec::new(),
        ..staged()
    };
    let (_, node) = world(state);
    let found = node
        .health
        .health(&health(&["/target", "/staging"]), soon())
        .await
        .unwrap();
    assert_eq!(found[0].reason(), "DeviceGone");
    assert!(found[0].to_string().contains("/staging"), "{}", found[0]);
    let missing = node.health.health(&health(&[]), soon()).await.unwrap_err();
    assert_eq!(missing.failure(), Failure::NoSuchResource, "{missing:?}");
}

#[tokio::test(start_paused = true)]
async fn a_filesystem_remounted_read_only_by_the_kernel_is_reported() {
    let mut mount = mount_of(&disk("vdb", 16, "bp1"), "/staging", "rw,relatime");
    mount.super_options = "ro,errors=remount-ro".to_owned();
    let state = FakeState {
        mounts: vec![mount],
        ..with_disk(Content::Blank)
    };
    let (_, node) = world(state);
    let found = node.health.health(&health(&[]), soon()).await.unwrap();
    assert_eq!(found[0].reason(), "RemountedReadOnly");
}

#[tokio::test(start_paused = true)]
async fn a_filesystem_that_rejects_writes_is_reported_although_its_mount_is_writable() {
    let state = FakeState {
        errors: Some("1 error".to_owned()),
        rejects_writes: true,
        ..staged()
    };
    let (_, node) = world(state);
    let found = node.health.health(&health(&[]), soon()).await.unwrap();
    let reasons: Vec<_> = found.iter().map(HealthIssue::reason).collect();
    assert_eq!(reasons, ["RemountedReadOnly", "FilesystemErrors"]);
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
        let found = node.health.health(&health(&[]), soon()).await.unwrap();
        let reasons: Vec<_> = found.iter().map(HealthIssue::reason).collect();
        assert_eq!(reasons, ["RemountedReadOnly", "FilesystemErrors"]);
        for issue in found {
            assert!(issue.to_string().contains(advice), "{issue}");
        }
    }
}

fn stats_request() -> StatsRequest {
    StatsRequest {
        volume: volume(),
        path: "/staging".parse().unwrap(),
    }
}

async fn stats(state: FakeState) -> (Option<VolumeUsage>, Vec<&'static str>) {
    let (_, node) = world(state);
    let report = node.health.stats(&stats_request(), soon()).await.unwrap();
    let reasons = report.health_issues.iter().map(|issue| issue.reason());
    (report.usage, reasons.collect())
}

#[tokio::test(start_paused = true)]
async fn stats_report_health_issues_instead_of_an_error() {
    let device = Some(VolumeUsage::Device(Bytes(1 << 30)));
    let hangs = FakeState {
        hangs: true,
        ..staged()
    };
    assert_eq!(stats(hangs).await, (device, vec!["FilesystemHangs"]));
    const EIO: i32 = 5;
    let shut = FakeState {
        errno: Some(EIO),
        ..staged()
    };
    assert_eq!(stats(shut).await, (device, vec!["FilesystemShutDown"]));
    let gone = FakeState {
        devices: Vec::new(),
        ..staged()
    };
    assert_eq!(stats(gone).await, (None, vec!["DeviceGone"]));
    let state = FakeState {
        stated_size: Some(Bytes(2 << 30)),
        errors: Some("3 errors".to_owned()),
        ..staged()
    };
    let (_, reasons) = stats(state).await;
    assert_eq!(reasons, ["DeviceTooSmall", "FilesystemErrors"]);
    let mut locked = staged();
    locked.devices[0].read_only = true;
    assert_eq!(stats(locked).await.1, ["DeviceReadOnly"]);
    assert!(stats(staged()).await.1.is_empty());
}

#[tokio::test]
async fn a_reattached_disk_with_the_same_name_is_reported_as_gone() {
    let (fake, node) = world(with_disk(Content::Blank));
    node.stager.stage(stage_request(), soon()).await.unwrap();
    let report = node.health.stats(&stats_request(), soon()).await.unwrap();
    assert_eq!(report.health_issues, []);
    fake.state().devices[0].sequence = Some(crate::linux::DeviceSequence::Diskseq(99));
    // A repeated stage finds the mount and changes nothing.
    node.stager.stage(stage_request(), soon()).await.unwrap();
    for _ in 0..2 {
        let report = node.health.stats(&stats_request(), soon()).await.unwrap();
        assert_eq!(report.health_issues[0].reason(), "DeviceGone");
        // The name now belongs to another disk.
        fake.state().devices[0].serial = crate::model::Serial::new("bp2");
    }
}
