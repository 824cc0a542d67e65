//! What is told of a volume: its condition, its statistics.

use super::*;

fn health(places: &[&str]) -> Health {
    Health {
        volume: volume(),
        places: places.iter().map(|path| path.parse().unwrap()).collect(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_is_well_tells_nothing_with_or_without_its_path() {
    let (_, node) = world(staged());
    for places in [&[][..], &["/staging"]] {
        assert_eq!(node.health(&health(places), soon()).await.unwrap(), []);
    }
    assert_eq!(node.storage_health().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_mount_whose_device_is_gone_is_told_and_a_volume_elsewhere_is_not_here() {
    let state = State {
        devices: Vec::new(),
        ..staged()
    };
    let (_, node) = world(state);
    let found = node
        .health(&health(&["/target", "/staging"]), soon())
        .await
        .unwrap();
    assert_eq!(found[0].reason(), "DeviceGone");
    assert!(found[0].to_string().contains("/staging"), "{}", found[0]);
    let missing = node.health(&health(&[]), soon()).await.unwrap_err();
    assert!(matches!(missing, Error::NotHere { .. }), "{missing:?}");
}

#[tokio::test(start_paused = true)]
async fn a_filesystem_that_the_kernel_made_read_only_is_told() {
    let mut mount = mount_of(&disk("vdb", 16, "bp1"), "/staging", "rw,relatime");
    mount.super_options = "ro,errors=remount-ro".to_owned();
    let state = State {
        mounts: vec![mount],
        ..with_disk(Content::Blank)
    };
    let (_, node) = world(state);
    let found = node.health(&health(&[]), soon()).await.unwrap();
    assert_eq!(found[0].reason(), "RemountedReadOnly");
}

fn stats_request() -> Stats {
    Stats {
        volume: volume(),
        path: "/staging".parse().unwrap(),
    }
}

async fn told(state: State) -> (Option<VolumeStats>, Vec<&'static str>) {
    let (_, node) = world(state);
    let report = node.stats(&stats_request(), soon()).await.unwrap();
    let reasons = report.ailments.iter().map(|one| one.reason());
    (report.usage, reasons.collect())
}

#[tokio::test(start_paused = true)]
async fn statistics_answer_with_what_is_wrong_rather_than_with_an_error() {
    let device = Some(VolumeStats::Device(Bytes(1 << 30)));
    let hangs = State {
        hangs: true,
        ..staged()
    };
    assert_eq!(told(hangs).await, (device, vec!["FilesystemHangs"]));
    const EIO: i32 = 5;
    let shut = State {
        errno: Some(EIO),
        ..staged()
    };
    assert_eq!(told(shut).await, (device, vec!["FilesystemShutDown"]));
    let gone = State {
        devices: Vec::new(),
        ..staged()
    };
    assert_eq!(told(gone).await, (None, vec!["DeviceGone"]));
    let state = State {
        stated_size: Some(Bytes(2 << 30)),
        errors: Some("3 errors".to_owned()),
        ..staged()
    };
    let (_, reasons) = told(state).await;
    assert_eq!(reasons, ["DeviceTooSmall", "FilesystemErrors"]);
    let mut locked = staged();
    locked.devices[0].read_only = true;
    assert_eq!(told(locked).await.1, ["DeviceReadOnly"]);
    assert!(told(staged()).await.1.is_empty());
}

#[tokio::test]
async fn a_disk_that_left_and_came_again_under_its_name_is_told_as_gone() {
    let dir = tempfile::tempdir().unwrap();
    let fake = Arc::new(Fake::new(with_disk(Content::Blank)));
    let settings = Settings {
        state_dir: dir.path().to_owned(),
        ..world(State::default()).1.settings.clone()
    };
    let node = Arc::new(Node::new(
        Arc::clone(&fake) as _,
        Arc::clone(&fake) as _,
        settings,
    ));
    node.stage(stage_request(), soon()).await.unwrap();
    let report = node.stats(&stats_request(), soon()).await.unwrap();
    assert_eq!(report.ailments, []);
    fake.state().devices[0].sequence = Some(99);
    // Staging again finds it mounted, and changes nothing.
    node.stage(stage_request(), soon()).await.unwrap();
    for _ in 0..2 {
        let report = node.stats(&stats_request(), soon()).await.unwrap();
        assert_eq!(report.ailments[0].reason(), "DeviceGone");
        // Another disk may have the name by now.
        fake.state().devices[0].serial = crate::model::Serial::new("bp2");
    }
}
