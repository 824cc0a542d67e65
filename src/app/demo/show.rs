//! The output of the demo: each step with its duration and its cloud calls.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::future::Future;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use fake_ecs::Cloud;
use tokio::time::Instant;
use tonic::Status;

#[derive(Debug)]
pub(super) struct Show {
    fake: Cloud,
    start: Instant,
    steps: u32,
    calls: BTreeMap<String, u64>,
}

/// Prints a line. A closed output (`demo | head`) is an error, which leads to cleanup; a panic would skip it.
pub(super) fn print_line(line: impl Display) -> anyhow::Result<()> {
    writeln!(std::io::stdout(), "{line}").context("cannot print")
}

impl Show {
    /// Prints the introduction and the header of the steps.
    pub(super) fn start(fake: Cloud, directory: &Path) -> anyhow::Result<Self> {
        print_line(format_args!(
            "The life cycle of a volume. Every step is a CSI call through a unix socket; every cloud call is\n\
             a signed HTTP request to {}.\nAll files are in {}.\n\n     {:<34} {:>8}  cloud calls",
            fake.endpoint().unwrap_or_default(),
            directory.display(),
            "step",
            "time"
        ))?;
        Ok(Self {
            fake,
            start: Instant::now(),
            steps: 0,
            calls: BTreeMap::new(),
        })
    }

    /// Runs a step, which returns a remark, and prints its title, duration, cloud calls and remark.
    pub(super) async fn step(
        &mut self,
        title: &str,
        work: impl Future<Output = anyhow::Result<String>>,
    ) -> anyhow::Result<()> {
        self.fake.clear_calls();
        self.steps += 1;
        let start = Instant::now();
        let outcome = work.await;
        let (number, time, calls) = (self.steps, seconds(start.elapsed()), self.take_calls());
        let failed = if outcome.is_ok() { "" } else { "  FAILED" };
        print_line(format_args!("{number:>3}  {title:<34} {time:>8}  {calls}{failed}"))?;
        match outcome {
            Ok(remark) if remark.is_empty() => Ok(()),
            Ok(remark) => print_line(format_args!("     {remark}")),
            Err(error) => Err(readable(error).context(format!("step {number} ({title}) failed"))),
        }
    }

    pub(super) fn print_summary(&self) -> anyhow::Result<()> {
        let (time, all) = (seconds(self.start.elapsed()), self.calls.values().sum::<u64>());
        print_line(format_args!("\n{} steps in {time}, {all} cloud calls:", self.steps))?;
        for (action, count) in &self.calls {
            print_line(format_args!("  {count:>4} {action}"))?;
        }
        let state = self.fake.state();
        // Disks in deletion are not visible through the API; only their files are still being removed.
        let left = |kind: &str| {
            let rows = state[kind].as_array().into_iter().flatten();
            rows.filter(|row| row["status"] != "Deleting").count()
        };
        let (disks, snapshots) = (left("disks"), left("snapshots"));
        print_line(format_args!("Left in the cloud: {disks} disks, {snapshots} snapshots."))
    }

    fn take_calls(&mut self) -> String {
        let mut texts = Vec::new();
        for (action, count) in self.fake.counts() {
            texts.push(match count.calls {
                1 => action.clone(),
                calls => format!("{action} ×{calls}"),
            });
            *self.calls.entry(action).or_default() += count.calls;
        }
        match texts.is_empty() {
            true => "none".to_owned(),
            false => texts.join(", "),
        }
    }
}

/// The code and the message of a status; any other error unchanged.
fn readable(error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Status>() {
        Ok(status) => anyhow::anyhow!("{:?}: {}", status.code(), status.message()),
        Err(error) => error,
    }
}

fn seconds(time: Duration) -> String {
    match time < Duration::from_secs(1) {
        true => format!("{} ms", time.as_millis()),
        false => format!("{:.2} s", time.as_secs_f64()),
    }
}
