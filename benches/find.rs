//! The time from the attach of a disk until the node has found it: with notifications of the kernel, and for comparison
//! with a search every 500 ms. `cargo bench --bench find`, or `make bench`. Requires root and losetup.
//!
//! A loop device simulates the disk, and a link of the fake cloud its serial, so that the figure is independent of a
//! hypervisor. Each of the 100 disks is attached while NodeStageVolume (raw block: find it, read the mount table,
//! respond) waits for it. The measured time is from the creation of the link, the last requirement of the node, to the
//! response.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use diskplugin::base::Deadline;
use diskplugin::csi::node::Service;
use diskplugin::linux::{Host, Linux, ProcessExec, Roots};
use diskplugin::model::Serial;
use tokio::time::{Instant, MissedTickBehavior};
use tonic::Code;

use common::disk::{Disk, MIB, node};
use common::loop_device::attach_command;
use common::machine::TestDir;
use common::request::block;
use common::shell::sh;
use common::volume::{LONG_TIMEOUT, NodePort, NodeVolume};

#[path = "../tests/common/mod.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "helpers of tests, which use the rest")]
mod common;

const DISKS: u64 = 100;
const POLL: Duration = Duration::from_millis(500);

/// Suffices for one search, without waiting.
const ONE_SEARCH: Duration = Duration::from_millis(1);

fn main() -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        println!("{DISKS} disks, one after the other       median        99 %         most");
        figure("notified by the kernel", false).await?;
        figure("searched every 500 ms", true).await?;
        search().await
    })
}

/// The cost of one search on this machine.
async fn search() -> anyhow::Result<()> {
    const SEARCHES: u32 = 200;
    let host = Linux::new(Arc::new(ProcessExec), Roots::default());
    let serial = Serial::new("bench").context("a serial")?;
    let count = host.devices(Deadline::after(LONG_TIMEOUT)).await?.len();
    let start = Instant::now();
    for _ in 0..SEARCHES {
        host.search(Deadline::after(LONG_TIMEOUT), &serial, None).await?;
    }
    let each = start.elapsed() / SEARCHES;
    println!("one search of the {count} block devices of this machine {each:>21.1?}");
    Ok(())
}

async fn figure(name: &str, polls: bool) -> anyhow::Result<()> {
    let home = TestDir::new();
    let service = Service(node(home.path(), Arc::new(ProcessExec), Arc::new(ProcessExec)));
    let mut took = Vec::new();
    for index in 0..DISKS {
        let disk = Disk::new(home.path(), &format!("bench{index}"), 16 * MIB);
        let port = NodePort::InProcess(service.clone());
        let volume = NodeVolume::new(port, disk.volume(), home.path(), Some(block()));
        let found = async {
            if polls {
                poll(&volume.within(ONE_SEARCH)).await?;
            } else {
                volume.stage().await?;
            }
            anyhow::Ok(Instant::now())
        };
        let attach = async {
            // The poll must not be synchronized with the attach.
            let offset = Duration::from_millis(20 + index * 7 % 500);
            tokio::time::sleep(offset).await;
            attach(&disk).await
        };
        let (found, attached) = tokio::join!(found, attach);
        let (device, since) = attached?;
        took.push(found?.duration_since(since));
        sh(&format!("losetup -d {device}")).await;
    }
    took.sort_unstable();
    let at = |percent: usize| took.get((took.len() * percent).div_ceil(100).saturating_sub(1));
    let (median, high) = (at(50).context("none")?, at(99).context("none")?);
    let most = took.last().context("none")?;
    println!("{name:<30} {median:>12.1?} {high:>12.1?} {most:>12.1?}");
    Ok(())
}

/// Attaches a disk as the fake cloud does; the time excludes losetup.
async fn attach(disk: &Disk) -> anyhow::Result<(String, Instant)> {
    let device = sh(&attach_command(&disk.image)).await;
    let since = Instant::now();
    std::os::unix::fs::symlink(&device, disk.link())?;
    Ok((device, since))
}

async fn poll(volume: &NodeVolume) -> anyhow::Result<()> {
    let mut ticks = tokio::time::interval(POLL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        match volume.stage().await {
            Ok(()) => return Ok(()),
            Err(status) if status.code() == Code::DeadlineExceeded => {}
            Err(status) => return Err(status.into()),
        }
    }
}
