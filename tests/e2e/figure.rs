//! The time from the claim to the first write of its pod, by component, next to that of a pod with an emptyDir. `make
//! e2e ARGS=figure` prints it.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use crate::cluster::Cluster;
use crate::images;
use crate::install::{CONTROLLER, NODE};
use crate::namespace::Volume;
use crate::plane::NAMESPACE;
use crate::scene::Scene;
use crate::wait::until;

/// The argument that selects it.
pub(crate) const WORD: &str = "figure";
/// Number of rounds, of which the median is printed.
const ROUNDS: usize = 7;
/// Delays of the cloud.
const CREATE: Duration = Duration::from_millis(500);
const ATTACH: Duration = Duration::from_secs(2);
/// The calls of the driver for a mounted volume, in this order.
const CALLS: [&str; 4] = [
    "CreateVolume",
    "ControllerPublishVolume",
    "NodeStageVolume",
    "NodePublishVolume",
];
/// Prints the time after the write.
const WRITE: &str = "echo written > /data/file && sync /data/file && cat /proc/uptime; sleep 2147483647 & wait";

/// Times in seconds since the creation of claim and pod.
#[derive(Debug)]
struct Round {
    writes: f64,
    /// Start and end of each call.
    calls: BTreeMap<&'static str, (f64, f64)>,
}

/// Starts a cluster, and prints the figures.
pub(crate) fn run() -> ExitCode {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime can be built").block_on(Box::pin(measure()));
    ExitCode::SUCCESS
}

async fn measure() {
    let cluster = Cluster::start().await;
    let delays =
        json!({"create": CREATE.as_millis().to_string() + "ms", "attach": ATTACH.as_millis().to_string() + "ms"});
    cluster.cloud.configure(json!({"delays": delays})).await;
    let scene = Scene::open(&cluster, WORD).await;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    // The first round of each is slower, because caches are empty, and is not counted.
    for number in 0..=ROUNDS {
        let empty = json!({"name": "data", "emptyDir": {}});
        without.push(round(&scene, &format!("empty-{number}"), empty, None).await.writes);
        let claim = format!("claim-{number}");
        let ours = json!({"name": "data", "persistentVolumeClaim": {"claimName": claim}});
        with.push(round(&scene, &format!("disk-{number}"), ours, Some(&claim)).await);
    }
    print!("{}", table(&without[1..], &with[1..]));
}

/// Creates a pod with this volume, after its claim, and measures the time until it writes.
async fn round(scene: &Scene<'_>, name: &str, volume: Value, claim: Option<&str>) -> Round {
    let mut pod = Scene::shell(name, &["data"]);
    pod["spec"]["volumes"] = json!([volume]);
    pod["spec"]["containers"][0]["command"] = json!(["sh", "-c", format!("trap 'exit 0' TERM; {WRITE}")]);
    let start = Start::now();
    if let Some(claim) = claim {
        scene.want(claim, "disk").await;
    }
    scene.make("pods", &pod).await;
    scene.running(name).await;
    let log = ["logs", "--namespace", &scene.name, name];
    let writes = until("the pod has written", async || {
        uptime(&scene.cluster.plane.kubectl(log).await.stdout)
    })
    .await;
    let mut round = Round {
        writes: writes - start.uptime,
        calls: BTreeMap::new(),
    };
    if let Some(claim) = claim {
        let volume = scene.bound(claim).await;
        round.calls = calls(scene.cluster, &volume, start.wall).await;
    }
    scene.end(name).await;
    scene.close(claim.as_slice()).await;
    round
}

/// The calls for the volume in the driver's log, each from its first start to its first success, because sidecars and
/// kubelet may repeat it.
async fn calls(cluster: &Cluster, volume: &Volume, start: f64) -> BTreeMap<&'static str, (f64, f64)> {
    let mut starts = BTreeMap::new();
    let mut ends = BTreeMap::new();
    for workload in [format!("deployment/{CONTROLLER}"), format!("daemonset/{NODE}")] {
        let args = ["logs", "--namespace", NAMESPACE, "--container", "diskplugin", &workload];
        let log = cluster.plane.kubectl(args).await.stdout;
        // A failed CreateVolume has no disk.
        let ours = |line: &&str| line.contains(&volume.disk) || line.contains(&volume.name);
        for line in log.lines().filter(ours) {
            let Some((method, is_done)) = CALLS.iter().find_map(|method| Some((*method, ending(line, method)?))) else {
                continue;
            };
            let Some(took) = took(line) else {
                assert!(!is_done, "the line has no duration: {line}");
                continue;
            };
            let end = time_of(line) - start;
            let first = starts.entry(method).or_insert(f64::INFINITY);
            *first = first.min(end - took);
            if is_done {
                let first = ends.entry(method).or_insert(f64::INFINITY);
                *first = first.min(end);
            }
        }
    }
    assert_eq!(ends.len(), CALLS.len(), "the driver logs its calls: {ends:?}");
    let of_both = |(method, end)| (method, (starts[method], end));
    ends.into_iter().map(of_both).collect()
}

/// Whether the line reports the success or the failure of a call of the method; none for other lines.
fn ending(line: &str, method: &str) -> Option<bool> {
    if line.contains(&format!(": {method} done")) {
        return Some(true);
    }
    let failed = line.contains(&format!(": {method} failed")) || line.contains(&format!("gave {method} up"));
    failed.then_some(false)
}

fn time_of(line: &str) -> f64 {
    let stamp = line.split_whitespace().next().unwrap_or_default();
    let stamp: Timestamp = stamp.parse().expect("a line begins with its time");
    stamp.as_duration().as_secs_f64()
}

/// The duration of the call; none if the line does not have it.
fn took(line: &str) -> Option<f64> {
    let (_, tail) = line.split_once("elapsed_ms=")?;
    let digits = tail.split(|c: char| !c.is_ascii_digit()).next()?;
    let millis: u32 = digits.parse().ok()?;
    Some(f64::from(millis) / 1000.0)
}

/// A time in seconds: since the boot, as pods print it, and wall time, as in logs.
#[derive(Debug, Clone, Copy)]
struct Start {
    uptime: f64,
    wall: f64,
}

impl Start {
    fn now() -> Self {
        #[expect(clippy::disallowed_methods, reason = "the driver's logs have the wall's time")]
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let text = std::fs::read_to_string("/proc/uptime").expect("this is Linux");
        Self {
            uptime: uptime(&text).expect("the file has the uptime"),
            wall: since.expect("a time after 1970").as_secs_f64(),
        }
    }
}

/// The first number of /proc/uptime.
fn uptime(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// The figures, one per line.
fn table(without: &[f64], with: &[Round]) -> String {
    let cloud = |call: &str| match call {
        "CreateVolume" => CREATE.as_secs_f64(),
        "ControllerPublishVolume" => ATTACH.as_secs_f64(),
        _ => 0.0,
    };
    let of_all = |part: &dyn Fn(&Round) -> f64| median(with.iter().map(part));
    let took = |round: &Round, call: &str| {
        let (start, end) = round.calls[call];
        end - start - cloud(call)
    };
    let (empty, disk) = (median(without.iter().copied()), of_all(&|round| round.writes));
    let clouds = CREATE.as_secs_f64() + ATTACH.as_secs_f64();
    let ours = of_all(&|round| CALLS.iter().map(|call| took(round, call)).sum());
    let mut lines = vec![
        format!(
            "From claim and pod to the first write, seconds, median of {ROUNDS}; {}",
            image()
        ),
        line(0, "on an emptyDir", empty),
        line(0, "on a new disk", disk) + &format!(", {:.1} times as long", disk / empty),
        line(0, "beyond the emptyDir", disk - empty),
        line(1, "the cloud: creation and attach of the disk", clouds),
        line(1, "the driver", ours),
    ];
    lines.extend(CALLS.map(|call| line(2, call, of_all(&|round| took(round, call)))));
    lines.push(line(
        1,
        "Kubernetes, beyond its time for the emptyDir",
        disk - empty - clouds - ours,
    ));
    let mut before = ("the claim", None);
    for call in CALLS {
        let gap = |round: &Round| round.calls[call].0 - before.1.map_or(0.0, |before| round.calls[before].1);
        lines.push(line(2, &format!("{} to {call}", before.0), of_all(&gap)));
        before = (call, Some(call));
    }
    let last = |round: &Round| round.writes - round.calls[CALLS[3]].1;
    lines.push(line(2, &format!("{} to the write", CALLS[3]), of_all(&last)));
    lines.join("\n") + "\n"
}

/// The image of the measured programs.
fn image() -> String {
    match std::env::var(images::OTHER) {
        Ok(path) if !path.is_empty() => format!("the image is {path}"),
        _ => format!("the image is of the dev profile ({} names another)", images::OTHER),
    }
}

fn line(depth: usize, what: &str, seconds: f64) -> String {
    let what = format!("{}{what}", "  ".repeat(depth + 1));
    format!("{what:<60} {seconds:>7.3}")
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
