//! Hand-over between two pods of the controller: its duration, and that the two pods never serve at the same time.

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

/// Bounds for a busy machine; the guarantees (5 and 20 s) are of a machine that is not, which the printed times show.
/// A Lease that was not released expires after 15 s.
const MAX_GRACEFUL: Duration = Duration::from_secs(12);
const MAX_CRASHED: Duration = Duration::from_secs(45);

/// Two pods, of which the first is the leader, and an observer of their sockets.
struct Pair {
    first: Replica,
    second: Replica,
    watch: ServingWatch,
}

impl Pair {
    /// Starts the pod that is not running; it becomes the standby.
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
    let start = Instant::now();
    let (name, socket) = (second.name.clone(), second.socket());
    let ((), elapsed) = tokio::join!(first.stop(), serves(&socket, start));
    println!("graceful hand-over: {:.1} s", elapsed.as_secs_f64());
    *cluster.replica.lock().await = Some(second);
    assert!(elapsed <= MAX_GRACEFUL, "{elapsed:?}");
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
    until("the attach is in progress", async || {
        let disk = cloud::disk(&cluster.cloud, &volume.disk).await?;
        (disk["attachments"][0]["state"] == "Attaching").then_some(())
    })
    .await;
    first.kill().await;
    let start = Instant::now();
    let ahead = json!({"spec": {"renewTime": "2099-01-01T00:00:00.000000Z"}});
    cluster.plane.api.change(&lease_path(), &ahead).await;
    let elapsed = serves(&second.socket(), start).await;
    println!("hand-over after SIGKILL: {:.1} s", elapsed.as_secs_f64());
    let name = second.name.clone();
    *cluster.replica.lock().await = Some(second);
    assert!(elapsed <= MAX_CRASHED, "{elapsed:?}");
    scene.attached(&volume, &[&machine]).await;
    delay("500ms").await;
    assert_eq!(cluster.leader().await, Some(name));
    created_once(scene, &volume).await;
    watch.check();
    scene.close(&["app"], &["data"], &[&volume]).await;
}

/// If all containers of both pods are killed at the same time and restarted, one of the pods becomes the leader.
pub(crate) async fn pods_restarted(scene: &Scene<'_>) {
    let cluster = scene.cluster;
    let Pair { first, second, watch } = Pair::start(cluster).await;
    let start = Instant::now();
    for replica in [&first, &second] {
        replica.kill_containers();
    }
    finish(cluster, "both pods restarted", (first, second), watch, start).await;
}

/// If the API server is unavailable for a minute, no pod serves at the end of it, and one does after the recovery.
pub(crate) async fn apiserver_unavailable(scene: &Scene<'_>) {
    let cluster = scene.cluster;
    let Pair { first, second, watch } = Pair::start(cluster).await;
    let (one, other) = (first.socket(), second.socket());
    let checks = async {
        sleep(Duration::from_secs(55)).await;
        for socket in [&one, &other] {
            assert!(!is_serving(socket).await, "a leader without a Lease");
        }
    };
    let minute = Duration::from_secs(60);
    tokio::join!(cluster.plane.restart_apiserver_after(minute), checks);
    let title = "after the recovery of the API server";
    finish(cluster, title, (first, second), watch, Instant::now()).await;
}

/// Waits until one of the pods serves, within [`MAX_CRASHED`] of `start`, and keeps it running as the only pod.
async fn finish(
    cluster: &Cluster,
    title: &str,
    (first, second): (Replica, Replica),
    watch: ServingWatch,
    start: Instant,
) {
    let (one, other) = (first.socket(), second.socket());
    let elapsed = tokio::select! {
        elapsed = serves(&one, start) => elapsed,
        elapsed = serves(&other, start) => elapsed,
    };
    println!("{title}: {:.1} s", elapsed.as_secs_f64());
    assert!(elapsed <= MAX_CRASHED, "{elapsed:?}");
    let leader = until("there is a leader", async || cluster.leader().await).await;
    let (leader, standby) = match first.name == leader {
        true => (first, second),
        false => (second, first),
    };
    standby.stop().await;
    watch.check();
    *cluster.replica.lock().await = Some(leader);
}

/// Waits until Probe on the socket reports ready, and returns the time since `start`.
async fn serves(socket: &Path, start: Instant) -> Duration {
    until("the pod serves", async || is_serving(socket).await.then_some(())).await;
    start.elapsed()
}

async fn is_serving(socket: &Path) -> bool {
    let probe = async {
        let channel = try_connect(socket).await?;
        let response = IdentityClient::new(channel).probe(ProbeRequest {}).await;
        Some(response.ok()?.into_inner().ready == Some(true))
    };
    let response = timeout(Duration::from_secs(1), probe).await;
    response.ok().flatten().unwrap_or(false)
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
                // The first pod is probed again, because the hand-over may happen between the two probes.
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
