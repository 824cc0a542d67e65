//! The controller counts the orphans that the command reports.

use crate::common::wait::until;
use crate::http_client::{address, get};
use crate::kubernetes::orphans::fixture::Fixture;
use crate::running::{HTTP, SOON};

#[tokio::test]
async fn the_controller_counts_unused_disks_by_class_and_size() {
    let fixture = Fixture::new().await;
    let [used, released] = fixture.disks().await;
    fixture.volume("used", &used, "Bound");
    fixture.volume("released", &released, "Released");
    fixture.volume("gone", "d-gone", "Bound");
    let (controller, _) = fixture.kit.ready(&["--metrics-orphans-interval=10s", HTTP]).await;
    let http = address(&controller).await;
    let metrics = until("orphans are counted", SOON, async || {
        let metrics = get(&http, "/metrics").await.text;
        metrics.contains("diskplugin_orphans{").then_some(metrics)
    })
    .await;
    let samples = metrics.lines().filter(|line| line.starts_with("diskplugin_orphans"));
    let mut samples: Vec<_> = samples.collect();
    samples.sort_unstable();
    let bytes = 20_u64 << 30;
    let expected = [
        r#"diskplugin_orphans_capacity_bytes{class="missing",kind="disk"} 0"#.to_owned(),
        format!(r#"diskplugin_orphans_capacity_bytes{{class="released",kind="disk"}} {bytes}"#),
        r#"diskplugin_orphans{class="missing",kind="disk"} 1"#.to_owned(),
        r#"diskplugin_orphans{class="released",kind="disk"} 1"#.to_owned(),
    ];
    assert_eq!(samples, expected);
}
