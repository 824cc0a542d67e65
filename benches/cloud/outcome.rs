//! The figures of a run, with their floors and limits.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::control::Count;
use crate::floor::CALLS;
use crate::row::Required;
use crate::times::Percentiles;

/// The figures of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Outcome {
    pub(crate) row: &'static str,
    pub(crate) about: String,
    pub(crate) volumes: u32,
    /// Volumes that were deleted before the timeout of the run.
    pub(crate) completed: u32,
    /// Disks that exist at the end.
    pub(crate) left: usize,
    pub(crate) seconds: f64,
    pub(crate) floor_seconds: f64,
    /// The time from the beginning of a quota window to the start of the run.
    pub(crate) phase_seconds: Option<f64>,
    pub(crate) calls: BTreeMap<String, Count>,
    pub(crate) rpcs: BTreeMap<&'static str, Percentiles>,
    pub(crate) failures: BTreeMap<String, u64>,
    pub(crate) rss_kib: u64,
    pub(crate) cpu_seconds: f64,
    pub(crate) cloud_cpu_seconds: f64,
    pub(crate) start_ms: Option<f64>,
    pub(crate) required: Required,
}

/// An outcome with derived figures, for programs.
#[derive(Serialize)]
pub(crate) struct Report<'a> {
    #[serde(flatten)]
    outcome: &'a Outcome,
    ratio: f64,
    calls_per_volume: f64,
    throttled: u64,
    verdict: String,
}

/// A figure with its floor and its limit.
struct Figure {
    name: &'static str,
    unit: &'static str,
    value: f64,
    least: Option<f64>,
    required: Option<f64>,
}

impl Figure {
    fn met(&self) -> &'static str {
        match self.required {
            None => "",
            Some(required) if self.value <= required => "met",
            Some(_) => "MISSED",
        }
    }
}

impl Outcome {
    /// Whether every volume was deleted and no disk is left.
    pub(crate) fn is_whole(&self) -> bool {
        self.completed == self.volumes && self.left == 0
    }

    pub(crate) fn report(&self) -> Report<'_> {
        Report {
            outcome: self,
            ratio: self.seconds / self.floor_seconds,
            calls_per_volume: self.calls_per_volume(),
            throttled: self.throttled(),
            verdict: self.verdict(),
        }
    }

    fn calls_per_volume(&self) -> f64 {
        let total: u64 = self.calls.values().map(|count| count.calls).sum();
        self.per_volume(total)
    }

    /// Calls per deleted volume.
    fn per_volume(&self, calls: u64) -> f64 {
        ratio(calls, u64::from(self.completed.max(1)))
    }

    fn throttled(&self) -> u64 {
        self.calls.values().map(|count| count.throttled).sum()
    }

    fn rss_mib(&self) -> f64 {
        ratio(self.rss_kib, 1024)
    }

    fn figures(&self) -> Vec<Figure> {
        let figure = |name, unit, value, least, required| Figure {
            name,
            unit,
            value,
            least,
            required,
        };
        let required = &self.required;
        let (calls, throttled) = (self.calls_per_volume(), required.throttled.map(|most| ratio(most, 1)));
        let mut figures = vec![
            figure("time", "s", self.seconds, Some(self.floor_seconds), required.seconds),
            figure(
                "calls per volume",
                "",
                calls,
                Some(f64::from(CALLS)),
                required.calls_per_volume,
            ),
            figure("throttled calls", "", ratio(self.throttled(), 1), None, throttled),
            figure("peak RSS", "MiB", self.rss_mib(), None, required.rss_mib),
            figure("CPU", "s", self.cpu_seconds, None, required.cpu_seconds),
        ];
        if let Some(start) = self.start_ms {
            figures.push(figure("start to ready", "ms", start, None, required.start_ms));
        }
        figures
    }

    /// `met`, or the figures beyond their limits.
    fn verdict(&self) -> String {
        let figures = self.figures();
        let missed = figures.iter().filter(|figure| figure.met() == "MISSED");
        let missed: Vec<_> = missed.map(|figure| figure.name).collect();
        match (self.is_whole(), missed.as_slice()) {
            (false, _) => format!("{} of {} volumes", self.completed, self.volumes),
            (true, []) => "met".to_owned(),
            (true, missed) => format!("missed: {}", missed.join(", ")),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}: {}", self.row, self.about)?;
        if let Some(phase) = self.phase_seconds {
            writeln!(f, "  started {phase:.2} s after the beginning of a window")?;
        }
        for figure in self.figures() {
            let Figure { name, unit, value, .. } = figure;
            write!(f, "  {name:<18} {value:8.2} {unit:<3}")?;
            match figure.least {
                Some(least) => {
                    let times = value / least;
                    write!(f, "  floor {least:7.2}  {times:5.2} x")?;
                }
                None => write!(f, "{:25}", "")?,
            }
            match figure.required {
                Some(required) => writeln!(f, "  required {required:6.2}  {}", figure.met())?,
                None => writeln!(f)?,
            }
        }
        if !self.is_whole() {
            let Self {
                completed,
                volumes,
                left,
                ..
            } = self;
            writeln!(
                f,
                "  INCOMPLETE: {completed} of {volumes} volumes, {left} disks are left"
            )?;
        }
        for (action, count) in &self.calls {
            let share = self.per_volume(count.calls);
            writeln!(
                f,
                "    {action:<24} {:6} calls  {share:6.2} per volume  {:4} throttled  {:4} refused",
                count.calls, count.throttled, count.refused
            )?;
        }
        for (rpc, times) in &self.rpcs {
            writeln!(
                f,
                "    {rpc:<26} {:6} calls  p50 {:7.3} s  p99 {:7.3} s",
                times.count, times.p50, times.p99
            )?;
        }
        for (failure, count) in &self.failures {
            writeln!(f, "    failed and retried: {failure} {count}")?;
        }
        writeln!(f, "    CPU of the fake cloud {:.2} s", self.cloud_cpu_seconds)
    }
}

/// All outcomes, one line each, in Markdown.
pub(crate) fn table(outcomes: &[Outcome]) -> String {
    let mut lines = vec![
        "| row | floor | time | ratio | required | calls per volume | required | throttled | failed RPCs | RSS | CPU | verdict |"
            .to_owned(),
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |".to_owned(),
    ];
    let most = |required: Option<f64>, unit: &str| required.map_or("–".to_owned(), |most| format!("≤ {most}{unit}"));
    for outcome in outcomes {
        lines.push(format!(
            "| {} | {:.1} s | {:.1} s | {:.2} | {} | {:.2} | {} | {} | {} | {:.1} MiB | {:.2} s | {} |",
            outcome.row,
            outcome.floor_seconds,
            outcome.seconds,
            outcome.seconds / outcome.floor_seconds,
            most(outcome.required.seconds, " s"),
            outcome.calls_per_volume(),
            most(outcome.required.calls_per_volume, ""),
            outcome.throttled(),
            outcome.failures.values().sum::<u64>(),
            outcome.rss_mib(),
            outcome.cpu_seconds,
            outcome.verdict(),
        ));
    }
    lines.join("\n") + "\n"
}

fn ratio(part: u64, whole: u64) -> f64 {
    let float = |number: u64| u32::try_from(number).map_or(f64::INFINITY, f64::from);
    float(part) / float(whole)
}
