//! Tests of volume expansion.

use super::*;

fn expand_request(required: u64) -> ExpandRequest {
    ExpandRequest {
        volume: volume(),
        path: "/staging".parse().unwrap(),
        required: Some(Bytes(required)),
        limit: None,
        block: false,
    }
}

#[tokio::test(start_paused = true)]
async fn online_resize_without_cap_sys_resource_names_the_capability() {
    let (fake, node) = world(FakeState {
        stated_size: Some(Bytes(1 << 29)),
        ..staged()
    });
    fake.state().exit_codes.insert("resize2fs", 1);
    let error = node.expander.expand(expand_request(0), soon()).await.unwrap_err();
    assert_eq!(error.failure(), Failure::CapabilityMissing, "{error:?}");
    fake.state().capabilities = Capabilities::parse("CapEff: 1000000").unwrap();
    let error = node.expander.expand(expand_request(0), soon()).await.unwrap_err();
    assert_eq!(
        error_chain(&error),
        "volume d-bp1: cannot grow the filesystem: `resize2fs /dev/vdb`: exit code 1: fake stderr"
    );
}

#[tokio::test(start_paused = true)]
async fn expand_waits_for_the_device_size() {
    let (fake, node) = world(FakeState {
        stated_size: Some(Bytes(1 << 30)),
        ..staged()
    });
    let error = node.expander.expand(expand_request(2 << 30), soon()).await;
    assert_eq!(
        error.unwrap_err().to_string(),
        "volume d-bp1: /dev/vdb (254:16) still has 1073741824 bytes at the deadline, 2147483648 \
         bytes are required"
    );
    let late = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        fake.state().devices[0].size = Bytes(2 << 30);
    };
    let (size, ()) = tokio::join!(node.expander.expand(expand_request(2 << 30), soon()), late);
    assert_eq!(size.unwrap(), Bytes(2 << 30));
    assert_eq!(take_calls(&fake), "resize2fs /dev/vdb");
}

#[tokio::test(start_paused = true)]
async fn expand_fails_without_growing_if_the_superblock_cannot_be_read() {
    let (fake, node) = world(FakeState {
        failing_call: Some("read"),
        ..staged()
    });
    let error = node.expander.expand(expand_request(0), soon()).await.unwrap_err();
    assert_eq!(
        error_chain(&error),
        format!("volume d-bp1: expanding failed: {UNREADABLE}")
    );
    assert_eq!(take_calls(&fake), "");
}

/// The disk is larger than a DOS partition table can address.
#[tokio::test(start_paused = true)]
async fn a_partition_that_cannot_reach_the_end_of_the_disk_is_an_error() {
    let mut whole = disk("vdb", 16, "bp1");
    whole.partitions = vec![partition(&whole)];
    let part = whole.as_partition(&whole.partitions[0]);
    whole.size = Bytes(3 << 40);
    whole.partitions[0].size = Bytes((2 << 40) - (1 << 20));
    let (_, node) = world(FakeState {
        stated_size: Some(whole.partitions[0].size),
        devices: vec![whole],
        mounts: vec![mount_of(&part, "/staging", "rw")],
        ..staged()
    });
    let error = node.expander.expand(expand_request(3 << 40), soon()).await.unwrap_err();
    assert_eq!(error.failure(), Failure::DeviceNotResized);
    assert!(error.to_string().contains("its partition /dev/vdb1"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn stats_rejects_a_path_of_another_volume() {
    let (fake, node) = world(staged());
    fake.state().devices.push(disk("vdc", 32, "bp2"));
    let mut request = path_request("/staging");
    request.volume = Volume::new("d-bp2".parse().unwrap(), None);
    let error = node.health.stats(&request, soon()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "volume d-bp2 is not at /staging: /dev/vdb is mounted there"
    );
}

#[tokio::test(start_paused = true)]
async fn expand_waits_for_a_uevent() {
    let (fake, node) = world(staged());
    let grows = async {
        tokio::time::sleep(Duration::from_millis(1900)).await;
        let searches = fake.state().searches;
        assert_eq!(searches, 2);
        fake.state().devices[0].size = Bytes(2 << 30);
        fake.send_uevent();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(fake.state().searches, 3);
    };
    let (grown, ()) = tokio::join!(node.expander.expand(expand_request(2 << 30), soon()), grows);
    assert_eq!(grown.unwrap(), Bytes(2 << 30));
}

#[tokio::test(start_paused = true)]
async fn a_device_above_the_limit_is_out_of_range() {
    let (fake, node) = world(staged());
    let request = ExpandRequest {
        limit: Some(Bytes(1 << 29)),
        ..expand_request(0)
    };
    let error = node.expander.expand(request, soon()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "volume d-bp1: /dev/vdb (254:16) has 1073741824 bytes, at most 536870912 bytes are allowed, \
         and disks are never shrunk"
    );
    assert_eq!(error.failure(), Failure::OutOfRange);
    assert!(fake.state().calls.is_empty());
}
