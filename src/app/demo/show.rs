//! What the demo prints: each step as it ends, with its time and its cloud calls.

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use tokio::time::Instant;

use super::world::World;
use crate::sim::Cloud;

/// The printer.
#[derive(Debug)]
pub(super) struct Show {
    fake: Cloud,
    start: Instant,
    steps: u32,
    calls: BTreeMap<String, u64>,
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

    pub(super) fn opening(&self, world: &World) {
        println!(
            "One volume's whole life. Every step is a CSI call over a unix socket; every cloud"
        );
        println!(
            "call is a signed HTTP request to {}.",
            self.fake.endpoint().unwrap_or_default()
        );
        println!("Everything lives in {}.\n", world.directory().display());
        println!("{:>3}  {:<34} {:>8}  cloud calls", "", "step", "time");
    }

    /// Runs a step and prints it: what, how long, which cloud calls, and what came of it.
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
                println!("{:>3}  {title:<34} {time:>8}  {calls}", self.steps);
                if !remark.is_empty() {
                    println!("     {remark}");
                }
                Ok(value)
            }
            Err(error) => {
                println!("{:>3}  {title:<34} {time:>8}  {calls}  FAILED", self.steps);
                Err(error.context(format!("step {} ({title}) failed", self.steps)))
            }
        }
    }

    pub(super) fn summary(&self, fake: &Cloud) {
        let all: u64 = self.calls.values().sum();
        println!(
            "\n{} steps in {}, {all} cloud calls:",
            self.steps,
            seconds(self.start.elapsed())
        );
        for (action, count) in &self.calls {
            println!("  {count:>4} {action}");
        }
        let left = |kind: &str| fake.state()[kind].as_array().map_or(0, Vec::len);
        println!(
            "Left in the cloud: {} disks, {} snapshots.",
            left("disks"),
            left("snapshots")
        );
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
