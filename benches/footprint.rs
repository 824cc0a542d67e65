//! How much the driver weighs, with the fake cloud in it and without: `cargo bench --bench footprint`,
//! or `make bench`; `cargo bench --bench footprint -- WITH WITHOUT` measures two that are there.
//!
//! Builds the release binary in both ways, as an image would carry it, and tells of each:
//! * size: the bytes of the file, stripped as the release profile says;
//! * ready: from the start of the process to the first `Probe` that answers ready, on a connection
//!   that is tried every millisecond; the controller, with region, zone and cloud given by flags;
//!   the median of 20 starts;
//! * idle: `VmRSS` of `/proc/PID/status` 2 s after that, of the controller, which has called no cloud
//!   yet, and of the node.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, ensure};
use tokio::process::Command;
use tokio::time::Instant;

use common::{Program, ZONE, socket};

mod common;

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
        let (full, lean) = match common::named().as_slice() {
            [full, lean] => (full.clone(), lean.clone()),
            _ => (
                build(&[], &kept.path().join("full")).await?,
                build(&["--no-default-features"], &kept.path().join("lean")).await?,
            ),
        };
        // The fake cloud comes from the full build; both drivers are measured against it.
        let (fake, endpoint) = Program::fake_cloud(&full, kept.path(), &[]).await?;
        println!("build                   size         ready    controller          node");
        for (name, binary) in [("with mock-cloud", &full), ("without", &lean)] {
            measure(binary, &endpoint).await?.print(name);
        }
        fake.stop().await
    })
}

/// Builds the release binary and puts a copy aside: the next build would replace it.
#[expect(
    clippy::disallowed_methods,
    reason = "cargo is no tool of the host, and builds as long as it takes"
)]
async fn build(flags: &[&str], copy: &Path) -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.args(["build", "--locked", "--release", "--bin", "diskplugin"]);
    let status = cargo.args(flags).status().await?;
    ensure!(
        status.success(),
        "cargo build {flags:?} ended with {status}"
    );
    // The bench itself lies in TARGET/release/deps.
    let own = std::env::current_exe()?;
    let target = own.ancestors().nth(3).context("the target directory")?;
    let built = target.join("release").join("diskplugin");
    std::fs::copy(&built, copy).with_context(|| format!("no {}", built.display()))?;
    Ok(copy.to_owned())
}

async fn measure(binary: &Path, cloud: &str) -> anyhow::Result<Figures> {
    let mut starts = Vec::with_capacity(STARTS);
    for _ in 0..STARTS {
        let dir = tempfile::tempdir()?;
        let start = Instant::now();
        let mut controller = Program::controller(binary, dir.path(), cloud)?;
        controller.ready(&socket(dir.path(), "controller")).await?;
        starts.push(start.elapsed());
        controller.stop().await?;
    }
    starts.sort_unstable();
    let dir = tempfile::tempdir()?;
    let controller = Program::controller(binary, dir.path(), cloud)?;
    let controller_kib = idle(controller, &socket(dir.path(), "controller")).await?;
    let endpoint = socket(dir.path(), "node");
    let flag = format!("--endpoint=unix://{}", endpoint.display());
    let args = ["node", &flag, "--node-id=i-bench", "--zone", ZONE];
    let node = Program::start(binary, dir.path(), &args)?;
    let node_kib = idle(node, &endpoint).await?;
    Ok(Figures {
        bytes: std::fs::metadata(binary)?.len(),
        ready: starts[STARTS / 2],
        controller_kib,
        node_kib,
    })
}

/// What the program holds a while after it is ready. The connection is closed by then.
async fn idle(mut program: Program, socket: &Path) -> anyhow::Result<u64> {
    drop(program.ready(socket).await?);
    tokio::time::sleep(IDLE).await;
    let held = program.memory_kib("VmRSS")?;
    program.stop().await?;
    Ok(held)
}

impl Figures {
    fn print(&self, name: &str) {
        println!(
            "{name:<16} {:>9} bytes {:>8.1} ms {:>8} KiB {:>8} KiB",
            self.bytes,
            self.ready.as_secs_f64() * 1000.0,
            self.controller_kib,
            self.node_kib
        );
    }
}
