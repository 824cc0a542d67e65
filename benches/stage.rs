//! The share of the driver in staging a blank disk: everything but mkfs and mount(2). `cargo bench --bench
//! stage`, as root: a 20 GiB ext4 on a loop device over a sparse file, 20 times.
//!
//! The parts: `content` is one read of the content (head, samples, tail and blkid) on a device that is not in the page
//! cache; `record` writes and removes the journal of mkfs; `find` lists all devices; `mount` is another mount(2) of the
//! filesystem that was just created on the device. The rest is the plan, the mount table and the runtime.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use diskplugin::base::Deadline;
use diskplugin::linux::{Command, Exec, ExecError, Host, Linux, MountRequest, Output, ProcessExec, Records, Roots};
use diskplugin::model::{Filesystem, MountFlags};
use tokio::time::Instant;

use common::disk::Disk;
use common::machine::TestDir;
use common::shell::sh;

#[path = "../tests/common/mod.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "helpers of tests, which use the rest")]
mod common;

const SIZE: u64 = 20 << 30;
const ROUNDS: usize = 20;
const SERIAL: &str = "benchstage";

/// Runs commands and keeps the duration of mkfs.
#[derive(Debug, Default)]
struct Timed(Mutex<Duration>);

#[async_trait]
impl Exec for Timed {
    async fn run(&self, command: &Command, deadline: Deadline) -> Result<Output, ExecError> {
        let start = Instant::now();
        let output = ProcessExec.run(command, deadline).await;
        if command.program.to_string_lossy().starts_with("mkfs.") {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = start.elapsed();
        }
        output
    }
}

fn main() -> anyhow::Result<()> {
    // As in the node plugin.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { Box::pin(measure()).await })
}

#[derive(Debug, Default)]
struct Figures {
    total: Vec<Duration>,
    mkfs: Vec<Duration>,
    mount: Vec<Duration>,
    content: Vec<Duration>,
    record: Vec<Duration>,
    find: Vec<Duration>,
    share: Vec<Duration>,
}

async fn measure() -> anyhow::Result<()> {
    let mut figures = Figures::default();
    for _ in 0..ROUNDS {
        let home = TestDir::new();
        let disk = Disk::new(home.path(), SERIAL, SIZE);
        disk.attach().await;
        round(home.path(), &disk, &mut figures).await?;
        disk.detach().await;
    }
    println!("{:<8} {:>9} {:>9} {:>9}", "part", "median", "least", "most");
    for (name, times) in [
        ("total", &mut figures.total),
        ("mkfs", &mut figures.mkfs),
        ("mount", &mut figures.mount),
        ("share", &mut figures.share),
        ("content", &mut figures.content),
        ("record", &mut figures.record),
        ("find", &mut figures.find),
    ] {
        times.sort_unstable();
        let ms = |at: usize| times[at].as_secs_f64() * 1000.0;
        let (median, least, most) = (ms(ROUNDS / 2), ms(0), ms(ROUNDS - 1));
        println!("{name:<8} {median:>6.2} ms {least:>6.2} ms {most:>6.2} ms");
    }
    Ok(())
}

async fn round(dir: &Path, disk: &Disk, figures: &mut Figures) -> anyhow::Result<()> {
    let quick = || Deadline::after(Duration::from_secs(60));
    let exec = Arc::new(Timed::default());
    let host = Linux::new(Arc::new(ProcessExec), Roots::default());
    let node = disk.node(Arc::new(ProcessExec), Arc::clone(&exec) as _);
    let staging = dir.join("staging");

    let start = Instant::now();
    let devices = host.devices(quick()).await?;
    figures.find.push(start.elapsed());
    let path = PathBuf::from(disk.device());
    let device = devices.into_iter().find(|one| one.path == path).context("no device")?;
    let start = Instant::now();
    host.content(quick(), &device).await?;
    figures.content.push(start.elapsed());
    let records = Records::new(dir.join("state"));
    let appearance = device.incarnation(&host.boot_id(quick()).await?);
    let start = Instant::now();
    records.put("bench", SERIAL, &appearance).await?;
    records.remove("bench", SERIAL).await?;
    figures.record.push(start.elapsed());

    let request = disk.stage_request(Filesystem::Ext4);
    let start = Instant::now();
    node.stager.stage(request, quick()).await?;
    let total = start.elapsed();
    let mkfs = *exec.0.lock().unwrap_or_else(PoisonError::into_inner);
    node.unmounter.unstage(disk.unstage_request(), quick()).await?;
    std::fs::create_dir(&staging)?;
    sh(&format!("mkfs.ext4 -q -m 0 -E nodiscard {}", device.path.display())).await;
    let again = MountRequest {
        target: staging.clone(),
        filesystem: Filesystem::Ext4,
        flags: MountFlags::default(),
        read_only: false,
    };
    let start = Instant::now();
    host.mount(quick(), &device, &again).await?;
    let mount = start.elapsed();
    host.unmount(quick(), &staging).await?;
    figures.total.push(total);
    figures.mkfs.push(mkfs);
    figures.mount.push(mount);
    figures.share.push(total.saturating_sub(mkfs + mount));
    Ok(())
}
