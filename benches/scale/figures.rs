//! The figures of a scenario.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::memory;
use super::stage::{Calls, Stage};
use super::times::{Percentiles, Times};

/// The figures of a scenario, from its first call to its last response.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    pub(crate) scenario: String,
    pub(crate) about: String,
    /// Volumes that calls were made for.
    pub(crate) volumes: usize,
    /// Volumes in the cloud.
    pub(crate) fleet: usize,
    pub(crate) nodes: usize,
    /// Of virtual time.
    pub(crate) seconds: f64,
    /// Of the processor: controller, fake cloud and callers together.
    pub(crate) cpu_seconds: f64,
    pub(crate) calls: Calls,
    pub(crate) throttled: u64,
    pub(crate) rpcs: BTreeMap<String, Rpc>,
    pub(crate) failures: BTreeMap<String, u64>,
    /// Memory of the idle controller.
    pub(crate) idle_mib: Option<f64>,
    /// Peak of the memory since the beginning, including the callers and the growth of the fake cloud.
    pub(crate) peak_mib: f64,
    /// Other figures by name.
    pub(crate) notes: BTreeMap<&'static str, f64>,
    /// Errors: leaks, duplicates, volumes on wrong nodes.
    pub(crate) wrong: Vec<String>,
}

/// The times of an RPC, from the first attempt to success, and their lower bounds.
#[derive(Debug, Serialize)]
pub(crate) struct Rpc {
    #[serde(flatten)]
    pub(crate) times: Percentiles,
    pub(crate) floor_p50: f64,
    pub(crate) floor_p99: f64,
}

/// A measurement in progress.
#[derive(Debug)]
pub(crate) struct Measurement {
    began: Instant,
    cpu: f64,
    live: usize,
}

impl Measurement {
    pub(crate) fn begin(stage: &Stage, times: &Times) -> Self {
        stage.cloud.clear_calls();
        times.take();
        memory::reset();
        Self {
            began: Instant::now(),
            cpu: cpu_seconds(),
            live: memory::live(),
        }
    }

    /// The figures; `floor` gives that of each RPC.
    pub(crate) fn end(self, stage: &Stage, times: &Times, floor: impl Fn(&str) -> Percentiles) -> Figures {
        let cpu_seconds = cpu_seconds() - self.cpu;
        let peak_mib = memory::mib(memory::peak(), self.live);
        let (rpcs, failures) = times.take();
        let minutes = stage.cloud.audit().minutes;
        Figures {
            scenario: String::new(),
            about: String::new(),
            volumes: 0,
            fleet: 0,
            nodes: stage.nodes.len(),
            seconds: self.began.elapsed().as_secs_f64(),
            cpu_seconds,
            calls: stage.calls(),
            throttled: minutes.iter().map(|minute| minute.throttled).sum(),
            rpcs: with_floors(rpcs, floor),
            failures,
            idle_mib: None,
            peak_mib,
            notes: BTreeMap::new(),
            wrong: Vec::new(),
        }
    }
}

/// The RPCs with their floors.
fn with_floors(
    rpcs: BTreeMap<&'static str, Percentiles>,
    floor: impl Fn(&str) -> Percentiles,
) -> BTreeMap<String, Rpc> {
    let rpcs = rpcs.into_iter().map(|(name, times)| {
        let floor = floor(name);
        let rpc = Rpc {
            times,
            floor_p50: floor.p50,
            floor_p99: floor.p99,
        };
        (name.to_owned(), rpc)
    });
    rpcs.collect()
}

impl Figures {
    pub(crate) fn count(&self, is: impl Fn(&str) -> bool) -> u64 {
        let calls = self.calls.iter().filter(|(action, _)| is(action));
        calls.map(|(_, (count, _))| count).sum()
    }

    /// Adds the times and failures of some callers, with this label.
    pub(crate) fn add(&mut self, times: &Times, label: &str, floor: impl Fn(&str) -> Percentiles) {
        let (rpcs, failures) = times.take();
        for (rpc, times) in with_floors(rpcs, floor) {
            self.rpcs.insert(format!("{rpc}, {label}"), times);
        }
        for (failure, count) in failures {
            self.failures.insert(format!("{failure}, {label}"), count);
        }
    }

    /// Of all kinds: disks, instances, and the listing at the start.
    pub(crate) fn describes_per_1000(&self) -> f64 {
        self.count(|action| action.starts_with("Describe")) as f64 * 1000.0 / self.volumes as f64
    }

    pub(crate) fn calls_per_volume(&self) -> f64 {
        self.count(|_| true) as f64 / self.volumes as f64
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}: {}", self.scenario, self.about)?;
        let time = Duration::from_secs_f64(self.seconds);
        writeln!(
            f,
            "  {} volumes of {} on {} nodes in {time:.1?} of virtual time, {:.2} s of CPU",
            self.volumes, self.fleet, self.nodes, self.cpu_seconds
        )?;
        writeln!(
            f,
            "  {:.1} describes per 1,000 volumes, {:.3} calls per volume, {} throttled",
            self.describes_per_1000(),
            self.calls_per_volume(),
            self.throttled
        )?;
        if let Some(idle) = self.idle_mib {
            writeln!(f, "  the idle controller holds {idle:.2} MiB")?;
        }
        writeln!(f, "  peak of all allocations + {:.1} MiB", self.peak_mib)?;
        for (what, figure) in &self.notes {
            writeln!(f, "  {what}: {figure:.2}")?;
        }
        for (action, (calls, refused)) in &self.calls {
            writeln!(f, "    {action:<26} {calls:7} calls {refused:7} refused")?;
        }
        for (
            rpc,
            Rpc {
                times,
                floor_p50,
                floor_p99,
            },
        ) in &self.rpcs
        {
            let Percentiles { count, p50, p99 } = times;
            let (over_p50, over_p99) = (p50 - floor_p50, p99 - floor_p99);
            writeln!(
                f,
                "    {rpc:<26} {count:7}  p50 {p50:8.3} s ({over_p50:+.3})  p99 {p99:8.3} s ({over_p99:+.3})"
            )?;
        }
        for (failure, count) in &self.failures {
            writeln!(f, "    failed and repeated: {failure} {count}")?;
        }
        for wrong in self.wrong.iter().take(10) {
            writeln!(f, "    WRONG: {wrong}")?;
        }
        Ok(())
    }
}

/// The processor time of this thread, which is the only one.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split_whitespace().next();
    nanoseconds.and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}
