//! Minutes of work under faults: memory, file descriptors and threads of the controller do not grow.
//!
//! `SOAK_SECONDS` is the duration. The leader changes in the middle, so that each of two processes works for half of
//! it.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use diskplugin::csi::proto::controller_client::ControllerClient;
use nix::sys::signal::Signal;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tonic::transport::Channel;

use crate::common::csi::{create, publish, try_connect};
use crate::common::fake::NODES;
use crate::common::oidc::write_token;
use crate::common::process::Process;
use crate::common::request::{deletion, unpublication};
use crate::kubernetes::kit::Kit;
use crate::running::{HTTP, SOON, logged};

const WORKERS: usize = 4;
/// Pause between the retries of a call, and between two lives of volumes.
const PAUSE: Duration = Duration::from_millis(500);
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// Memory that a volume may occupy for hours after its deletion: its name is remembered until a listing is certain.
const BYTES_PER_VOLUME: u64 = 2048;
/// Memory that any process may use more, such as for buffers of more calls at a time.
const SPARE_BYTES: u64 = 3 << 20;

/// What a process uses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Usage {
    /// Without pages of the executable.
    rss_bytes: u64,
    descriptors: u64,
    threads: u64,
    /// The number of volumes that have been deleted so far.
    volumes: u64,
}

impl Usage {
    fn of(process: &Process, volumes: &AtomicUsize) -> Self {
        let proc = PathBuf::from(format!("/proc/{}", process.pid()));
        let status = std::fs::read_to_string(proc.join("status")).unwrap();
        let number = |text: &str, name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            let value = line.and_then(|line| line.split_whitespace().next());
            value.unwrap_or_else(|| panic!("no {name}")).parse::<u64>().unwrap()
        };
        Self {
            rss_bytes: number(&status, "RssAnon:") << 10,
            descriptors: std::fs::read_dir(proc.join("fd")).unwrap().count() as u64,
            threads: number(&status, "Threads:"),
            volumes: volumes.load(Ordering::Relaxed) as u64,
        }
    }

    /// The median of each value.
    fn median(samples: &[Self]) -> Self {
        let median = |value: fn(&Self) -> u64| {
            let mut values: Vec<_> = samples.iter().map(value).collect();
            values.sort_unstable();
            values[values.len() / 2]
        };
        Self {
            rss_bytes: median(|usage| usage.rss_bytes),
            descriptors: median(|usage| usage.descriptors),
            threads: median(|usage| usage.threads),
            volumes: median(|usage| usage.volumes),
        }
    }
}

/// Compares the last quarter with the second one: in the first one, buffers and connections are still created.
fn check_flat(samples: &[Usage]) {
    let quarter = samples.len() / 4;
    assert!(quarter > 0, "the soak is too short: {} samples", samples.len());
    let before = Usage::median(&samples[quarter..2 * quarter]);
    let after = Usage::median(&samples[3 * quarter..]);
    println!("second quarter {before:?}\nlast quarter   {after:?}");
    let volumes = after.volumes - before.volumes;
    let most = before.rss_bytes + SPARE_BYTES + volumes * BYTES_PER_VOLUME;
    assert!(after.rss_bytes <= most, "memory grows: {before:?}, then {after:?}");
    // Connections and calls that run at the moment.
    let slack = WORKERS as u64 * 2;
    assert!(
        after.descriptors <= before.descriptors + slack,
        "{before:?}, then {after:?}"
    );
    assert!(after.threads <= before.threads + 2, "{before:?}, then {after:?}");
}

/// The two replicas, only one of which has a socket.
#[derive(Debug, Clone)]
struct Sockets([PathBuf; 2]);

impl Sockets {
    async fn leader(&self) -> Channel {
        loop {
            for socket in &self.0 {
                if let Some(channel) = try_connect(socket).await {
                    return channel;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Repeats the call until it succeeds.
    async fn repeat<T: Send, E: Send, F>(&self, call: impl Fn(Channel) -> F + Send + Sync) -> T
    where
        F: Future<Output = Result<T, E>> + Send,
    {
        loop {
            if let Ok(response) = call(self.leader().await).await {
                return response;
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn life_of_a_volume(&self, name: &str, node: &str) {
        let volume = self.repeat(|channel| async move { create(&channel, name).await }).await;
        let volume = volume.as_str();
        self.repeat(|channel| async move { publish(&channel, volume, node).await })
            .await;
        self.repeat(|channel| async move {
            let request = unpublication(volume, node);
            ControllerClient::new(channel)
                .controller_unpublish_volume(request)
                .await
        })
        .await;
        self.repeat(|channel| async move { ControllerClient::new(channel).delete_volume(deletion(volume)).await })
            .await;
    }
}

/// A replica with credentials that are renewed all the time.
async fn start(kit: &Kit, name: &str) -> (Process, PathBuf) {
    let directory = kit.dir.path().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let (socket, token) = (directory.join("csi.sock"), directory.join("token"));
    write_token(&token, 24 * 3600);
    let command = kit.fake.controller(&socket).service_account(&token);
    let command = command.env("POD_NAME", name).args([
        "--leader-election",
        "--leader-election-lease-duration=12s",
        "--leader-election-renew-deadline=8s",
        "--leader-election-retry-period=300ms",
        HTTP,
        &format!("--sts-endpoint={}", kit.fake.url),
        &format!("--kubeconfig={}", kit.kubeconfig().display()),
    ]);
    (command.spawn(), socket)
}

/// Faults of the cloud, then of the API server, then none, for a tenth of the life of a process each.
async fn disturb(kit: &mut Kit, step: usize) {
    let faults = match step % 4 {
        0 => json!([{"action": "*", "percent": 20, "kind": "internal-error-after"}]),
        1 => json!([{"action": "*", "percent": 15, "kind": "reset-after"}]),
        2 => json!([{"action": "*", "percent": 30, "kind": {"code": {"status": 400, "code": "Throttling"}}}]),
        _ => json!([]),
    };
    kit.fake.configure(json!({"faults": faults})).await;
    if step % 4 == 3 {
        // Shorter than the renew deadline.
        kit.api.stop();
        tokio::time::sleep(Duration::from_secs(2)).await;
        kit.api.restart();
    }
}

#[tokio::test]
async fn a_controller_under_faults_does_not_grow() {
    let seconds = std::env::var("SOAK_SECONDS").map_or(40, |text| text.parse().expect("SOAK_SECONDS is a number"));
    let life = Duration::from_secs(seconds) / 2;
    let config = json!({
        "sts": {"lifetime": "15s"},
        "latency": {"all": "5ms..30ms"},
        "delays": {"create": "200ms", "attach": "300ms", "detach": "300ms"},
    });
    let mut kit = Kit::new(&[&format!("--config={config}")]).await;
    let (first, first_socket) = start(&kit, "a").await;
    logged(&first, "this replica is the leader").await;
    let (second, second_socket) = start(&kit, "b").await;
    logged(&second, "another replica is the leader").await;
    let sockets = Sockets([first_socket, second_socket]);
    let (mut workers, volumes) = (JoinSet::new(), Arc::<AtomicUsize>::default());
    for worker in 0..WORKERS {
        let (sockets, volumes) = (sockets.clone(), Arc::clone(&volumes));
        workers.spawn(async move {
            for round in 0.. {
                let node = NODES[(worker + round) % NODES.len()];
                sockets.life_of_a_volume(&format!("pvc-{worker}-{round}"), node).await;
                volumes.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(PAUSE).await;
            }
        });
    }
    for (process, is_last) in [(first, false), (second, true)] {
        let (started, mut samples, mut step) = (Instant::now(), Vec::new(), 0);
        // A busy machine gets more time, so that the first process has worked.
        while started.elapsed() < life || volumes.load(Ordering::Relaxed) < WORKERS {
            assert!(started.elapsed() < life + SOON, "no volumes are deleted");
            if step < 10 && started.elapsed() >= life * step / 10 {
                disturb(&mut kit, step as usize).await;
                step += 1;
            }
            samples.push(Usage::of(&process, &volumes));
            tokio::time::sleep(SAMPLE_INTERVAL).await;
        }
        check_flat(&samples);
        if is_last {
            workers.shutdown().await;
        }
        process.signal(Signal::SIGTERM);
        let ended = process.ended().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
}
