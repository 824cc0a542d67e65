//! Leader election between processes: one serves, and the next one takes over.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;
use tokio::time::Instant;
use tonic::Code;
use tonic::transport::Channel;

use diskplugin::csi::proto::ProbeRequest;
use diskplugin::csi::proto::identity_client::IdentityClient;

use crate::common::csi::{create, list, try_connect};
use crate::common::process::{Process, Start};
use crate::common::wait::until;
use crate::http_client::{address, get};
use crate::kubernetes::kit::Kit;
use crate::running::{HTTP, SOON, logged, wait};
use crate::text::{assert_failed, assert_has};

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/storage/leases/diskplugin-csi-example-controller";

/// Shorter than the defaults, and long enough for a busy machine.
const TIMES: [&str; 3] = [
    "--leader-election-lease-duration=12s",
    "--leader-election-renew-deadline=8s",
    "--leader-election-retry-period=300ms",
];
const LEASE_DURATION: Duration = Duration::from_secs(12);

/// A replica with its own socket.
struct Replica {
    name: &'static str,
    socket: PathBuf,
}

impl Replica {
    fn new(kit: &Kit, name: &'static str) -> Self {
        let directory = kit.dir.path().join(name);
        std::fs::create_dir(&directory).unwrap();
        let socket = directory.join("csi.sock");
        Self { name, socket }
    }

    fn command(&self, kit: &Kit, flags: &[&str]) -> Start {
        let kubeconfig = format!("--kubeconfig={}", kit.kubeconfig().display());
        let start = kit.fake.controller(&self.socket).keys().env("POD_NAME", self.name);
        start
            .args(["--leader-election", HTTP, &kubeconfig])
            .args(TIMES)
            .args(flags)
    }

    fn start(&self, kit: &Kit) -> Process {
        self.command(kit, &[]).spawn()
    }

    /// Starts it, and waits until it serves.
    async fn lead(&self, kit: &Kit) -> (Process, Channel) {
        self.command(kit, &[]).ready(&self.socket).await
    }

    /// Starts it, and waits until it is a standby.
    async fn stand_by(&self, kit: &Kit, flags: &[&str]) -> Process {
        let process = self.command(kit, flags).spawn();
        logged(&process, "another replica is the leader").await;
        process
    }

    /// The time until its socket serves.
    async fn serves(&self, process: &mut Process) -> (Channel, Duration) {
        let start = Instant::now();
        (process.ready(&self.socket).await, start.elapsed())
    }
}

fn pair(kit: &Kit) -> (Replica, Replica) {
    (Replica::new(kit, "a"), Replica::new(kit, "b"))
}

fn holder(kit: &Kit) -> Option<String> {
    Some(kit.get(LEASE)?["spec"]["holderIdentity"].as_str()?.to_owned())
}

/// Observes that at most one of the sockets accepts connections.
struct SocketWatch {
    stop: Arc<AtomicBool>,
    twice: Arc<AtomicUsize>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl SocketWatch {
    fn start(replicas: &[&Replica]) -> Self {
        let sockets: Vec<PathBuf> = replicas.iter().map(|one| one.socket.clone()).collect();
        let (stop, twice) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&twice));
        let thread = std::thread::spawn(move || {
            let listens = |socket: &&PathBuf| UnixStream::connect(socket).is_ok();
            // A thread of its own, so that no runtime delays it.
            while !stopped.load(Ordering::SeqCst) {
                if sockets.iter().filter(listens).count() > 1 {
                    count.fetch_add(1, Ordering::SeqCst);
                }
                // Each connection costs the processes time.
                std::thread::park_timeout(Duration::from_millis(5));
            }
        });
        Self {
            stop,
            twice,
            thread: Some(thread),
        }
    }

    fn check(mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.take().unwrap().join().unwrap();
        assert_eq!(self.twice.load(Ordering::SeqCst), 0, "two sockets at a time");
    }
}

#[tokio::test]
async fn a_standby_takes_over_from_a_stopped_and_from_a_killed_leader() {
    let kit = Kit::new(&[]).await;
    let (a, b) = pair(&kit);
    let watch = SocketWatch::start(&[&a, &b]);
    let (first, channel) = a.lead(&kit).await;
    create(&channel, "one").await.unwrap();
    let mut second = b.stand_by(&kit, &[]).await;
    assert!(!b.socket.exists());
    assert_eq!(holder(&kit).as_deref(), Some("a"));

    first.signal(Signal::SIGTERM);
    let (channel, stopped) = b.serves(&mut second).await;
    assert!(stopped < LEASE_DURATION, "the Lease was not released: {stopped:?}");
    let ended = first.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!a.socket.exists());
    assert_eq!(list(&channel).await.unwrap(), 1);

    let mut third = a.stand_by(&kit, &[]).await;
    second.signal(Signal::SIGKILL);
    let (channel, killed) = a.serves(&mut third).await;
    assert!(killed < 3 * LEASE_DURATION, "{killed:?}");
    assert_eq!(list(&channel).await.unwrap(), 1);
    watch.check();
    println!("took over after SIGTERM in {stopped:?}, after SIGKILL in {killed:?}");
}

#[tokio::test]
async fn a_leader_that_cannot_renew_exits_and_another_one_serves_when_the_api_server_recovers() {
    let mut kit = Kit::new(&[]).await;
    let (a, b) = pair(&kit);
    let watch = SocketWatch::start(&[&a, &b]);
    let (mut first, channel) = a.lead(&kit).await;
    let mut second = b.stand_by(&kit, &[]).await;
    // Shorter than the renew deadline.
    kit.api.stop();
    logged(&first, "cannot update the Lease").await;
    kit.api.restart();
    logged(&first, "the Lease is renewed again").await;
    assert!(!first.is_over(), "{}", first.stderr());
    list(&channel).await.unwrap();
    // Longer.
    kit.api.stop();
    let ended = first.ended().await;
    assert_failed(&ended, 1, &["leader election lost, so this replica exits: Lease "]);
    assert!(!a.socket.exists());
    let mut restarted = a.start(&kit);
    logged(&restarted, "standby: cannot read the Lease").await;
    assert!(!a.socket.exists() && !b.socket.exists());
    kit.api.restart();
    wait("one of them serves", async || {
        assert!(!second.is_over() && !restarted.is_over());
        try_connect(&a.socket).await.is_some() || try_connect(&b.socket).await.is_some()
    })
    .await;
    watch.check();
}

#[tokio::test]
async fn two_replicas_that_start_together_have_one_leader() {
    let kit = Kit::new(&[]).await;
    let replicas = ["a", "b", "c"].map(|name| Replica::new(&kit, name));
    let watch = SocketWatch::start(&replicas.each_ref());
    let processes = replicas.each_ref().map(|one| one.start(&kit));
    wait("there are a leader and two standbys", async || {
        let logs = processes.each_ref().map(Process::stderr);
        let count = |text: &str| logs.iter().filter(|log| log.contains(text)).count();
        let leaders = count("this replica is the leader");
        assert!(leaders <= 1);
        leaders == 1 && count("another replica is the leader") == 2
    })
    .await;
    watch.check();
}

#[tokio::test]
async fn a_standby_is_healthy_and_ready_and_reports_the_leader() {
    let kit = Kit::new(&[]).await;
    let (a, b) = pair(&kit);
    let (leader, _) = a.lead(&kit).await;
    let waiting = b.stand_by(&kit, &[]).await;
    for (process, part, gauge) in [
        (&leader, "this replica is the leader", "diskplugin_leader 1"),
        (&waiting, "standby: a is the leader", "diskplugin_leader 0"),
    ] {
        let http = address(process).await;
        assert_eq!(get(&http, "/healthz").await.status, 200);
        let ready = get(&http, "/readyz").await;
        assert_eq!(ready.status, 200, "{ready:?}");
        let checks = ready.json();
        let mut checks = checks["checks"].as_array().unwrap().iter();
        let check = checks.find(|check| check["name"] == "leader");
        assert_eq!(check.unwrap()["message"], part);
        assert_has(&get(&http, "/metrics").await.text, &[&format!("\n{gauge}\n")]);
    }
    // A missing permission is reported, and the replica is not ready.
    kit.forbid(&[&format!("GET {LEASE}")]);
    logged(&waiting, "standby: cannot read the Lease").await;
    let ready = get(&address(&waiting).await, "/readyz").await;
    assert_eq!(ready.status, 503, "{ready:?}");
    assert_has(&ready.text, &["Grant it"]);
}

#[tokio::test]
async fn a_standby_with_a_socket_is_not_ready_and_serves_on_the_same_connection_when_it_leads() {
    let kit = Kit::new(&[]).await;
    let (a, b) = pair(&kit);
    let (leader, _) = a.lead(&kit).await;
    let mut waiting = b.stand_by(&kit, &["--standby-socket"]).await;
    let channel = until("it has a socket", SOON, async || try_connect(&b.socket).await).await;
    let mut identity = IdentityClient::new(channel.clone());
    let probe = identity.probe(ProbeRequest {}).await.unwrap();
    assert_eq!(probe.into_inner().ready, Some(false));
    let refused = create(&channel, "one").await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert_has(refused.message(), &["standby"]);
    leader.signal(Signal::SIGTERM);
    wait("the same connection is served", async || {
        assert!(!waiting.is_over(), "{}", waiting.stderr());
        create(&channel, "one").await.is_ok()
    })
    .await;
    let probe = identity.probe(ProbeRequest {}).await.unwrap();
    assert_eq!(probe.into_inner().ready, Some(true));
    waiting.signal(Signal::SIGTERM);
    assert_eq!(waiting.ended().await.code, Some(0));
    assert!(!b.socket.exists());
    assert_eq!(holder(&kit).as_deref(), Some(""));
}

#[tokio::test]
async fn a_standby_removes_the_socket_of_a_killed_process_and_stops_immediately() {
    let kit = Kit::new(&[]).await;
    let a = Replica::new(&kit, "a");
    let (leader, _) = a.lead(&kit).await;
    leader.signal(Signal::SIGKILL);
    leader.ended().await;
    assert!(a.socket.exists());
    let other = json!({"spec": {"holderIdentity": "other", "leaseDurationSeconds": 600}});
    kit.put(LEASE, other);
    let waiting = a.stand_by(&kit, &[]).await;
    assert!(!a.socket.exists());
    waiting.signal(Signal::SIGTERM);
    assert_eq!(waiting.ended().await.code, Some(0));
    assert_eq!(holder(&kit).as_deref(), Some("other"));
}

#[tokio::test]
async fn times_that_would_allow_two_leaders_are_invalid() {
    let kit = Kit::new(&[]).await;
    let command = kit.start(&["--leader-election", "--leader-election-renew-deadline=15s"]);
    let command = command.env("POD_NAME", "a");
    assert_failed(&command.ended().await, 64, &["two replicas could be active"]);
}
