//! The rows: the behaviour of the cloud, the load, and the limits.

use std::time::Duration;

use serde_json::json;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) volumes: u32,
    /// Parallel volumes.
    pub(crate) parallel: u32,
    pub(crate) nodes: u32,
    pub(crate) create: Duration,
    pub(crate) attach: Duration,
    pub(crate) detach: Duration,
    /// Variation of each delay in percent.
    pub(crate) jitter: u32,
    pub(crate) latency: Latency,
    pub(crate) quota: Option<Quota>,
    pub(crate) instances: Instances,
    /// Percentages of calls, and the errors injected into them.
    pub(crate) faults: &'static [(u32, &'static str)],
    /// Number of starts of the controller that are measured.
    pub(crate) starts: usize,
    pub(crate) required: Required,
    pub(crate) beside: Beside,
}

/// The latency of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Latency {
    None,
    Fixed(Duration),
    Lognormal { median: Duration, sigma: f64 },
}

/// Calls of each API in each fixed window of the clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Quota {
    pub(crate) calls: u32,
    pub(crate) window: Duration,
    /// Whether the run starts at the beginning of a window. Otherwise its floor depends on the phase.
    pub(crate) aligned: bool,
}

/// Parallel operations of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instances {
    /// Any number of attaches and detaches: the instance has the tag for it.
    Tagged,
    /// One operation.
    Serial,
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
    create: Duration::from_millis(500),
    attach: Duration::from_secs(2),
    detach: Duration::from_secs(2),
    jitter: 0,
    latency: Latency::None,
    quota: None,
    instances: Instances::Tagged,
    faults: &[],
    starts: 0,
    required: NOTHING,
    beside: Beside::Alone,
};

const LOGNORMAL: Latency = Latency::Lognormal {
    median: Duration::from_millis(60),
    sigma: 0.6,
};

const fn quota(calls: u32, seconds: u64, aligned: bool) -> Option<Quota> {
    Some(Quota {
        calls,
        window: Duration::from_secs(seconds),
        aligned,
    })
}

pub(crate) const ROWS: &[Row] = &[
    Row {
        name: "burst60",
        volumes: 60,
        parallel: 60,
        nodes: 60,
        latency: Latency::Fixed(Duration::from_millis(300)),
        required: at_most(6.6, Some(5.0), None),
        ..DEFAULT
    },
    Row {
        name: "lognormal",
        latency: LOGNORMAL,
        required: at_most(11.0, Some(4.6), None),
        ..DEFAULT
    },
    Row {
        name: "lognormal-jitter",
        latency: LOGNORMAL,
        jitter: 50,
        required: at_most(14.5, Some(4.8), None),
        ..DEFAULT
    },
    Row {
        name: "quota-10s",
        volumes: 500,
        quota: quota(10, 1, false),
        required: at_most(60.0, None, Some(25)),
        beside: Beside::Long,
        ..DEFAULT
    },
    Row {
        name: "quota-2s",
        quota: quota(2, 1, false),
        required: at_most(58.0, Some(5.0), Some(25)),
        beside: Beside::Idle,
        ..DEFAULT
    },
    Row {
        name: "quota-60min",
        quota: quota(60, 60, true),
        required: at_most(78.0, None, Some(25)),
        beside: Beside::Idle,
        ..DEFAULT
    },
    Row {
        name: "quota-7s",
        quota: quota(35, 7, false),
        required: at_most(50.0, None, Some(60)),
        beside: Beside::Idle,
        ..DEFAULT
    },
    Row {
        name: "quota-10s-latency",
        volumes: 500,
        quota: quota(10, 1, false),
        latency: LOGNORMAL,
        beside: Beside::Long,
        ..DEFAULT
    },
    Row {
        name: "quota-2s-latency",
        quota: quota(2, 1, false),
        latency: Latency::Fixed(Duration::from_millis(300)),
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
        instances: Instances::Serial,
        required: at_most(42.0, Some(4.6), None),
        beside: Beside::Long,
        ..DEFAULT
    },
    Row {
        name: "serial-500",
        volumes: 500,
        instances: Instances::Serial,
        required: at_most(208.0, Some(4.6), None),
        beside: Beside::Long,
        ..DEFAULT
    },
    Row {
        name: "slow",
        volumes: 200,
        parallel: 70,
        nodes: 23,
        create: Duration::from_millis(1700),
        attach: Duration::from_millis(5300),
        detach: Duration::from_millis(9100),
        required: at_most(50.0, Some(4.6), None),
        beside: Beside::Long,
        ..DEFAULT
    },
    Row {
        name: "faulty",
        latency: LOGNORMAL,
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
        let Self {
            volumes,
            parallel,
            nodes,
            ..
        } = self;
        let Self {
            create, attach, detach, ..
        } = self;
        let mut parts = vec![
            format!("{volumes} volumes, {parallel} at a time, {nodes} nodes"),
            format!("create {create:?}, attach {attach:?}, detach {detach:?}"),
        ];
        if self.jitter > 0 {
            parts.push(format!("delays ±{} %", self.jitter));
        }
        match self.latency {
            Latency::None => {}
            Latency::Fixed(time) => parts.push(format!("every call takes {time:?}")),
            Latency::Lognormal { median, sigma } => {
                parts.push(format!("calls lognormal (median {median:?}, sigma {sigma})"));
            }
        }
        if let Some(quota) = self.quota {
            parts.push(format!("quota {} calls in {:?} per API", quota.calls, quota.window));
        }
        if self.instances == Instances::Serial {
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
        let delay = |flag: &str, delay: Duration| {
            let milliseconds = u64::try_from(delay.as_millis()).unwrap_or(u64::MAX);
            let width = milliseconds * u64::from(self.jitter) / 100;
            match width {
                0 => format!("--{flag}-delay={milliseconds}ms"),
                _ => format!("--{flag}-delay={}ms..{}ms", milliseconds - width, milliseconds + width),
            }
        };
        let mut flags = vec![
            format!("--nodes={}", self.nodes),
            delay("create", self.create),
            delay("attach", self.attach),
            delay("detach", self.detach),
        ];
        match self.latency {
            Latency::None => {}
            Latency::Fixed(time) => flags.push(format!("--latency={}ms", time.as_millis())),
            Latency::Lognormal { median, sigma } => {
                flags.push(format!("--latency=lognormal:{}ms,{sigma}", median.as_millis()));
            }
        }
        if let Some(quota) = self.quota {
            let seconds = quota.window.as_secs();
            flags.push(format!("--throttle={}/{seconds}s", quota.calls));
        }
        let fault = |(percent, kind): &(u32, &str)| json!({"action": "*", "percent": percent, "kind": kind});
        let faults: Vec<_> = self.faults.iter().map(fault).collect();
        let mut rules = json!({"log_length": log_length});
        match self.instances {
            Instances::Tagged => flags.push("--parallel-attach".to_owned()),
            Instances::Serial => rules["exclusive_attach_detach"] = true.into(),
        }
        let config = json!({"rules": rules, "faults": faults});
        flags.push(format!("--config={config}"));
        flags
    }
}
