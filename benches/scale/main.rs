//! The controller with up to 100,000 volumes, in virtual time on the fake cloud in memory: `cargo bench --bench scale`,
//! or `make bench`. `cargo bench --bench scale -- reschedule` runs one scenario on a fleet of 100,000 volumes,
//! `--volumes N` on a smaller one, and `--json` prints for programs; `scripts/plot-scale` draws that.
//!
//! The Controller service, the rate limiter and the retries are those of the driver; only the sockets are left out.
//! The only check compares the final state of the cloud with the responses that callers received. `tests/scale` checks
//! bounds on a small fleet.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use peak_alloc::PeakAlloc;

use scale::figures::Figures;
use scale::{day, growth, leader, outage, reschedule};

#[path = "mod.rs"]
mod scale;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

#[derive(Debug, Parser)]
struct Args {
    /// fleet, reschedule, outage, leader, day; all, unless named.
    scenarios: Vec<String>,
    /// Volumes of the largest fleet.
    #[arg(long, default_value_t = 100_000)]
    volumes: usize,
    /// Hours of the day.
    #[arg(long, default_value_t = 24)]
    hours: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Given by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()?;
    let figures = runtime.block_on(run(&args));
    if args.json {
        println!("{}", serde_json::to_string_pretty(&figures)?);
    }
    let is_right = figures.iter().all(|figures| figures.wrong.is_empty());
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn run(args: &Args) -> Vec<Figures> {
    let is_chosen = |name: &str| args.scenarios.is_empty() || args.scenarios.iter().any(|scenario| scenario == name);
    let mut all = Vec::new();
    let mut show = |figures: Figures| {
        if !args.json {
            print!("{figures}");
        }
        all.push(figures);
    };
    if is_chosen("fleet") {
        for part in [100, 10] {
            show(growth::run(args.volumes / part).await.1);
        }
    }
    if args.scenarios == ["day"] {
        show(day::run(Duration::from_hours(args.hours)).await);
        return all;
    }
    let (mut fleet, figures) = growth::run(args.volumes).await;
    show(figures);
    let tenth = args.volumes / 10;
    if is_chosen("reschedule") {
        show(reschedule::run(&mut fleet, tenth).await);
    }
    if is_chosen("outage") {
        show(outage::run(&mut fleet, tenth).await);
    }
    if is_chosen("leader") {
        show(leader::run(&mut fleet, tenth).await);
    }
    drop(fleet);
    if is_chosen("day") {
        show(day::run(Duration::from_hours(args.hours)).await);
    }
    all
}
