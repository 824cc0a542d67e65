//! The controller is killed repeatedly, at random instants, while its callers continue. At the end, the cloud has the
//! disks of a run without kills.
//!
//! `KILL_SEED=7 cargo test --test controller kill::` draws other instants.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use diskplugin::base::SystemClock;
use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::Endpoint;

use crate::common::csi::socket;
use crate::common::expected::Recorder;
use crate::common::fake::{Fake, NODES};
use crate::common::findings::{CloudCall, Findings};
use crate::common::lifecycle::{Callers, StateReader};
use crate::common::plan::Plan;
use crate::common::rng::Rng;
use crate::common::sidecar::{Port, RetryPolicy, Sidecar};
use crate::common::state::attachments;

/// Kills of each of two controllers.
const KILLS: usize = 100;
/// Lifecycles of the run without kills.
const COMPARED: usize = 40;
/// Parallel lifecycles.
const PARALLEL: usize = 12;
/// The maximum time between ready and the kill.
const MAX_UPTIME: Duration = Duration::from_millis(300);

/// As sidecars, with shorter pauses.
const RETRY_POLICY: RetryPolicy = RetryPolicy {
    timeout: Duration::from_secs(15),
    initial: Duration::from_millis(50),
    max: Duration::from_millis(400),
    total: Duration::from_mins(2),
};

/// The disks and snapshots in the cloud by name.
type Things = BTreeMap<String, String>;

fn things(state: &Value) -> Things {
    let rows = |kind: &str| state[kind].as_array().cloned().unwrap_or_default();
    let name = |row: &Value| {
        let name = &row["tags"]["diskplugin.csi.example/name"];
        name.as_str().unwrap_or("without a name").to_owned()
    };
    let disks = rows("disks").into_iter().filter(|row| row["phase"] != "Deleting");
    let disks = disks.map(|row| {
        let what = format!(
            "{} GiB of {} in {} on {:?}",
            row["size"],
            row["category"],
            row["zone"],
            attachments(&row)
        );
        (format!("disk {}", name(&row)), what)
    });
    let snapshots = rows("snapshots")
        .into_iter()
        .map(|row| (format!("snapshot {}", name(&row)), row["size"].to_string()));
    disks.chain(snapshots).collect()
}

/// Runs lifecycles, at least this number, until the controller has been killed this number of times. Returns the
/// resources in the cloud at the end.
async fn lane(seed: u64, kills: usize, at_least: usize) -> Things {
    let directory = tempfile::tempdir().unwrap();
    let socket = socket(&directory);
    let seed_flag = format!("--seed={seed}");
    let fake = Fake::start(&[
        seed_flag.as_str(),
        "--parallel-attach",
        "--create-delay=50ms..200ms",
        "--attach-delay=100ms..400ms",
        "--detach-delay=100ms..400ms",
        "--resize-delay=100ms",
        "--cut-delay=50ms",
        "--snapshot-delay=200ms",
        "--latency=2ms..30ms",
        r#"--config={"rules":{"log_length":1000000}}"#,
    ])
    .await;
    let fake = Arc::new(fake);
    let endpoint = Endpoint::try_from(format!("unix://{}", socket.display())).unwrap();
    let state_reader: StateReader = {
        let fake = Arc::clone(&fake);
        Arc::new(move || {
            let fake = Arc::clone(&fake);
            Box::pin(async move { fake.control("state").await })
        })
    };
    let callers = Callers {
        sidecar: Sidecar::new(Port::Socket(endpoint.connect_lazy()), RETRY_POLICY),
        recorder: Recorder::new(Arc::new(SystemClock)),
        state_reader,
    };
    let start = Instant::now();
    let (next, enough) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut workers = JoinSet::new();
    for _ in 0..PARALLEL {
        let (callers, next, enough) = (callers.clone(), Arc::clone(&next), Arc::clone(&enough));
        workers.spawn(async move {
            loop {
                let over = enough.load(Ordering::SeqCst);
                let number = next.fetch_add(1, Ordering::SeqCst);
                if over && number >= at_least {
                    return;
                }
                let nodes = NODES.map(str::to_owned);
                callers.run(&Plan::of(number, &nodes)).await;
            }
        });
    }
    let mut instants = Rng(seed);
    let most = u64::try_from(MAX_UPTIME.as_micros()).unwrap();
    for _ in 0..kills {
        let (process, _) = fake.controller(&socket).keys().ready(&socket).await;
        // A random instant, not a state to wait for.
        tokio::time::sleep(Duration::from_micros(instants.below(most))).await;
        process.signal(Signal::SIGKILL);
        assert_eq!(process.ended().await.code, None, "it ended before it was killed");
    }
    let (process, _) = fake.controller(&socket).keys().ready(&socket).await;
    enough.store(true, Ordering::SeqCst);
    while let Some(worker) = workers.join_next().await {
        worker.unwrap();
    }
    process.signal(Signal::SIGTERM);
    let ended = process.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let state = fake.control("state").await;
    let calls = fake.calls().await.into_iter().map(|call| CloudCall {
        at: call["at"].as_str().unwrap().parse().unwrap(),
        action: call["action"].as_str().unwrap().to_owned(),
        params: serde_json::from_value(call["params"].clone()).unwrap(),
    });
    let calls: Vec<CloudCall> = calls.collect();
    let expected = callers.recorder.expected().clone();
    let findings = Findings::of(&expected, &state, &calls);
    println!(
        "seed {seed}: {kills} kills, {} volumes in {:.1} s, {} cloud calls; {}\n{}",
        expected.volumes.len(),
        start.elapsed().as_secs_f64(),
        calls.len(),
        findings.counts(),
        callers.sidecar.codes()
    );
    assert!(findings.is_clean(), "seed {seed} (KILL_SEED): {findings:#?}");
    things(&state)
}

/// The resources of the first lifecycles.
fn first(things: &Things) -> Things {
    let number = |name: &str| -> Option<usize> {
        let rest = name.split_once("pvc-")?.1;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let mut first = things.clone();
    first.retain(|name, _| number(name).is_none_or(|number| number < COMPARED));
    first
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_kills_leave_the_same_disks_as_a_run_without() {
    let seed = std::env::var("KILL_SEED").ok();
    let seed = seed.map_or(1, |seed| seed.parse::<u64>().expect("KILL_SEED is a number"));
    let (one, two, without_kills) = tokio::join!(
        lane(seed, KILLS, COMPARED),
        lane(seed + 1, KILLS, COMPARED),
        lane(seed, 0, COMPARED),
    );
    let without_kills = first(&without_kills);
    assert!(!without_kills.is_empty());
    assert_eq!(first(&one), without_kills, "seed {seed}");
    assert_eq!(first(&two), without_kills, "seed {}", seed + 1);
}
