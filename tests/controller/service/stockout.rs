//! Claims of zones and categories that are out of stock: one shared probe, and no effect on other claims.

use diskplugin::csi::proto::controller_server::ControllerServer;

use crate::common::sidecar::{Port, RetryPolicy, Sidecar};
use crate::service::kit::*;

/// The default retries of external-provisioner, with a shorter first pause.
const RETRIES: RetryPolicy = RetryPolicy {
    timeout: Duration::from_secs(150),
    initial: Duration::from_millis(100),
    max: Duration::from_secs(300),
    total: Duration::from_secs(3600),
};

fn sidecar(stage: &Stage) -> Sidecar {
    let service = ControllerServer::new(stage.service.clone());
    Sidecar::new(Port::InProcess(service), RETRIES)
}

fn claim(name: &str, zone: &str, categories: &str) -> CreateVolumeRequest {
    CreateVolumeRequest {
        parameters: parameters(&[("type", categories)]),
        accessibility_requirements: Some(topology(zone, zone)),
        ..new_volume(name)
    }
}

/// Starts the claims; the duration of each.
fn start(stage: &Stage, claims: impl Iterator<Item = CreateVolumeRequest>) -> JoinSet<Duration> {
    let sidecar = sidecar(stage);
    claims
        .map(|claim| {
            let sidecar = sidecar.clone();
            async move {
                let start = Instant::now();
                sidecar
                    .call_until_success(&claim, |status| {
                        assert!(
                            matches!(status.code(), Code::ResourceExhausted | Code::Unavailable),
                            "{status}"
                        );
                    })
                    .await;
                start.elapsed()
            }
        })
        .collect()
}

/// The established process of a cluster with a disk, for which a refusal can be final.
async fn established(flags: &[&str]) -> Stage {
    let stage = Stage::new(flags);
    stage.volume("first").await;
    sleep(300).await;
    stage
}

#[tokio::test(start_paused = true)]
async fn fifty_claims_of_two_sold_out_pairs_share_one_probe_per_pair() {
    let stage = established(&["--latency=100ms"]).await;
    stage.configure(&json!({"out_of_stock": ["cn-beijing-b/*"]}));
    stage.cloud.clear_calls();
    let names = (0..50).map(|n| format!("pvc-{n}"));
    let claims = names.map(|name| claim(&name, "b", "cloud_essd,cloud_ssd"));
    let mut claims = start(&stage, claims);
    sleep(30).await;
    // No request for a pair is sent after the first response about it.
    for category in ["cloud_essd", "cloud_ssd"] {
        let calls = stage.cloud.calls();
        let requests = calls.iter().filter(|call| call.action == "CreateDisk");
        let sent = requests.filter(|call| call.params["DiskCategory"] == category);
        let sent: Vec<_> = sent.map(|call| call.at).collect();
        let response = sent[0] + Duration::from_millis(100);
        assert!(sent.iter().all(|at| *at < response), "{category}: {sent:?}");
    }
    assert!(stage.calls("DescribeAvailableResource") <= 1);
    for minute in 1..20 {
        stage.cloud.clear_calls();
        sleep(60).await;
        // A probe can need two requests, because an earlier rejection consumed its token.
        let calls = stage.calls("CreateDisk");
        assert!(calls <= 2 * 2 * 2, "minute {minute}: {calls}");
        // Each name is searched once.
        let reads = stage.calls("DescribeDisks");
        assert!(minute == 1 || reads <= 16, "minute {minute}: {reads}");
    }
    stage.configure(&json!({"out_of_stock": []}));
    let restocked = Instant::now();
    while claims.join_next().await.is_some() {}
    assert!(restocked.elapsed() <= Duration::from_secs(660));
    assert_eq!(stage.disks().len(), 51);
}

/// The longest creation of ten claims in zone a, ten seconds after `sold_out` claims in zone b.
async fn healthy(sold_out: usize) -> Duration {
    let flags = ["--out-of-stock=cn-beijing-b/*", "--throttle=CreateDisk=60"];
    let stage = established(&flags).await;
    let claims = (0..sold_out).map(|n| claim(&format!("sold-out-{n}"), "b", "cloud_essd"));
    let _sold_out = start(&stage, claims);
    sleep(10).await;
    let claims = (0..10).map(|n| claim(&format!("pvc-{n}"), "a", "cloud_essd"));
    let durations = start(&stage, claims).join_all().await;
    durations.into_iter().max().unwrap()
}

#[tokio::test(start_paused = true)]
async fn sixty_sold_out_claims_under_a_quota_do_not_delay_claims_of_another_zone() {
    let alone = healthy(0).await;
    let beside = healthy(60).await;
    assert!(
        beside <= alone + Duration::from_secs(2),
        "{beside:?} instead of {alone:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_claim_is_created_in_the_category_in_stock_without_waiting_for_a_probe() {
    let stage = established(&["--out-of-stock=cn-beijing-b/cloud_essd"]).await;
    let names = (0..50).map(|n| format!("pvc-{n}"));
    let claims = names.map(|name| claim(&name, "b", "cloud_essd,cloud_ssd"));
    stage.cloud.clear_calls();
    let durations = start(&stage, claims).join_all().await;
    let longest = durations.into_iter().max().unwrap();
    assert!(longest <= Duration::from_secs(2), "{longest:?}");
    assert!(stage.calls("CreateDisk") <= 50 + 16);
}
