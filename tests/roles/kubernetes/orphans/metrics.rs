//! The controller counts what the command reports.

use std::time::Duration;

use crate::common::wait::until;
use crate::kubernetes::http_access::{address, client, get};
use crate::kubernetes::orphans::fixture::Fixture;

/// The first count is after the interval, and waits for the lag of the cloud's reads.
const COUNTED: Duration = Duration::from_secs(60);

#[tokio::test]
async fn the_controller_counts_unused_disks_by_class_and_size() {
    let fixture = Fixture::new().await;
    let (used, released) = (fixture.disk(Some("c-test")).await, fixture.disk(Some("c-test")).await);
    fixture.volume("used", &used, "Bound");
    fixture.volume("released", &released, "Released");
    fixture.volume("gone", "d-gone", "Bound");
    let flags = ["--metrics-orphans-interval=10s", "--http-address=127.0.0.1:0"];
    let (controller, _) = fixture.kit.ready(&flags).await;
    let url = format!("http://{}/metrics", address(&controller).await);
    let client = client().build().unwrap();
    let metrics = until("orphans are counted", COUNTED, async || {
        let (_, metrics) = get(&client, &url, None).await;
        metrics.contains("diskplugin_orphans{").then_some(metrics)
    })
    .await;
    let samples: Vec<_> = metrics
        .lines()
        .filter(|line| line.starts_with("diskplugin_orphans"))
        .collect();
    let bytes = 20_u64 << 30;
    let expected = [
        r#"diskplugin_orphans_capacity_bytes{class="missing",kind="disk"} 0"#.to_owned(),
        format!(r#"diskplugin_orphans_capacity_bytes{{class="released",kind="disk"}} {bytes}"#),
        r#"diskplugin_orphans{class="missing",kind="disk"} 1"#.to_owned(),
        r#"diskplugin_orphans{class="released",kind="disk"} 1"#.to_owned(),
    ];
    let mut samples: Vec<_> = samples.into_iter().map(str::to_owned).collect();
    samples.sort_unstable();
    assert_eq!(samples, expected);
}
