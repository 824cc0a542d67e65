//! Hand-over between two pods of the controller: how long it takes, and that never both serve.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use diskplugin::csi::proto::ProbeRequest;
use diskplugin::csi::proto::identity_client::IdentityClient;

use crate::cloud;
use crate::cluster::{Cluster, lease_path};
use crate::common::csi::try_connect;
use crate::failures::created_once;
use crate::replica::Replica;
use crate::scene::Scene;
use crate::wait::until;

const GRACEFUL: Duration = Duration::from_secs(5);
const CRASHED: Duration = Duration::from_secs(20);

/// Two pods, of which the first is the leader, and an observer of their sockets.
struct Pair {
    first: Replica,
    second: Replica,
    watch: ServingWatch,
}

impl Pair {
    /// Starts the pod that does not run, which becomes the standby.
    async fn start(cluster: &Cluster) -> Self {
        let first = cluster.replica.lock().await.take();
        let first = first.expect("a pod runs");
        let number = usize::from(cluster.release.pod_name(0) == first.name);
        let other = cluster.release.start(&cluster.plane, number).await;
        let watch = ServingWatch::start([first.socket(), other.socket()]);
        until("the second pod is a standby", async || {
            let logs = other.container("diskplugin").logs();
            logs.contains("another replica is the leader").then_some(())
        })
        .await;
        Self {
            first,
            second: other,
            watch,
        }
    }
}

/// If the leader is stopped gracefully, a claim that is created at this moment is provisioned by the other pod.
pub(crate) async fn leader_stopped(scene: &Scene<'_>) {
    let cluster = scene.cluster;
    let Pair { first, second, watch } = Pair::start(cluster).await;
    let machine = scene.pod_with_claim().await;
    let begun = Instant::now();
    let (name, socket) = (second.name.clone(), second.socket());
    let ((), taken) = tokio::join!(first.stop(), serves(&socket, begun));
    println!("graceful hand-over: {:.1} s", taken.as_secs_f64());
    *cluster.replica.lock().await = Some(second);
    assert!(taken <= GRACEFUL, "{taken:?}");
    let volume = scene.bound("data").await;
    scene.attached(&volume, &[&machine]).await;
    assert_eq!(cluster.leader().await, Some(name));
    created_once(scene, &volume).await;
    watch.check();
    scene.close(&["app"], &["data"], &[&volume]).await;
}

/// If the pod of the leader is killed during an attach, the other pod completes the attach, and the disk is attached
/// once. The clock of the killed machine was an hour ahead.
pub(crate) async fn leader_killed(scene: &Scene<'_>) {
    let cluster = scene.cluster;
    let Pair { first, second, watch } = Pair::start(cluster).await;
    let delay = async |delay: &str| {
        let delays = json!({"delays": {"attach": delay}});
        cluster.cloud.configure(delays).await;
    };
    delay("4s").await;
    let machine = scene.pod_with_claim().await;
    let volume = scene.bound("data").await;
    until("the attachment is under way", async || {
        let disk = cloud::disk(&cluster.cloud, &volume.disk).await?;
        (disk["attachments"][0]["state"] == "Attaching").then_some(())
    })
    .await;
    first.kill().await;
    let begun = Instant::now();
    let ahead = json!({"spec": {"renewTime": "2099-01-01T00:00:00.000000Z"}});
    cluster.plane.api.change(&lease_path(), &ahead).await;
    let taken = serves(&second.socket(), begun).await;
    println!("hand-over after SIGKILL: {:.1} s", taken.as_secs_f64());
    let name = second.name.clone();
    *cluster.replica.lock().await = Some(second);
    assert!(taken <= CRASHED, "{taken:?}");
    scene.attached(&volume, &[&machine]).await;
    delay("500ms").await;
    assert_eq!(cluster.leader().await, Some(name));
    created_once(scene, &volume).await;
    watch.check();
    scene.close(&["app"], &["data"], &[&volume]).await;
}

/// If all containers of both pods are killed at once and restarted, one of the pods becomes the leader.
pub(crate) async fn pods_restarted(scene: &Scene<'_>) {
    let cluster = scene.cluster;
    let Pair { first, second, watch } = Pair::start(cluster).await;
    let begun = Instant::now();
    for replica in [&first, &second] {
        replica.kill_containers();
    }
    let (one, other) = (first.socket(), second.socket());
    let taken = tokio::select! {
        taken = serves(&one, begun) => taken,
        taken = serves(&other, begun) => taken,
    };
    println!("both pods restarted: {:.1} s", taken.as_secs_f64());
    assert!(taken <= CRASHED, "{taken:?}");
    finish(cluster, (first, second), watch).await;
}

/// If the API server is away for a minute, no pod serves at its end, and one of them does soon after its return.
pub(crate) async fn apiserver_away(scene: &Scene<'_>) {
    let cluster = scene.cluster;
    let Pair { first, second, watch } = Pair::start(cluster).await;
    let (one, other) = (first.socket(), second.socket());
    let away = async {
        sleep(Duration::from_secs(55)).await;
        for socket in [&one, &other] {
            assert!(!is_serving(socket).await, "a leader without a Lease");
        }
    };
    let minute = Duration::from_secs(60);
    tokio::join!(cluster.plane.restart_apiserver_after(minute), away);
    let begun = Instant::now();
    let taken = tokio::select! {
        taken = serves(&one, begun) => taken,
        taken = serves(&other, begun) => taken,
    };
    println!("after the return of the API server: {:.1} s", taken.as_secs_f64());
    assert!(taken <= CRASHED, "{taken:?}");
    finish(cluster, (first, second), watch).await;
}

/// Keeps the leader running as the only pod.
async fn finish(cluster: &Cluster, (first, second): (Replica, Replica), watch: ServingWatch) {
    let leader = until("there is a leader", async || cluster.leader().await).await;
    let (leader, standby) = match first.name == leader {
        true => (first, second),
        false => (second, first),
    };
    standby.stop().await;
    watch.check();
    *cluster.replica.lock().await = Some(leader);
}

/// Waits until Probe on the socket reports ready, and returns the time since `begun`.
async fn serves(socket: &Path, begun: Instant) -> Duration {
    until("the pod serves", async || is_serving(socket).await.then_some(())).await;
    begun.elapsed()
}

async fn is_serving(socket: &Path) -> bool {
    let probe = async {
        let channel = try_connect(socket).await?;
        let response = IdentityClient::new(channel).probe(ProbeRequest {}).await;
        Some(response.ok()?.into_inner().ready == Some(true))
    };
    let answer = timeout(Duration::from_secs(1), probe).await;
    answer.ok().flatten().unwrap_or(false)
}

/// Probes both sockets continuously.
struct ServingWatch {
    probes: JoinSet<()>,
}

impl ServingWatch {
    fn start([one, other]: [PathBuf; 2]) -> Self {
        let mut probes = JoinSet::new();
        probes.spawn(async move {
            loop {
                // The first one is probed again, because the hand-over may be between the two probes.
                let both = is_serving(&one).await && is_serving(&other).await;
                assert!(!(both && is_serving(&one).await), "two pods serve");
                sleep(Duration::from_millis(20)).await;
            }
        });
        Self { probes }
    }

    fn check(mut self) {
        assert!(self.probes.try_join_next().is_none(), "two pods served");
    }
}
