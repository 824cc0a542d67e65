//! The controller under the latency, delays, quotas and faults of a cloud: `cargo bench --bench cloud`, or `make
//! bench`. `cargo bench --bench cloud -- quota-2s` runs one row, `--list` shows all, `--json` prints for programs, and
//! `--driver PATH` and `--cloud PATH` run other binaries than the bench profile's.
//!
//! Controller and fake cloud are separate processes; the controller is called over its CSI socket, as by the sidecars.
//! The calls for each volume are CreateVolume, ControllerPublishVolume, ControllerUnpublishVolume and DeleteVolume. The
//! time is printed with its floor and its limit. The only check: every volume is deleted and no disk is left.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;

use outcome::Outcome;
use row::{ROWS, Row};

#[path = "../common/mod.rs"]
#[expect(dead_code, reason = "the bench of the footprint uses the rest")]
mod common;
mod control;
mod floor;
mod outcome;
mod remote;
#[path = "../../tests/common/request.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod request;
mod row;
mod run;
mod schedule;
#[path = "../scale/sidecars.rs"]
mod sidecars;
#[path = "../scale/times.rs"]
mod times;

/// Which rows run with which programs.
#[derive(Debug, Parser)]
struct Args {
    /// Rows; all by default.
    rows: Vec<String>,
    /// The measured driver: the program that the chart starts.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_diskplugin-controller"))]
    driver: PathBuf,
    /// The program whose `mock-cloud` is the cloud.
    #[arg(long, default_value = env!("CARGO_BIN_EXE_diskplugin"))]
    cloud: PathBuf,
    /// Write the fake cloud's log of calls to this file, of the last row if there are several.
    #[arg(long)]
    calls: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Print the rows with their descriptions, and run nothing.
    #[arg(long)]
    list: bool,
    /// Passed by cargo.
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> anyhow::Result<ExitCode> {
    let args = Args::parse();
    let rows = chosen(&args.rows)?;
    if args.list {
        for row in rows {
            println!("{:<18} {}", row.name, row.about());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let mut outcomes = Vec::new();
    common::run(async {
        let programs = run::Programs {
            driver: args.driver,
            cloud: args.cloud,
            calls: args.calls,
        };
        let show = |outcome: &Outcome| {
            if !args.json {
                print!("{outcome}");
            }
        };
        outcomes = schedule::all(&programs, &rows, show).await?;
        Ok(())
    })?;
    if args.json {
        let reports: Vec<_> = outcomes.iter().map(Outcome::report).collect();
        println!("{}", serde_json::to_string_pretty(&reports)?);
    } else if outcomes.len() > 1 {
        print!("\n{}", outcome::table(&outcomes));
    }
    let failed = outcomes.iter().filter(|outcome| !outcome.is_whole());
    let names: Vec<_> = failed.map(|outcome| outcome.row).collect();
    if !names.is_empty() {
        eprintln!("volumes failed or disks are left: {}", names.join(", "));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn chosen(names: &[String]) -> anyhow::Result<Vec<&'static Row>> {
    if names.is_empty() {
        return Ok(ROWS.iter().collect());
    }
    let find = |name: &String| {
        let row = ROWS.iter().find(|row| row.name == name);
        row.with_context(|| format!("unknown row {name}; --list prints the names"))
    };
    names.iter().map(find).collect()
}
