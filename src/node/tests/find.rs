//! Tests of the wait for a device.

use super::*;

/// The second time is between two uevents or polls.
#[tokio::test(start_paused = true)]
async fn stage_waits_for_a_late_device() {
    for seconds in [3, 1] {
        let (fake, node) = world(FakeState {
            devices: Vec::new(),
            ..with_disk(Content::Blank)
        });
        let late = async {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            fake.state().devices.push(disk("vdb", 16, "bp1"));
        };
        let (staged, ()) = tokio::join!(stage(&node), late);
        staged.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_missing_device_is_reported_before_the_deadline() {
    let (_, node) = world(FakeState {
        devices: vec![disk("vda", 0, "system")],
        ..FakeState::default()
    });
    let deadline = soon();
    let error = node.stager.stage(stage_request(), deadline).await.unwrap_err();
    assert!(!deadline.has_passed());
    assert_eq!(
        error.to_string(),
        "volume d-bp1: no device with serial bp1 appeared by the deadline: existing devices: /dev/vda (254:0) with \
         serial system and 1073741824 bytes"
    );
}

#[tokio::test(start_paused = true)]
async fn uevents_trigger_the_search_for_a_device() {
    let (fake, node) = world(FakeState {
        content: Some(Content::Blank),
        ..FakeState::default()
    });
    let deadline = Deadline::after(Duration::from_secs(60));
    let call = node.stager.stage(stage_request(), deadline);
    let events = async {
        // Before the wait, and again after the subscription, so that no event is missed.
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(fake.state().searches, 2);
        tokio::time::sleep(Duration::from_millis(1900)).await;
        assert_eq!(fake.state().searches, 2);
        // An event of another device triggers one search, and a second for a late serial.
        fake.send_uevent();
        tokio::time::sleep(Duration::from_millis(1900)).await;
        assert_eq!(fake.state().searches, 4);
        fake.state().devices = vec![disk("vdb", 16, "bp1")];
        fake.send_uevent();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(fake.state().searches, 5);
    };
    let (staged, ()) = tokio::join!(call, events);
    staged.unwrap();
}
