//! The node plugin is killed again and again, at random instants, while its caller goes on, on real
//! loop devices. What the kernel and the disks have is looked at after every kill and at the end.
//!
//! `NODE_KILL_SEED=7 cargo test --test node_kill` draws other instants, `NODE_KILLS=50` fewer of them.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

#[path = "../common/mod.rs"]
#[expect(
    dead_code,
    reason = "each file of tests uses its own part of the harness"
)]
mod common;
mod disk;
mod judge;
mod kubelet;
mod life;
#[path = "../verbs/rng.rs"]
#[expect(dead_code, reason = "not every throw is made here")]
mod rng;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::Endpoint;

use common::csi::endpoint;
use common::machine::{TestDir, has_devices};
use common::process::{Process, Start};
use common::wait::until;
use judge::{Ledger, wrongs};
use kubelet::{Answers, CUT, Kubelet};
use life::{Lane, Tally};
use rng::Rng;

/// Kills in all.
const KILLS: u64 = 1000;
/// Lives at the same time on one node.
const AT_A_TIME: usize = 4;
/// No plugin lives longer.
const LONGEST_LIFE: Duration = Duration::from_secs(4);
/// Longer than anything takes that must not hang.
const AMPLE: Duration = Duration::from_secs(60);

/// What dies with the plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Death {
    /// The plugin alone: a tool that it started goes on.
    Alone,
    /// All that it started too, as at the end of a container.
    Container,
}

fn number(variable: &str, default: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(default, |text| text.parse().expect("a whole number"))
}

/// The plugin, at home there.
fn plugin(home: &TestDir, socket: &Path, death: Death) -> Start {
    let devices = format!("--device-dir={}", home.path().join("devices").display());
    let state = format!("--state-dir={}", home.path().join("state").display());
    let kubelet = format!("--kubelet-dir={}", home.path().display());
    let args = [
        "node",
        "--node-id=i-kill",
        "--region=cn-beijing",
        "--zone=cn-beijing-c",
        &devices,
        &state,
        &kubelet,
        &endpoint(socket),
    ];
    let start = match death {
        Death::Alone => home.diskplugin(&args),
        Death::Container => Start::of("unshare")
            .args(["--pid", "--fork", "--kill-child"])
            .args([env!("CARGO_BIN_EXE_diskplugin")])
            .args(args)
            .env("TMPDIR", home.path()),
    };
    start
        .env("RUST_LOG", "info")
        .env("DISKPLUGIN_KUBELET_DIR", home.path())
}

/// The process that is the plugin, or the only one that the process has started.
async fn victim(process: &Process, death: Death) -> Pid {
    let own = process.pid();
    if death == Death::Alone {
        return own;
    }
    let list = format!("/proc/{own}/task/{own}/children");
    until("the container has begun", AMPLE, async || {
        let list = std::fs::read_to_string(&list).unwrap();
        Some(Pid::from_raw(list.trim().parse().ok()?))
    })
    .await
}

/// How long plugins live: mostly shorter than a disk takes to be staged. Where none gets anything done, on a
/// machine that is busy with other things, the next ones live longer and longer until one does.
#[derive(Debug)]
struct Lives {
    rng: Rng,
    stretch: u32,
}

impl Lives {
    fn next(&mut self) -> Duration {
        let most = match self.rng.below(3) {
            0 => 400,
            _ => 150,
        };
        let life = Duration::from_micros(5000 + self.rng.below(1000 * most));
        LONGEST_LIFE.min(life * self.stretch)
    }

    fn has_ended(&mut self, got_anything_done: bool) {
        self.stretch = match got_anything_done {
            true => 1,
            false => self.stretch + 1,
        };
    }
}

/// What the node keeps of the past.
fn records(state: &Path) -> Vec<PathBuf> {
    let entries = |path: &Path| {
        let entries = std::fs::read_dir(path).unwrap();
        entries
            .map(|entry| entry.unwrap().path())
            .collect::<Vec<_>>()
    };
    let kinds = entries(state);
    kinds.iter().flat_map(|kind| entries(kind)).collect()
}

async fn lane(seed: u64, kills: u64, death: Death) {
    let home = TestDir::new();
    for directory in ["disks", "devices", "kubelet"] {
        std::fs::create_dir(home.path().join(directory)).unwrap();
    }
    let socket = home.path().join("csi.sock");
    let channel = Endpoint::try_from(format!("unix://{}", socket.display())).unwrap();
    let lane = Lane {
        home: home.path().to_owned(),
        kubelet: Kubelet {
            channel: channel.connect_lazy(),
            answers: Answers::default(),
        },
        ledger: Ledger::default(),
        tally: Tally::default(),
    };
    let start = Instant::now();
    let (next, enough) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    let mut workers = JoinSet::new();
    for _ in 0..AT_A_TIME {
        let (lane, next, enough) = (lane.clone(), Arc::clone(&next), Arc::clone(&enough));
        workers.spawn(async move {
            while !enough.load(Ordering::SeqCst) {
                lane.live(seed, next.fetch_add(1, Ordering::SeqCst)).await;
            }
        });
    }
    let mut lives = Lives {
        rng: Rng(seed),
        stretch: 1,
    };
    let (mut formats, mut orphans) = (0, 0);
    for round in 0..kills {
        let done = lane.kubelet.answers.count(|_, answer| answer == "OK");
        let mut process = plugin(&home, &socket, death).spawn();
        let victim = victim(&process, death).await;
        // Now and then it dies before it serves.
        if lives.rng.below(12) > 0 {
            process.ready(&socket).await;
        }
        // The instant itself is what is drawn: there is no state to wait for.
        tokio::time::sleep(lives.next()).await;
        kill(victim, Signal::SIGKILL).unwrap();
        let ended = process.ended().await;
        let killed = match death {
            Death::Alone => ended.code.is_none(),
            // Of what has died in it, unshare tells only that it did.
            Death::Container => ended.code != Some(0),
        };
        assert!(killed, "it ended by itself: {}", ended.stderr);
        formats += ended.stderr.matches("staging: make a filesystem").count();
        lives.has_ended(lane.kubelet.answers.count(|_, answer| answer == "OK") > done);
        orphans += home.processes().len();
        let wrongs = wrongs(home.path(), &lane.ledger);
        assert!(wrongs.is_empty(), "seed {seed}, kill {round}: {wrongs:#?}");
        while let Some(ended) = workers.try_join_next() {
            ended.expect("a life ends only when there is enough");
        }
    }
    let mut process = plugin(&home, &socket, death).spawn();
    let victim = victim(&process, death).await;
    process.ready(&socket).await;
    enough.store(true, Ordering::SeqCst);
    while let Some(worker) = workers.join_next().await {
        worker.unwrap();
    }
    let wrongs = wrongs(home.path(), &lane.ledger);
    assert!(wrongs.is_empty(), "seed {seed}, at the end: {wrongs:#?}");
    kill(victim, Signal::SIGTERM).unwrap();
    let ended = process.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    formats += ended.stderr.matches("staging: make a filesystem").count();
    let answers = &lane.kubelet.answers;
    let calls = answers.count(|_, _| true);
    println!(
        "seed {seed}, {death:?}: {kills} kills in {:.1} s, {} lives, {calls} calls, {} failed, {} of them cut off, {formats} formats, \
         {orphans} tools outlived their plugin\n {}\n{answers}",
        start.elapsed().as_secs_f64(),
        next.load(Ordering::SeqCst),
        answers.count(|_, answer| answer != "OK"),
        answers.count(|_, answer| answer == CUT),
        lane.tally,
    );
    let state = home.path().join("state");
    if state.exists() {
        let records = records(&state);
        let few = records.len() <= lane.tally.unfinished();
        assert!(few, "records of disks that are gone: {records:?}");
        std::fs::remove_dir_all(&state).unwrap();
    }
    for directory in ["disks", "devices", "kubelet"] {
        std::fs::remove_dir(home.path().join(directory)).expect("nothing is left in it");
    }
    let end = Instant::now() + AMPLE;
    while !home.leftovers().is_empty() {
        assert!(
            Instant::now() < end,
            "left of the node: {:#?}",
            home.leftovers()
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_a_thousand_times_it_formats_nothing_twice_and_leaves_nothing() {
    if !has_devices("node_kill").await {
        return;
    }
    let seed = number("NODE_KILL_SEED", 1);
    let kills = number("NODE_KILLS", KILLS);
    println!("seed {seed} (NODE_KILL_SEED)");
    tokio::join!(
        lane(2 * seed, kills / 2, Death::Alone),
        lane(2 * seed + 1, kills / 2, Death::Container),
    );
}
