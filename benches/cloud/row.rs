//! The rows: the behaviour of the cloud, the load, and the limits.

use std::time::Duration;

use fake_ecs::Options;
use fake_ecs::call_quota::Quota;
use serde_json::json;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) volumes: u32,
    /// Parallel volumes.
    pub(crate) parallel: u32,
    pub(crate) nodes: u32,
    /// Flags of the fake cloud for its delays.
    pub(crate) delays: &'static str,
    /// Its flags for latency and quota.
    pub(crate) cloud: &'static str,
    /// Whether the run starts at the beginning of a window of the quota. Otherwise its floor depends on the phase.
    pub(crate) is_aligned: bool,
    /// Whether an instance executes one operation at a time. Otherwise it has the tag for parallel attachments.
    pub(crate) is_serial: bool,
    /// Percentages of calls, and the errors injected into them.
    pub(crate) faults: &'static [(u32, &'static str)],
    /// Number of starts of the controller that are measured.
    pub(crate) starts: usize,
    pub(crate) required: Required,
    pub(crate) beside: Beside,
}

/// Limits; figures without one are only printed.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub(crate) struct Required {
    pub(crate) seconds: Option<f64>,
    pub(crate) calls_per_volume: Option<f64>,
    pub(crate) throttled: Option<u64>,
    pub(crate) start_ms: Option<f64>,
    pub(crate) rss_mib: Option<f64>,
    pub(crate) cpu_seconds: Option<f64>,
}

/// Whether other rows run in parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    Alone,
    /// In parallel with `Idle` rows.
    Long,
    /// Mostly waits.
    Idle,
}

const NOTHING: Required = Required {
    seconds: None,
    calls_per_volume: None,
    throttled: None,
    start_ms: None,
    rss_mib: None,
    cpu_seconds: None,
};

const fn at_most(seconds: f64, calls_per_volume: Option<f64>, throttled: Option<u64>) -> Required {
    Required {
        seconds: Some(seconds),
        calls_per_volume,
        throttled,
        ..NOTHING
    }
}

/// The defaults of rows.
const DEFAULT: Row = Row {
    name: "",
    volumes: 100,
    parallel: 50,
    nodes: 10,
    delays: "--create-delay=500ms --attach-delay=2s --detach-delay=2s",
    cloud: "",
    is_aligned: false,
    is_serial: false,
    faults: &[],
    starts: 0,
    required: NOTHING,
    beside: Beside::Alone,
};

const LOGNORMAL: &str = "--latency=lognormal:60ms,0.6";

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "burst60",
        volumes: 60,
        parallel: 60,
        nodes: 60,
        cloud: "--latency=300ms",
        required: at_most(6.6, Some(5.0), None),
        ..DEFAULT
    },
    Row {
        name: "lognormal",
        cloud: LOGNORMAL,
        required: at_most(11.0, Some(4.6), None),
        ..DEFAULT
    },
    Row {
        name: "lognormal-jitter",
        cloud: LOGNORMAL,
        delays: "--create-delay=250ms..750ms --attach-delay=1s..3s --detach-delay=1s..3s",
        required: at_most(14.5, Some(4.8), None),
        ..DEFAULT
    },
    Row {
        name: "quota-10s",
        volumes: 500,
        cloud: "--throttle=10/1s",
        required: at_most(60.0, None, Some(25)),
        beside: Beside::Long,
        ..DEFAULT
    },
    Row {
        name: "quota-2s",
        cloud: "--throttle=2/1s",
        required: at_most(58.0, Some(5.0), Some(25)),
        beside: Beside::Idle,
        ..DEFAULT
    },
    Row {
        name: "quota-60min",
        cloud: "--throttle=60/60s",
        is_aligned: true,
        required: at_most(78.0, None, Some(25)),
        beside: Beside::Idle,
        ..DEFAULT
    },
    Row {
        name: "quota-7s",
        cloud: "--throttle=35/7s",
        required: at_most(50.0, None, Some(60)),
        beside: Beside::Idle,
        ..DEFAULT
    },
    Row {
        name: "quota-10s-latency",
        volumes: 500,
        cloud: "--throttle=10/1s --latency=lognormal:60ms,0.6",
        beside: Beside::Long,
        ..DEFAULT
    },
    Row {
        name: "quota-2s-latency",
        cloud: "--throttle=2/1s --latency=300ms",
        beside: Beside::Idle,
        ..DEFAULT
    },
    Row {
        name: "single",
        volumes: 1,
        parallel: 1,
        required: at_most(4.9, Some(10.0), None),
        ..DEFAULT
    },
    Row {
        name: "sequential",
        volumes: 20,
        parallel: 1,
        required: at_most(95.0, Some(8.0), None),
        beside: Beside::Idle,
        ..DEFAULT
    },
    Row {
        name: "parallel-100",
        required: at_most(9.6, Some(4.3), None),
        ..DEFAULT
    },
    Row {
        name: "parallel-500",
        volumes: 500,
        required: at_most(47.5, Some(4.3), None),
        ..DEFAULT
    },
    Row {
        name: "serial-100",
        is_serial: true,
        required: at_most(42.0, Some(4.6), None),
        beside: Beside::Long,
        ..DEFAULT
    },
    Row {
        name: "serial-500",
        volumes: 500,
        is_serial: true,
        required: at_most(208.0, Some(4.6), None),
        beside: Beside::Long,
        ..DEFAULT
    },
    Row {
        name: "slow",
        volumes: 200,
        parallel: 70,
        nodes: 23,
        delays: "--create-delay=1700ms --attach-delay=5300ms --detach-delay=9100ms",
        required: at_most(50.0, Some(4.6), None),
        beside: Beside::Long,
        ..DEFAULT
    },
    Row {
        name: "faulty",
        cloud: LOGNORMAL,
        faults: &[(5, "internal-error"), (4, "reset-after"), (2, "reset-before")],
        required: at_most(14.0, None, None),
        ..DEFAULT
    },
    Row {
        name: "footprint",
        volumes: 500,
        starts: 20,
        required: Required {
            start_ms: Some(10.0),
            rss_mib: Some(16.0),
            cpu_seconds: Some(0.8),
            ..NOTHING
        },
        ..DEFAULT
    },
];

impl Row {
    /// The description of the row.
    pub(crate) fn about(&self) -> String {
        let load = format!(
            "{} volumes, {} at a time, {} nodes",
            self.volumes, self.parallel, self.nodes
        );
        let mut parts = vec![load, format!("{} {}", self.delays, self.cloud).trim_end().to_owned()];
        if self.is_serial {
            parts.push("one operation at a time per instance".to_owned());
        }
        parts.extend(self.faults.iter().map(|(percent, kind)| format!("{percent} % {kind}")));
        if self.starts > 0 {
            parts.push(format!("and {} starts to ready", self.starts));
        }
        parts.join("; ")
    }

    /// The timeout of the run, so that a driver far beyond its limits does not block the other rows.
    pub(crate) fn limit(&self) -> Duration {
        let required = self.required.seconds.unwrap_or(60.0);
        Duration::from_secs_f64(required * 3.0 + 30.0).min(Duration::from_mins(5))
    }

    /// The flags of the fake cloud. Its log of calls has this length.
    pub(crate) fn flags(&self, log_length: u32) -> Vec<String> {
        let fault = |(percent, kind): &(u32, &str)| json!({"action": "*", "percent": percent, "kind": kind});
        let faults: Vec<_> = self.faults.iter().map(fault).collect();
        let rules = json!({"log_length": log_length, "exclusive_attach_detach": self.is_serial});
        let config = json!({"rules": rules, "faults": faults});
        let mut flags = vec![format!("--nodes={}", self.nodes), format!("--config={config}")];
        let given = self.delays.split_whitespace().chain(self.cloud.split_whitespace());
        flags.extend(given.map(str::to_owned));
        flags.extend((!self.is_serial).then(|| "--parallel-attach".to_owned()));
        flags
    }

    /// The parsed flags.
    pub(crate) fn options(&self) -> Options {
        let flags = self.flags(1);
        Options::from_flags(flags.iter().map(String::as_str)).expect("the flags are valid")
    }

    /// The quota of each API.
    pub(crate) fn quota(&self) -> Option<Quota> {
        self.options().throttle?.per_action
    }
}
