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
    pub(super) fn new(fake: Cloud) -> Self {
        Self {
            fake,
            start: Instant::now(),
            steps: 0,
            calls: BTreeMap::new(),
        }
    }

    pub(super) fn print_opening(&self, directory: &Path) -> anyhow::Result<()> {
        print_line("The life cycle of a volume. Every step is a CSI call through a unix socket; every cloud call is")?;
        print_line(format_args!(
            "a signed HTTP request to {}.",
            self.fake.endpoint().unwrap_or_default()
        ))?;
        print_line(format_args!("All files are in {}.", directory.display()))
    }

    pub(super) fn print_header(&self) -> anyhow::Result<()> {
        print_line(format_args!("\n{:>3}  {:<34} {:>8}  cloud calls", "", "step", "time"))
    }

    /// Runs a step and prints its title, duration, cloud calls and result.
    pub(super) async fn step<T>(
        &mut self,
        title: &str,
        work: impl Future<Output = anyhow::Result<(T, String)>>,
    ) -> anyhow::Result<T> {
        self.fake.clear_calls();
        self.steps += 1;
        let start = Instant::now();
        let outcome = work.await;
        let calls = self.take_calls();
        let time = seconds(start.elapsed());
        match outcome {
            Ok((value, remark)) => {
                print_line(format_args!("{:>3}  {title:<34} {time:>8}  {calls}", self.steps))?;
                if !remark.is_empty() {
                    print_line(format_args!("     {remark}"))?;
                }
                Ok(value)
            }
            Err(error) => {
                print_line(format_args!(
                    "{:>3}  {title:<34} {time:>8}  {calls}  FAILED",
                    self.steps
                ))?;
                Err(error.context(format!("step {} ({title}) failed", self.steps)))
            }
        }
    }

    pub(super) fn print_summary(&self, fake: &Cloud) -> anyhow::Result<()> {
        let all: u64 = self.calls.values().sum();
        print_line(format_args!(
            "\n{} steps in {}, {all} cloud calls:",
            self.steps,
            seconds(self.start.elapsed())
        ))?;
        for (action, count) in &self.calls {
            print_line(format_args!("  {count:>4} {action}"))?;
        }
        let state = fake.state();
        // Disks in deletion are not visible through the API; only their files are still being removed.
        let left = |kind: &str| {
            let rows = state[kind].as_array().into_iter().flatten();
            rows.filter(|row| row["status"] != "Deleting").count()
        };
        print_line(format_args!(
            "Left in the cloud: {} disks, {} snapshots.",
            left("disks"),
            left("snapshots")
        ))
    }

    fn take_calls(&mut self) -> String {
        let mut texts = Vec::new();
        for (action, count) in self.fake.counts() {
            let count = count.calls;
            *self.calls.entry(action.clone()).or_default() += count;
            texts.push(if count == 1 {
                action
            } else {
                format!("{action} ×{count}")
            });
        }
        if texts.is_empty() {
            "none".to_owned()
        } else {
            texts.join(", ")
        }
    }
}

fn seconds(time: Duration) -> String {
    if time < Duration::from_secs(1) {
        format!("{} ms", time.as_millis())
    } else {
        format!("{:.2} s", time.as_secs_f64())
    }
}
