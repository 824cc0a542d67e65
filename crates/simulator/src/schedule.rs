//! What happens in one run, as data: it can be printed, and parts of it can be left out.

use std::time::Duration;

use serde_json::{Value, json};

use crate::rng::Rng;

pub(crate) const NODES: [&str; 3] = ["i-one", "i-two", "i-three"];

/// The end of the disturbances. From then on the cloud is healthy.
pub(crate) const CALM: Duration = Duration::from_secs(240);

#[derive(Debug, Clone)]
pub struct Schedule {
    pub seed: u64,
    /// Flags of the fake cloud.
    pub cloud: Vec<String>,
    pub claims: Vec<Claim>,
    pub events: Vec<Event>,
}

/// The life of a volume.
#[derive(Debug, Clone)]
pub struct Claim {
    pub name: String,
    pub start: Duration,
    pub source: Source,
    /// The instances on which it is used, one after the other.
    pub nodes: Vec<&'static str>,
    pub snapshot: bool,
    pub expand: bool,
    /// The claim is deleted so long after its start, even if its volume does not exist yet.
    pub abandoned: Option<Duration>,
    pub end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    Blank,
    /// A clone of the volume with this number, which has started earlier.
    Clone(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Deleted,
    Detached,
    Attached,
}

#[derive(Debug, Clone)]
pub struct Event {
    pub at: Duration,
    pub kind: EventKind,
}

#[derive(Debug, Clone)]
pub enum EventKind {
    /// A configuration of the fake cloud, for a while.
    Disturb { patch: Value, period: Duration },
    /// The controller is killed, and another one starts so much later.
    Kill { down: Duration },
    /// An operator detaches the volume of this claim in the console.
    DetachBehind(usize),
    /// An operator creates a disk with the name of the claim, but without tags.
    CreateForeign(usize),
    /// The clock of the controller jumps by this number of seconds.
    Clock(i64),
}

impl EventKind {
    /// The claim that it concerns.
    pub(crate) fn claim(&self) -> Option<usize> {
        match self {
            Self::DetachBehind(claim) | Self::CreateForeign(claim) => Some(*claim),
            Self::Disturb { .. } | Self::Kill { .. } | Self::Clock(_) => None,
        }
    }
}

impl Schedule {
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let claims = (0..2 + rng.index(7)).map(|number| claim(number, &mut rng)).collect();
        let mut schedule = Self {
            seed,
            cloud: cloud(seed, &mut rng),
            claims,
            events: Vec::new(),
        };
        for _ in 0..rng.below(12) {
            let kind = EventKind::Disturb {
                patch: disturbance(&mut rng),
                period: rng.millis(1_000, 180_000),
            };
            schedule.add(kind, &mut rng);
        }
        if rng.chance(30) {
            // From the beginning, because a resource that has been visible does not become invisible.
            let kind = EventKind::Disturb {
                patch: json!({"rules": {"hidden": rng.choose(&["5s", "30s", "60s"])}}),
                period: CALM,
            };
            schedule.events.push(Event {
                at: Duration::ZERO,
                kind,
            });
        }
        for _ in 0..rng.below(6) {
            let down = rng.millis(0, 30_000);
            schedule.add(EventKind::Kill { down }, &mut rng);
        }
        let count = schedule.claims.len();
        for _ in 0..rng.below(3) {
            let kind = match rng.below(3) {
                0 => EventKind::DetachBehind(rng.index(count)),
                1 => EventKind::CreateForeign(rng.index(count)),
                _ => EventKind::Clock(rng.choose(&[-1200, -60, 45, 1000])),
            };
            schedule.add(kind, &mut rng);
        }
        schedule.events.sort_by_key(|event| event.at);
        schedule
    }

    fn add(&mut self, kind: EventKind, rng: &mut Rng) {
        let at = rng.millis(0, 200_000);
        self.events.push(Event { at, kind });
    }
}

fn claim(number: usize, rng: &mut Rng) -> Claim {
    let nodes = (0..rng.below(4)).map(|_| rng.choose(&NODES)).collect();
    let is_clone = number > 0 && rng.chance(25);
    Claim {
        name: format!("pvc-{number}"),
        start: rng.millis(0, 60_000),
        source: if is_clone {
            Source::Clone(rng.index(number))
        } else {
            Source::Blank
        },
        nodes,
        snapshot: rng.chance(25),
        expand: rng.chance(30),
        abandoned: rng.chance(15).then(|| rng.millis(100, 60_000)),
        end: rng.choose(&[End::Deleted, End::Deleted, End::Detached, End::Attached]),
    }
}

fn cloud(seed: u64, rng: &mut Rng) -> Vec<String> {
    let range = |rng: &mut Rng, ranges: &[&str]| rng.choose(ranges).to_owned();
    let mut flags = vec![
        format!(
            "--nodes={}=cn-beijing-a,{}=cn-beijing-a,{}=cn-beijing-a",
            NODES[0], NODES[1], NODES[2]
        ),
        format!("--seed={seed}"),
        format!(
            "--latency={}",
            range(rng, &["20ms..80ms", "60ms..300ms", "lognormal:60ms,0.6"])
        ),
        format!("--create-delay={}", range(rng, &["0s..1s", "1s..5s", "5s..20s"])),
        format!("--attach-delay={}", range(rng, &["500ms..3s", "2s..8s"])),
        format!("--detach-delay={}", range(rng, &["500ms..3s", "2s..8s"])),
        format!("--resize-delay={}", range(rng, &["0s..1s", "1s..5s"])),
        format!("--cut-delay={}", range(rng, &["0s..1s", "1s..4s"])),
        format!("--snapshot-delay={}", range(rng, &["1s..10s", "10s..60s"])),
        format!("--delete-delay={}", range(rng, &["0s..1s", "1s..5s"])),
    ];
    for flag in ["--missing-is-error", "--parallel-attach", "--never-attached"] {
        if rng.chance(30) {
            flags.push(flag.to_owned());
        }
    }
    flags
}

const ACTIONS: [&str; 10] = [
    "*",
    "CreateDisk",
    "DeleteDisk",
    "AttachDisk",
    "DetachDisk",
    "ResizeDisk",
    "CreateSnapshot",
    "DeleteSnapshot",
    "DescribeDisks",
    "DescribeSnapshots",
];

/// A configuration that makes the cloud worse.
fn disturbance(rng: &mut Rng) -> Value {
    let kinds = [
        json!("internal-error"),
        json!("internal-error-after"),
        json!("reset-before"),
        json!("reset-after"),
        json!("truncated"),
        json!("html"),
        json!("service-unavailable"),
        json!({"delay-before": "8s"}),
        json!({"delay-after": "8s"}),
        json!({"code": {"status": 403, "code": "Forbidden.RAM"}}),
    ];
    match rng.below(12) {
        0..=4 => {
            let percent = rng.choose(&[5, 20, 60, 100]);
            json!({"faults": [{"action": rng.choose(&ACTIONS), "percent": percent, "kind": rng.choose(&kinds)}]})
        }
        5 | 6 => {
            let lag = rng.choose(&["0s..2s", "2s", "0s..5s"]);
            json!({"stale": {"lag": lag, "jumping": rng.chance(50), "tags": rng.choose(&["0s", "2s"])}})
        }
        7 | 8 => json!({"throttle": {"per_action": rng.choose(&["5/1s", "20/10s", "60"])}}),
        9 => {
            let pairs = [json!(["*/*"]), json!(["cn-beijing-a/*"]), json!(["*/cloud_essd"])];
            json!({"out_of_stock": rng.choose(&pairs)})
        }
        10 => json!({"denied": [rng.choose(&["DescribeDisks", "DescribeSnapshots", "DeleteSnapshot", "CreateDisk"])]}),
        _ => {
            let action = rng.choose(&["DescribeDisks", "DescribeSnapshots"]);
            json!({"faults": [{"action": action, "percent": 100, "kind": "no-rows"}]})
        }
    }
}

/// What each disturbance changes, in a healthy cloud.
pub(crate) fn healthy() -> Value {
    json!({
        "faults": [],
        "out_of_stock": [],
        "denied": [],
        "stale": {"lag": "0s", "jumping": false, "tags": "0s"},
        "rules": {"hidden": "0s", "log_length": 1_000_000},
        "throttle": {"per_action": null},
    })
}
