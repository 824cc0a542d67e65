//! Threads and memory of the node plugin while many volumes are staged in parallel, and afterwards.

use std::fs;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tonic::Code;

use super::{Plugin, attached};
use crate::common::machine::{TestDir, has_devices};

const LIVES: usize = 100;
const MAX_THREADS: usize = 64;
/// Resident memory may be 20 MiB, of which up to 4 MiB are pages of the released program. The program under test is
/// larger, so only anonymous memory is compared.
const MAX_ANONYMOUS_KIB: u64 = 16 << 10;
/// When the memory is measured after the last call.
const IDLE: Duration = Duration::from_secs(10);
/// For all lives on a busy machine.
const AMPLE: Duration = Duration::from_secs(600);

/// Repeats a call until it succeeds, as kubelet does. Only time may run out on a busy machine: a tool that is being
/// started for one volume must not make the device of another one appear in use.
macro_rules! retry {
    ($call:expr) => {
        while let Err(error) = $call.await {
            let codes = [Code::DeadlineExceeded, Code::Aborted, Code::Unavailable];
            assert!(codes.contains(&error.code()), "{error}");
            println!("repeated: {error}");
            sleep(Duration::from_millis(100)).await;
        }
    };
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parallel_lives_need_few_threads_and_little_memory_is_kept() {
    if !has_devices("node::hung").await {
        return;
    }
    let home = TestDir::of_node();
    let mut disks = Vec::new();
    for index in 0..LIVES {
        disks.push(attached(&home, &home.path().join("disks"), &format!("life{index}")).await);
    }
    let plugin = Plugin::start(&home).await;
    let mut lives = JoinSet::new();
    for disk in disks {
        let volume = plugin.volume(&disk);
        lives.spawn(async move {
            retry!(volume.stage());
            retry!(volume.publish());
            retry!(volume.unpublish());
            retry!(volume.unstage());
            retry!(volume.stage());
            disk
        });
    }
    let mut threads = 0;
    let mut disks = Vec::new();
    let run = async {
        while disks.len() < LIVES {
            tokio::select! {
                Some(disk) = lives.join_next() => disks.push(disk.unwrap()),
                () = sleep(Duration::from_millis(5)) => threads = threads.max(plugin.thread_count()),
            }
        }
    };
    timeout(AMPLE, run).await.unwrap();
    sleep(IDLE).await;
    let status = fs::read_to_string(format!("/proc/{}/status", plugin.process.pid()));
    let status = status.unwrap();
    for disk in &disks {
        plugin.volume(disk).unstage().await.unwrap();
        disk.detach().await;
    }
    let kib = |field: &str| {
        let line = status.lines().find(|line| line.starts_with(field)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    println!("{threads} threads, {} KiB", kib("RssAnon"));
    assert!(threads <= MAX_THREADS, "{threads} threads");
    assert!(kib("RssAnon") <= MAX_ANONYMOUS_KIB, "{status}");
}
