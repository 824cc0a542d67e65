//! `simulate`: runs schedules, and prints the first one that breaks a promise.

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use simulator::{Report, Schedule, run, shrink};

/// Seeds of schedules that failed once. They run first.
const REGRESSIONS: &str = include_str!("../seeds.txt");

#[derive(Debug, Parser)]
#[command(about = "Runs the controller under seeded schedules of faults, crashes and late calls, in virtual time")]
struct Cli {
    /// The first seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// The number of schedules
    #[arg(long, default_value_t = 1000)]
    schedules: u64,
    /// Schedules that run at the same time
    #[arg(long, default_value_t = 2)]
    jobs: u64,
    /// Print the history of the first seed, shortened if it fails
    #[arg(long)]
    trace: bool,
    /// With --trace, do not shorten it
    #[arg(long)]
    whole: bool,
    /// Print a hash of the history of each seed
    #[arg(long)]
    digest: bool,
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    if cli.trace {
        return trace(&cli);
    }
    let regressions = REGRESSIONS
        .lines()
        .filter_map(|line| line.split_whitespace().next()?.parse().ok());
    let seeds: Vec<u64> = regressions.chain(cli.seed..cli.seed + cli.schedules).collect();
    let (next, failed, calls) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    #[expect(clippy::disallowed_methods, reason = "the wall time of all runs")]
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..cli.jobs {
            scope.spawn(|| {
                while let Some(seed) = usize::try_from(next.fetch_add(1, Ordering::Relaxed))
                    .ok()
                    .and_then(|n| seeds.get(n))
                {
                    let report = run(&Schedule::of(*seed), None);
                    calls.fetch_add(report.calls, Ordering::Relaxed);
                    if cli.digest {
                        println!("{seed} {}", report.history.digest());
                    }
                    if !report.violations.is_empty() {
                        failed.fetch_add(1, Ordering::Relaxed);
                        print(*seed, &report);
                    }
                }
            });
        }
    });
    let (failed, seconds) = (failed.into_inner(), start.elapsed().as_secs_f64());
    println!(
        "{} schedules, {} cloud calls, {failed} with violations, {:.0} schedules/s",
        seeds.len(),
        calls.into_inner(),
        seeds.len() as f64 / seconds
    );
    ExitCode::from(u8::from(failed > 0))
}

fn print(seed: u64, report: &Report) {
    for violation in &report.violations {
        println!("seed {seed}: {:?}: {}", violation.invariant, violation.text);
    }
    println!("  simulate --seed {seed} --trace");
}

fn trace(cli: &Cli) -> ExitCode {
    let mut schedule = Schedule::of(cli.seed);
    let mut report = run(&schedule, None);
    if let Some(violation) = report.violations.first().filter(|_| !cli.whole) {
        schedule = shrink(&schedule, None, violation.invariant);
        report = run(&schedule, None);
    }
    println!("{schedule:#?}");
    for line in report.history.lines() {
        println!("{line}");
    }
    println!("writing calls, by the time at which they were sent:");
    for line in &report.writes {
        println!("{line}");
    }
    ExitCode::from(u8::from(!report.violations.is_empty()))
}
