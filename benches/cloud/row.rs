//! The rows: what the cloud does, what is asked of the controller, and what is required of it.

use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) volumes: u32,
    /// Volumes in the making at the same time.
    pub(crate) parallel: u32,
    pub(crate) nodes: u32,
    pub(crate) create: Duration,
    pub(crate) attach: Duration,
    pub(crate) detach: Duration,
    /// Each delay is drawn from so many percent around it.
    pub(crate) jitter: u32,
    pub(crate) latency: Latency,
    pub(crate) quota: Option<Quota>,
    pub(crate) instances: Instances,
    pub(crate) faults: &'static [Fault],
    /// Starts of the controller that are timed besides.
    pub(crate) starts: usize,
    pub(crate) required: Required,
    pub(crate) beside: Beside,
}

/// How long a call takes.
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
    /// Whether the run starts with a window. Else it starts at once, and its floor depends on the phase.
    pub(crate) aligned: bool,
}

/// What an instance does at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instances {
    /// Any number of attachments and detachments: it is tagged for it.
    Tagged,
    /// One operation.
    Serial,
}

/// So many in a hundred of all calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) percent: u32,
    pub(crate) kind: &'static str,
}

/// What is required; none is only shown.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub(crate) struct Required {
    pub(crate) seconds: Option<f64>,
    pub(crate) calls_per_volume: Option<f64>,
    pub(crate) throttled: Option<u64>,
    pub(crate) start_ms: Option<f64>,
    pub(crate) rss_mib: Option<f64>,
    pub(crate) cpu_seconds: Option<f64>,
}

/// Whether other rows run at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beside {
    Alone,
    /// One of the others that are `Long` or `Idle`.
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

/// What rows have that say nothing else.
const USUAL: Row = Row {
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
        ..USUAL
    },
    Row {
        name: "lognormal",
        latency: LOGNORMAL,
        required: at_most(11.0, Some(4.6), None),
        ..USUAL
    },
    Row {
        name: "lognormal-jitter",
        latency: LOGNORMAL,
        jitter: 50,
        required: at_most(14.5, Some(4.8), None),
        ..USUAL
    },
    Row {
        name: "quota-10s",
        volumes: 500,
        quota: quota(10, 1, false),
        required: at_most(60.0, None, Some(25)),
        beside: Beside::Long,
        ..USUAL
    },
    Row {
        name: "quota-2s",
        quota: quota(2, 1, false),
        required: at_most(58.0, Some(5.0), Some(25)),
        beside: Beside::Idle,
        ..USUAL
    },
    Row {
        name: "quota-60min",
        quota: quota(60, 60, true),
        required: at_most(78.0, None, Some(25)),
        beside: Beside::Idle,
        ..USUAL
    },
    Row {
        name: "quota-7s",
        quota: quota(35, 7, false),
        required: at_most(50.0, None, Some(60)),
        beside: Beside::Idle,
        ..USUAL
    },
    Row {
        name: "quota-10s-latency",
        volumes: 500,
        quota: quota(10, 1, false),
        latency: LOGNORMAL,
        beside: Beside::Long,
        ..USUAL
    },
    Row {
        name: "quota-2s-latency",
        quota: quota(2, 1, false),
        latency: Latency::Fixed(Duration::from_millis(300)),
        beside: Beside::Idle,
        ..USUAL
    },
    Row {
        name: "single",
        volumes: 1,
        parallel: 1,
        required: at_most(4.9, Some(10.0), None),
        ..USUAL
    },
    Row {
        name: "sequential",
        volumes: 20,
        parallel: 1,
        required: at_most(95.0, Some(8.0), None),
        beside: Beside::Idle,
        ..USUAL
    },
    Row {
        name: "parallel-100",
        required: at_most(9.6, Some(4.3), None),
        ..USUAL
    },
    Row {
        name: "parallel-500",
        volumes: 500,
        required: at_most(47.5, Some(4.3), None),
        ..USUAL
    },
    Row {
        name: "serial-100",
        instances: Instances::Serial,
        required: at_most(42.0, Some(4.6), None),
        beside: Beside::Long,
        ..USUAL
    },
    Row {
        name: "serial-500",
        volumes: 500,
        instances: Instances::Serial,
        required: at_most(208.0, Some(4.6), None),
        beside: Beside::Long,
        ..USUAL
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
        ..USUAL
    },
    Row {
        name: "faulty",
        latency: LOGNORMAL,
        faults: &[
            Fault {
                percent: 5,
                kind: "internal-error",
            },
            Fault {
                percent: 4,
                kind: "reset-after",
            },
            Fault {
                percent: 2,
                kind: "reset-before",
            },
        ],
        required: at_most(14.0, None, None),
        ..USUAL
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
        ..USUAL
    },
];

impl Row {
    /// What happens in it, in words.
    pub(crate) fn about(&self) -> String {
        let mut parts = vec![
            format!(
                "{} volumes, {} at a time, {} nodes",
                self.volumes, self.parallel, self.nodes
            ),
            format!(
                "create {:?}, attach {:?}, detach {:?}",
                self.create, self.attach, self.detach
            ),
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
        for fault in self.faults {
            parts.push(format!("{} % {}", fault.percent, fault.kind));
        }
        if self.starts > 0 {
            parts.push(format!("and {} starts to ready", self.starts));
        }
        parts.join("; ")
    }

    /// How long the run may take before it is given up: not so long that a driver that is far from what is required
    /// blocks the other rows.
    pub(crate) fn limit(&self) -> Duration {
        let required = self.required.seconds.unwrap_or(60.0);
        Duration::from_secs_f64(required * 3.0 + 30.0).min(Duration::from_mins(5))
    }

    /// The flags of the fake cloud that make it. Its log of calls has this length.
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
        let faults: Vec<_> = self
            .faults
            .iter()
            .map(|fault| serde_json::json!({"action": "*", "percent": fault.percent, "kind": fault.kind}))
            .collect();
        let mut rules = serde_json::json!({"log_length": log_length});
        match self.instances {
            Instances::Tagged => flags.push("--parallel-attach".to_owned()),
            Instances::Serial => rules["exclusive_attach_detach"] = true.into(),
        }
        let config = serde_json::json!({"rules": rules, "faults": faults});
        flags.push(format!("--config={config}"));
        flags
    }
}
