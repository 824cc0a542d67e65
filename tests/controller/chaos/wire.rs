//! Over HTTP with the real client, in real time, with its retries and signatures, lost connections and invalid JSON.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use diskplugin::base::{Clock, SystemClock};
use ecs::sign::Scheme;
use fake_ecs::{Cloud, Options};

use crate::chaos::run::{Faults, NODES, run};
use crate::common::ecs::client_at;
use crate::common::sidecar::RetryPolicy;

const VOLUMES: usize = 40;

/// Shorter pauses than those of the charts, in the same proportions.
const RETRY_POLICY: RetryPolicy = RetryPolicy {
    timeout: Duration::from_secs(20),
    initial: Duration::from_millis(250),
    max: Duration::from_secs(5),
    total: Duration::from_mins(2),
};

#[tokio::test]
async fn volumes_survive_faults_and_stale_reads_over_http() {
    let nodes: Vec<_> = (0..NODES).map(|n| format!("i-{n}=cn-beijing-a")).collect();
    let nodes = format!("--nodes={}", nodes.join(","));
    let flags = [
        nodes.as_str(),
        "--create-delay=100ms",
        "--attach-delay=300ms",
        "--detach-delay=300ms",
        "--snapshot-delay=500ms",
    ];
    let options = Options::from_flags(flags).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let cloud = Cloud::start(
        &options,
        Arc::new(fake_ecs::SystemClock),
        Arc::new(fake_ecs::SystemCommands),
        listener,
    );
    let cloud = cloud.await.unwrap();
    let client = client_at(cloud.endpoint().unwrap(), Scheme::V3, Arc::clone(&clock));
    let outcome = run(&cloud, Arc::new(client), clock, (VOLUMES, Faults::Both, RETRY_POLICY)).await;
    println!(
        "over HTTP: {VOLUMES} volumes in {:.1} s, {} cloud calls; {}\n{}",
        outcome.wall.as_secs_f64(),
        outcome.calls,
        outcome.findings.counts(),
        outcome.codes
    );
    assert!(outcome.findings.is_clean(), "{:#?}", outcome.findings);
    cloud.shutdown().await.unwrap();
}
