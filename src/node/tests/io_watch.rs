//! Tests of disks that complete no I/O, and of the calls that wait for them.

use super::observe::CallContext;
use super::*;

/// Documentation/block/stat.rst: one I/O in flight.
const HUNG: &str = "5 0 40 1 7 0 56 2 1 3 3";

#[tokio::test(start_paused = true)]
async fn a_disk_that_completes_no_io_is_not_unmounted_and_named() {
    let (fake, node) = world(staged());
    let stat = |text: &str| {
        let settings = &mut fake.state().block_settings;
        settings.insert("stat".to_owned(), text.to_owned());
    };
    let deadline = || Deadline::after(Duration::from_secs(10));
    // Then the device has completed I/O, but not since the second check has begun.
    let later = HUNG.replacen('5', "900", 1);
    for (text, seconds) in [(HUNG, 9), (HUNG, 18), (&later, 9)] {
        stat(text);
        let deadline = deadline();
        let unstaged = node.unstager.unstage(unstage_request(), deadline).await;
        assert!(!deadline.has_passed());
        let error = unstaged.unwrap_err();
        assert_eq!(error.failure(), Failure::DiskHung);
        let text = format!("/dev/vdb (254:16) has completed no I/O for {seconds} s: unstaging waits");
        assert!(error.to_string().contains(&text), "{error}");
        assert!(fake.state().calls.is_empty());
    }
    stat("901 0 40 1 7 0 56 2 0 3 3");
    node.unstager.unstage(unstage_request(), soon()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_hung_unmount_is_reported_at_the_deadline_and_to_repeated_calls() {
    let (fake, node) = world(staged());
    let io = &node.unstager.io;
    let host = Arc::clone(&fake);
    let device = disk("vdb", 16, "bp1");
    let slots = tool_slots::ToolSlots::default();
    let mut held = Vec::new();
    while let Some(slot) = slots.try_acquire(tool_slots::ToolKind::FullCheck) {
        held.push(slot);
    }
    let slot = held.pop();
    let watch = io.clone();
    let hangs = async move {
        let volume = super::volume();
        let call = CallContext::new(&*host, &volume, "unstaging");
        let never = std::future::pending::<Result<()>>();
        watch.observe(call, &device, slot, never).await
    };
    let hung = HUNG.to_owned();
    fake.state().block_settings.insert("stat".to_owned(), hung);
    let deadline = Deadline::after(Duration::from_secs(10));
    let error = io
        .operations
        .run(&volume().id, "unstaging", deadline, hangs)
        .await
        .unwrap_err();
    assert_eq!(error.failure(), Failure::DiskHung, "{error}");
    let again = io
        .operations
        .run(&volume().id, "staging", soon(), async { Ok(()) })
        .await;
    assert_eq!(again.unwrap_err().failure(), Failure::DiskHung);
    // Longer than a failover of the storage.
    tokio::time::sleep(Duration::from_secs(100)).await;
    let slot = slots.try_acquire(tool_slots::ToolKind::FullCheck);
    assert!(slot.is_none(), "the tool may continue");
    tokio::time::sleep(Duration::from_secs(100)).await;
    let slot = slots.try_acquire(tool_slots::ToolKind::FullCheck);
    assert!(slot.is_some(), "a tool on a hung disk keeps no slot");
}

#[tokio::test(start_paused = true)]
async fn a_busy_disk_is_not_hung() {
    let (fake, node) = world(FakeState::default());
    let io = node.unstager.io.clone();
    let host = Arc::clone(&fake);
    let set = move |completed: u32, in_flight: u32| {
        let text = format!("{completed} 0 40 1 7 0 56 2 {in_flight} 3 3");
        fake.state().block_settings.insert("stat".to_owned(), text);
    };
    let watch = io.clone();
    let steps = async move {
        let volume = super::volume();
        let call = CallContext::new(&*host, &volume, "staging");
        let device = disk("vdb", 16, "bp1");
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
        watch.observe(call, &device, None, run).await
    };
    let running = io.operations.run(&volume().id, "staging", soon(), steps).await;
    assert_eq!(running.unwrap_err().failure(), Failure::OperationPending);
    for _ in 0..1400 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        let again = io
            .operations
            .run(&volume().id, "staging", soon(), async { Ok(()) })
            .await;
        assert_eq!(again.unwrap_err().failure(), Failure::OperationPending);
    }
}

#[tokio::test(start_paused = true)]
async fn a_disk_is_hung_only_during_the_step_that_waits_for_it() {
    let (fake, node) = world(FakeState::default());
    let io = node.unstager.io.clone();
    fake.state().block_settings.insert("stat".to_owned(), HUNG.to_owned());
    let host = Arc::clone(&fake);
    let watch = io.clone();
    let steps = async move {
        let volume = super::volume();
        let call = CallContext::new(&*host, &volume, "staging");
        let device = disk("vdb", 16, "bp1");
        let step = async {
            tokio::time::sleep(Duration::from_secs(20)).await;
            Ok(())
        };
        watch.observe(call, &device, None, step).await?;
        std::future::pending::<Result<()>>().await
    };
    let mut failures = Vec::new();
    let deadline = Deadline::after(Duration::from_secs(10));
    let id = volume().id;
    let first = io.operations.run(&id, "staging", deadline, steps);
    failures.push(first.await.unwrap_err().failure());
    tokio::time::sleep(Duration::from_secs(20)).await;
    let again = io
        .operations
        .run(&volume().id, "staging", soon(), async { Ok(()) })
        .await;
    failures.push(again.unwrap_err().failure());
    use crate::model::Failure::{DiskHung, OperationPending};
    assert_eq!(failures, [DiskHung, OperationPending]);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_times_out_on_a_hung_disk_is_reported_as_that() {
    use crate::model::Failure::{DiskHung, HostTimeout};
    for (stat, expected) in [(HUNG, DiskHung), ("5 0 40 1 7 0 56 2 0 3 3", HostTimeout)] {
        let (fake, node) = world(FakeState::default());
        let settings = [("stat".to_owned(), stat.to_owned())];
        fake.state().block_settings.extend(settings);
        let volume = volume();
        let call = CallContext::new(&*fake, &volume, "staging");
        let step = async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            Err(crate::linux::HostError::TimedOut {
                step: "read",
                path: "/dev/vdb".into(),
            })
        };
        let io = &node.unstager.io;
        let device = disk("vdb", 16, "bp1");
        let step = io.observe_host(call, &device, "reading".to_owned(), step);
        let outcome: Result<()> = step.await;
        let error = outcome.unwrap_err();
        assert_eq!(error.failure(), expected, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_block_volume_on_a_hung_disk_is_not_flushed() {
    let (fake, node) = world(with_disk(Content::Blank));
    let block = || Access::Block;
    let stage = StageRequest {
        access: block(),
        ..stage_request()
    };
    node.stager.stage(stage, soon()).await.unwrap();
    let publish = PublishRequest {
        access: block(),
        ..publish_request(false)
    };
    node.publisher.publish(publish, soon()).await.unwrap();
    let hung = HUNG.to_owned();
    fake.state().block_settings.insert("stat".to_owned(), hung);
    let deadline = Deadline::after(Duration::from_secs(10));
    let unpublished = node.unpublisher.unpublish(unpublish_request(), deadline).await;
    assert_eq!(unpublished.unwrap_err().failure(), Failure::DiskHung);
    let calls = fake.state().calls.clone();
    assert!(!calls.iter().any(|call| call.starts_with("flush")), "{calls:?}");
}
