//! Kills the node plugin repeatedly at random times while its caller retries, on real loop devices. The mount table and
//! the disks are checked after every kill and at the end.
//!
//! `NODE_KILL_SEED=7 cargo test --test node_kill` selects other times, `NODE_KILLS=50` fewer kills.

mod counts;
mod disk;
mod interrupted;
mod invariants;
mod kubelet;
mod lifecycle;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::Endpoint;

use crate::common::machine::{NODE_FOLDERS, TestDir, has_devices};
use crate::common::process::{Process, Start};
use crate::common::rng::{Rng, env_number};
use crate::common::volume::LONG_TIMEOUT;
use crate::common::wait::until;
use counts::Counts;
use invariants::{FilesystemUuids, violations};
use kubelet::{INTERRUPTED, Kubelet};
use lifecycle::{FORMAT_INTERRUPTED, TestNode};

/// The total number of kills.
const KILLS: u64 = 1000;
/// The number of concurrent volumes on a node.
const CONCURRENCY: usize = 4;
/// The maximum time from the start of a plugin to its kill.
const MAX_LIFETIME: Duration = Duration::from_secs(4);

/// The processes that are killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KillScope {
    /// The plugin only: a tool that it started continues.
    Plugin,
    /// The plugin and its tools, as when a container is killed.
    Container,
}

fn plugin(home: &TestDir, socket: &Path, scope: KillScope) -> Start {
    let args = home.node_args("i-kill", socket);
    let start = match scope {
        KillScope::Plugin => home.diskplugin(args),
        KillScope::Container => Start::of("unshare")
            .args(["--pid", "--fork", "--kill-child", env!("CARGO_BIN_EXE_diskplugin")])
            .args(args)
            .env("TMPDIR", home.path()),
    };
    start.env("RUST_LOG", "info").env("DISKPLUGIN_KUBELET_DIR", home.path())
}

/// The PID of the plugin, which is a child of `unshare` with [`KillScope::Container`].
async fn plugin_pid(process: &Process, scope: KillScope) -> Pid {
    let own = process.pid();
    if scope == KillScope::Plugin {
        return own;
    }
    let list = format!("/proc/{own}/task/{own}/children");
    until("the container is started", LONG_TIMEOUT, async || {
        let list = std::fs::read_to_string(&list).unwrap();
        Some(Pid::from_raw(list.trim().parse().ok()?))
    })
    .await
}

/// Random lifetimes of plugins, mostly shorter than staging a disk. They grow while no call succeeds, as on a busy
/// machine.
#[derive(Debug)]
struct Lifetimes {
    rng: Rng,
    factor: u32,
}

impl Lifetimes {
    fn next(&mut self) -> Duration {
        let max_ms = match self.rng.below(3) {
            0 => 400,
            _ => 150,
        };
        let lifetime = Duration::from_micros(5000 + self.rng.below(1000 * max_ms));
        MAX_LIFETIME.min(lifetime * self.factor)
    }

    fn adapt(&mut self, has_progress: bool) {
        self.factor = match has_progress {
            true => 1,
            false => self.factor + 1,
        };
    }
}

/// The records in the state directory.
fn records(state: &Path) -> Vec<PathBuf> {
    let entries = |path: &Path| {
        let entries = std::fs::read_dir(path).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect::<Vec<_>>()
    };
    let kinds = entries(state);
    kinds.iter().flat_map(|kind| entries(kind)).collect()
}

async fn run_node(seed: u64, kills: u64, scope: KillScope) {
    let home = TestDir::of_node();
    let socket = home.path().join("csi.sock");
    let channel = Endpoint::try_from(format!("unix://{}", socket.display())).unwrap();
    let node = TestNode {
        home: home.path().to_owned(),
        kubelet: Kubelet {
            channel: channel.connect_lazy(),
            counts: Counts::default(),
        },
        uuids: FilesystemUuids::default(),
        counters: Counts::default(),
    };
    let start = Instant::now();
    let (next, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let mut workers = JoinSet::new();
    for _ in 0..CONCURRENCY {
        let (node, next, stop) = (node.clone(), Arc::clone(&next), Arc::clone(&stop));
        workers.spawn(async move {
            while !stop.load(Ordering::SeqCst) {
                node.run_volume(seed, next.fetch_add(1, Ordering::SeqCst)).await;
            }
        });
    }
    let mut lifetimes = Lifetimes {
        rng: Rng(seed),
        factor: 1,
    };
    let (mut formats, mut orphans) = (0, 0);
    let interrupted = Counts::default();
    let is_ok = |name: &str| name.ends_with(":OK");
    for round in 0..kills {
        let done = node.kubelet.counts.count(is_ok);
        let mut process = plugin(&home, &socket, scope).spawn();
        let pid = plugin_pid(&process, scope).await;
        // Some plugins are killed before they serve.
        if lifetimes.rng.below(12) > 0 {
            process.ready(&socket).await;
        }
        // The time itself is random: there is no state to wait for.
        tokio::time::sleep(lifetimes.next()).await;
        kill(pid, Signal::SIGKILL).unwrap();
        let ended = process.ended().await;
        let killed = match scope {
            KillScope::Plugin => ended.code.is_none(),
            // unshare does not report the signal.
            KillScope::Container => ended.code != Some(0),
        };
        assert!(killed, "the plugin exited: {}", ended.stderr);
        formats += ended.stderr.matches("staging: create a filesystem").count();
        interrupted::record(&interrupted, &ended.stderr);
        lifetimes.adapt(node.kubelet.counts.count(is_ok) > done);
        orphans += home.processes().len();
        let violations = violations(home.path(), &node.uuids);
        assert!(violations.is_empty(), "seed {seed}, kill {round}: {violations:#?}");
        while let Some(ended) = workers.try_join_next() {
            ended.expect("a worker ends only when it is stopped");
        }
    }
    let mut process = plugin(&home, &socket, scope).spawn();
    let pid = plugin_pid(&process, scope).await;
    process.ready(&socket).await;
    stop.store(true, Ordering::SeqCst);
    while let Some(worker) = workers.join_next().await {
        worker.unwrap();
    }
    let violations = violations(home.path(), &node.uuids);
    assert!(violations.is_empty(), "seed {seed}, at the end: {violations:#?}");
    kill(pid, Signal::SIGTERM).unwrap();
    let ended = process.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    formats += ended.stderr.matches("staging: create a filesystem").count();
    let counts = &node.kubelet.counts;
    let calls = counts.count(|_| true);
    println!(
        "seed {seed}, {scope:?}: {kills} kills in {:.1} s, {} volumes, {calls} calls, {} failed, {} of them interrupted, {formats} formats, \
         {orphans} tools still running after their plugin\n {}\n{counts}\n kills that interrupted a step:{interrupted}",
        start.elapsed().as_secs_f64(),
        next.load(Ordering::SeqCst),
        counts.count(|name| !is_ok(name)),
        counts.count(|name| name.ends_with(INTERRUPTED)),
        node.counters,
    );
    interrupted::assert_shares(&interrupted, kills);
    let state = home.path().join("state");
    if state.exists() {
        let records = records(&state);
        let unfinished = node.counters.count(|name| name == FORMAT_INTERRUPTED);
        let is_expected = u64::try_from(records.len()).unwrap() <= unfinished;
        assert!(is_expected, "records of deleted disks: {records:?}");
        std::fs::remove_dir_all(&state).unwrap();
    }
    for directory in NODE_FOLDERS {
        std::fs::remove_dir(home.path().join(directory)).expect("the directory is empty");
    }
    let end = Instant::now() + LONG_TIMEOUT;
    while !home.leftovers().is_empty() {
        assert!(Instant::now() < end, "leftovers: {:#?}", home.leftovers());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeatedly_killed_plugin_formats_no_disk_twice_and_leaves_nothing() {
    if !has_devices("node::kill").await {
        return;
    }
    let seed = env_number("NODE_KILL_SEED", 1);
    let kills = env_number("NODE_KILLS", KILLS);
    println!("seed {seed} (NODE_KILL_SEED)");
    tokio::join!(
        run_node(2 * seed, kills / 2, KillScope::Plugin),
        run_node(2 * seed + 1, kills / 2, KillScope::Container),
    );
}
