//! Tests of disks that complete no I/O, and of the calls that wait for them.

use super::super::io_watch::IoWatch;
use super::observe::CallContext;
use super::*;
use crate::linux::HostError;
use crate::model::Failure::{DiskHung, HostTimeout, OperationPending};

/// Documentation/block/stat.rst: one I/O in flight.
const HUNG: &str = "5 0 40 1 7 0 56 2 1 3 3";
const IDLE: &str = "5 0 40 1 7 0 56 2 0 3 3";

/// The failure of another operation of the volume.
async fn failure_of_another(io: &IoWatch) -> Failure {
    let id = volume().id;
    let other = io.operations.run(&id, "staging", soon(), async { Ok(()) });
    other.await.unwrap_err().failure()
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_completes_no_io_is_not_unmounted_and_named() {
    let (fake, node) = world(staged());
    // Then the device has completed I/O, but not since the second check has begun.
    let later = HUNG.replacen('5', "900", 1);
    for (text, seconds) in [(HUNG, 9), (HUNG, 18), (&later, 9)] {
        set_block_setting(&fake, "stat", text);
        let deadline = Deadline::after(Duration::from_secs(10));
        let unstaged = node.unmounter.unstage(path_request("/staging"), deadline).await;
        assert!(!deadline.has_passed());
        let error = unstaged.unwrap_err();
        assert_eq!(error.failure(), DiskHung);
        let text = format!("/dev/vdb (254:16) has completed no I/O for {seconds} s: unstaging waits");
        assert!(error.to_string().contains(&text), "{error}");
        assert_eq!(take_calls(&fake), "");
    }
    set_block_setting(&fake, "stat", "901 0 40 1 7 0 56 2 0 3 3");
    unstage(&node).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hung_unmount_is_reported_at_the_deadline_and_to_repeated_calls() {
    let (fake, node) = world(staged());
    let slots = tool_slots::ToolSlots::default();
    let acquire = || slots.try_acquire(tool_slots::ToolKind::FullCheck);
    let mut held: Vec<_> = std::iter::from_fn(acquire).collect();
    let (io, host, slot) = (&node.unmounter.io, Arc::clone(&fake), held.pop());
    let watch = io.clone();
    let hangs = async move {
        let volume = super::volume();
        let call = CallContext::new(&*host, &volume, "unstaging", soon());
        let never = std::future::pending::<Result<()>>();
        watch.observe(call, &disk("vdb", 16, "bp1"), slot, never).await
    };
    set_block_setting(&fake, "stat", HUNG);
    let deadline = Deadline::after(Duration::from_secs(10));
    let first = io.operations.run(&volume().id, "unstaging", deadline, hangs).await;
    assert_eq!(first.unwrap_err().failure(), DiskHung);
    assert_eq!(failure_of_another(io).await, DiskHung);
    // Longer than a failover of the storage.
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(acquire().is_none(), "the tool may continue");
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(acquire().is_some(), "a tool on a hung disk keeps no slot");
}

#[tokio::test(start_paused = true)]
async fn a_busy_disk_is_not_hung() {
    let (fake, node) = world(FakeState::default());
    let (io, host) = (&node.unmounter.io, Arc::clone(&fake));
    let set = move |completed: u32, in_flight: u32| {
        let text = format!("{completed} 0 40 1 7 0 56 2 {in_flight} 3 3");
        set_block_setting(&fake, "stat", &text);
    };
    let watch = io.clone();
    let steps = async move {
        let volume = super::volume();
        let call = CallContext::new(&*host, &volume, "staging", soon());
        let run = async {
            for round in 0..100 {
                set(round, 0);
                // Idle for longer than a disk may hang.
                tokio::time::sleep(Duration::from_secs(7)).await;
                set(round, 1);
                tokio::time::sleep(Duration::from_secs(4)).await;
            }
            // Never idle.
            for round in 100..300 {
                set(round, 1);
                tokio::time::sleep(Duration::from_secs(2)).await;
            }
            Ok(())
        };
        watch.observe(call, &disk("vdb", 16, "bp1"), None, run).await
    };
    let running = io.operations.run(&volume().id, "staging", soon(), steps).await;
    assert_eq!(running.unwrap_err().failure(), OperationPending);
    for _ in 0..1400 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(failure_of_another(io).await, OperationPending);
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_is_hung_only_during_the_step_that_waits_for_it() {
    let (fake, node) = world(FakeState::default());
    let (io, host) = (&node.unmounter.io, Arc::clone(&fake));
    set_block_setting(&fake, "stat", HUNG);
    let watch = io.clone();
    let steps = async move {
        let volume = super::volume();
        let call = CallContext::new(&*host, &volume, "staging", soon());
        let step = async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            Ok(())
        };
        watch.observe(call, &disk("vdb", 16, "bp1"), None, step).await?;
        std::future::pending::<Result<()>>().await
    };
    let deadline = Deadline::after(Duration::from_secs(10));
    let first = io.operations.run(&volume().id, "staging", deadline, steps).await;
    assert_eq!(first.unwrap_err().failure(), DiskHung);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(failure_of_another(io).await, OperationPending);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_times_out_on_a_hung_disk_is_reported_as_that() {
    for (stat, expected) in [(HUNG, DiskHung), (IDLE, HostTimeout)] {
        let (fake, node) = world(FakeState::default());
        set_block_setting(&fake, "stat", stat);
        let volume = volume();
        let call = CallContext::new(&*fake, &volume, "staging", soon());
        let step = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            let (step, path) = ("read", "/dev/vdb".into());
            Err::<(), _>(HostError::TimedOut { step, path })
        };
        let (io, device) = (&node.unmounter.io, disk("vdb", 16, "bp1"));
        let outcome = io.observe_host(call, &device, "reading".to_owned(), step).await;
        let error = outcome.unwrap_err();
        assert_eq!(error.failure(), expected, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_block_volume_on_a_hung_disk_is_not_flushed() {
    let (fake, node) = world(with_disk(Content::Blank));
    let stage = StageRequest {
        access: Access::Block,
        ..stage_request()
    };
    node.stager.stage(stage, soon()).await.unwrap();
    let publish = PublishRequest {
        access: Access::Block,
        ..publish_request(false)
    };
    node.publisher.publish(publish, soon()).await.unwrap();
    set_block_setting(&fake, "stat", HUNG);
    let deadline = Deadline::after(Duration::from_secs(10));
    let unpublished = node.unmounter.unpublish(path_request("/target"), deadline).await;
    assert_eq!(unpublished.unwrap_err().failure(), DiskHung);
    let calls = take_calls(&fake);
    assert!(!calls.contains("flush"), "{calls}");
}
