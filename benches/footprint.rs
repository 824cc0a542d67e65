//! Size, startup time and memory of the programs: `cargo bench --bench footprint`, or `make bench`;
//! `cargo bench --bench footprint -- WITH WITHOUT CONTROLLER NODE` measures existing programs.
//!
//! Builds for release, statically linked as for the image: `diskplugin` with and without the fake cloud, and the
//! programs that the chart starts, `diskplugin-controller` and `diskplugin-node`. These two are copied in pieces of 32
//! KiB, as a container runtime unpacks an image: the page cache then holds the file in pages of that size, which
//! determines how many pages of it the kernel maps.
//!
//! Printed are:
//! * size: the bytes of the file, stripped as the profile dist says;
//! * ready: from the start of the controller to the first `Probe` with ready, on a connection that is tried every
//!   millisecond, with region, zone and cloud given by flags; the median of 20 starts;
//! * controller, node: `VmRSS` of `/proc/PID/status` 2 s after that. The controller has not called the cloud yet;
//! * of `diskplugin-node`, next to its limits: the node idle, and the peak (`VmHWM`) while it stages 20 blank
//!   disks in parallel (ext4 on loop devices, which needs root), as on 2 and on 64 processors: threads of the runtime
//!   by `TOKIO_WORKER_THREADS` unless they are fixed, and arenas of the C library, 8 per processor (glibc,
//!   `arena_get2`), by `GLIBC_TUNABLES`.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::process::Command;

use common::{Program, ZONE, socket, start_time};
use harness::csi::capability;
use harness::disk::{Disk, MIB};
use harness::machine::{TestDir, has_devices};
use harness::volume::{NodePort, NodeVolume};

#[expect(dead_code, reason = "the bench of the cloud uses the rest")]
mod common;
#[path = "../tests/common/mod.rs"]
#[expect(dead_code, clippy::unwrap_used, reason = "helpers of tests, which use the rest")]
mod harness;

const STARTS: usize = 20;
const IDLE: Duration = Duration::from_secs(2);

struct Figures {
    bytes: u64,
    ready: Duration,
    controller_kib: u64,
    node_kib: u64,
}

fn main() -> anyhow::Result<()> {
    common::run(async {
        let kept = tempfile::tempdir()?;
        let [full, lean, controller, node] = match common::named().as_slice() {
            [full, lean, controller, node] => [full, lean, controller, node].map(Clone::clone),
            _ => {
                let bare = &["--no-default-features"];
                [
                    build("diskplugin", &[], &kept.path().join("full")).await?,
                    build("diskplugin", bare, &kept.path().join("lean")).await?,
                    build("diskplugin-controller", bare, &kept.path().join("controller")).await?,
                    build("diskplugin-node", bare, &kept.path().join("node")).await?,
                ]
            }
        };
        let controller = unpacked(&controller, &kept.path().join("unpacked-controller"))?;
        let node = unpacked(&node, &kept.path().join("unpacked-node"))?;
        // The fake cloud comes from the full build; both drivers are measured against it.
        let (fake, endpoint) = Program::fake_cloud(&full, kept.path(), &[]).await?;
        println!("build                        size         ready    controller          node");
        for (name, binary) in [("with mock-cloud", &full), ("without", &lean)] {
            measure(binary, &endpoint).await?.print(name);
        }
        let (ready, kib) = measure_controller(&controller, &endpoint).await?;
        print_controller("diskplugin-controller", size(&controller)?, ready, kib);
        println!();
        println!("diskplugin-node       {:>9} bytes", size(&node)?);
        fake.stop().await?;
        for processors in [2, 64] {
            load(&node, processors).await?;
        }
        Ok(())
    })
}

/// Builds a program as it is published, and copies it, because the next build replaces it.
#[expect(
    clippy::disallowed_methods,
    reason = "the benchmark builds the driver and needs no timeout"
)]
async fn build(name: &str, flags: &[&str], copy: &Path) -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    let build = "build --locked --package diskplugin --profile dist --bin";
    cargo.args(build.split(' ')).arg(name);
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    cargo.args(["--target", &triple]);
    let options = "-C target-feature=+crt-static -C relocation-model=static";
    cargo.env("RUSTFLAGS", options);
    let status = cargo.args(flags).status().await?;
    ensure!(status.success(), "cargo build {flags:?} ended with {status}");
    // The bench itself lies in TARGET/release/deps.
    let own = std::env::current_exe()?;
    let target = own.ancestors().nth(3).context("the target directory")?;
    let built = target.join(&triple).join("dist").join(name);
    std::fs::copy(&built, copy).with_context(|| format!("no {}", built.display()))?;
    Ok(copy.to_owned())
}

/// A copy that is written as by container runtimes.
fn unpacked(program: &Path, copy: &Path) -> anyhow::Result<PathBuf> {
    const PIECE: usize = 32 << 10;
    let bytes = std::fs::read(program).with_context(|| format!("no {}", program.display()))?;
    let mut file = std::fs::File::create(copy)?;
    for piece in bytes.chunks(PIECE) {
        file.write_all(piece)?;
    }
    file.set_permissions(std::fs::Permissions::from_mode(0o755))?;
    Ok(copy.to_owned())
}

fn size(binary: &Path) -> anyhow::Result<u64> {
    Ok(std::fs::metadata(binary)?.len())
}

/// The time until the controller is ready, and its idle memory in KiB.
async fn measure_controller(binary: &Path, cloud: &str) -> anyhow::Result<(Duration, u64)> {
    let ready = start_time(binary, cloud, STARTS).await?;
    let dir = tempfile::tempdir()?;
    let controller = Program::controller(binary, dir.path(), cloud)?;
    let kib = idle(controller, &socket(dir.path(), "controller")).await?;
    Ok((ready, kib))
}

async fn measure(binary: &Path, cloud: &str) -> anyhow::Result<Figures> {
    let (ready, controller_kib) = measure_controller(binary, cloud).await?;
    let dir = tempfile::tempdir()?;
    let endpoint = socket(dir.path(), "node");
    let flag = format!("--endpoint=unix://{}", endpoint.display());
    let args = ["node", &flag, "--node-id=i-bench", "--zone", ZONE];
    let node = Program::start(binary, dir.path(), &args)?;
    let node_kib = idle(node, &endpoint).await?;
    Ok(Figures {
        bytes: size(binary)?,
        ready,
        controller_kib,
        node_kib,
    })
}

/// The memory of the program after a pause, with the connection closed.
async fn idle(mut program: Program, socket: &Path) -> anyhow::Result<u64> {
    drop(program.ready(socket).await?);
    tokio::time::sleep(IDLE).await;
    let memory = program.memory_kib("VmRSS")?;
    program.stop().await?;
    Ok(memory)
}

impl Figures {
    fn print(&self, name: &str) {
        print_controller(name, self.bytes, self.ready, self.controller_kib);
        println!(" {:>8} KiB", self.node_kib);
    }
}

fn print_controller(name: &str, bytes: u64, ready: Duration, kib: u64) {
    let ready = ready.as_secs_f64() * 1000.0;
    print!("{name:<21} {bytes:>9} bytes {ready:>8.1} ms {kib:>8} KiB");
}

/// Limits of the memory of the node in KiB.
const IDLE_LIMIT: u64 = 6 << 10;
const LOAD_LIMIT: u64 = 12 << 10;
const DISKS: usize = 20;

/// Measures the node idle and during staging, and prints both with their limits.
async fn load(binary: &Path, processors: u32) -> anyhow::Result<()> {
    let (workers, arenas) = (processors.to_string(), processors * 8);
    let tunables = format!("glibc.malloc.arena_max={arenas}");
    let variables = [
        ("TOKIO_WORKER_THREADS", workers.as_str()),
        ("GLIBC_TUNABLES", tunables.as_str()),
    ];
    let dir = TestDir::new();
    let endpoint = socket(dir.path(), "node");
    let args = dir.node_args("i-bench", &endpoint);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut node = Program::start_with(binary, dir.path(), &args, &variables)?;
    drop(node.ready(&endpoint).await?);
    tokio::time::sleep(IDLE).await;
    show(processors, "idle", node.memory_kib("VmRSS")?, IDLE_LIMIT);
    if has_devices("staging").await {
        let channel = node.ready(&endpoint).await?;
        let mut volumes = Vec::new();
        for index in 0..DISKS {
            let disk = Disk::new(dir.path(), &format!("bench{index}"), 64 * MIB);
            disk.attach().await;
            let port = NodePort::Socket(channel.clone());
            volumes.push(NodeVolume::new(port, disk.volume(), &disk.path(""), Some(capability())));
        }
        let outcome = stage_all(volumes.clone()).await;
        let peak = node.memory_kib("VmHWM")?;
        for volume in volumes {
            volume.unstage().await?;
        }
        outcome?;
        show(processors, "20 stages", peak, LOAD_LIMIT);
        tokio::time::sleep(IDLE).await;
        println!("    afterwards {} KiB", node.memory_kib("VmRSS")?);
    }
    node.stop().await
}

#[expect(clippy::cast_precision_loss, reason = "printed with two digits")]
fn show(processors: u32, what: &str, kib: u64, limit: u64) {
    let ratio = kib as f64 / limit as f64;
    println!("node, {processors:>2} processors, {what:<9} {kib:>6} KiB, {ratio:.2} of {limit} KiB");
}

async fn stage_all(volumes: Vec<NodeVolume>) -> anyhow::Result<()> {
    let mut calls = tokio::task::JoinSet::new();
    for volume in volumes {
        calls.spawn(async move { volume.stage().await });
    }
    while let Some(staged) = calls.join_next().await {
        staged??;
    }
    Ok(())
}
