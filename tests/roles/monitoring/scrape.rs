//! Prometheus scrapes the driver, evaluates the alerts and has data for the dashboards. This also checks the format of
//! `/metrics`: `promtool check metrics` reads the older text format, which has neither exemplars nor info metrics.

use std::collections::BTreeSet;
use std::time::Duration;

use diskplugin::telemetry::catalog::METRICS;

use crate::common::machine::has_devices;
use crate::common::wait::until;
use crate::monitoring::driver::Driver;
use crate::monitoring::files::{Panel, alerts, dashboards};
use crate::monitoring::prometheus::Prometheus;
use crate::monitoring::promtool::is_installed;
use crate::monitoring::report;
use crate::running::{SOON, wait};

/// How many volumes come and go: each histogram needs increases between two scrapes.
const ROUNDS: u32 = 4;

/// Panels without data, and why.
const WITHOUT_DATA: [&str; 5] = [
    // Leader election and the count of unused disks require an API server.
    "controller: Leader",
    "controller: Unused disks and snapshots",
    "controller: Size of unused disks and snapshots",
    // The access key of the fake cloud is permanent.
    "controller: Credentials",
    // The volumes are healthy.
    "volume: Health issues",
];

/// A query as Grafana sends it with all variables at "All".
pub(crate) fn without_variables(query: &str) -> String {
    let query = query.replace("$__rate_interval", "4s");
    let names = ["namespace", "release", "node", "disk_id"];
    let query = names
        .iter()
        .fold(query, |query, name| query.replace(&format!("\"${name}\""), "\".*\""));
    assert!(!query.contains('$'), "an unknown variable: {query}");
    query
}

async fn data(prometheus: &Prometheus, panel: &Panel) -> Result<usize, String> {
    let mut count = 0;
    for query in &panel.queries {
        let query = without_variables(query);
        let values = match panel.is_instant {
            true => prometheus.instant(&query).await,
            false => prometheus.range(&query).await,
        };
        count += values.map_err(|error| format!("{}: {error}: {query}", panel.at))?.len();
    }
    Ok(count)
}

async fn check_targets(prometheus: &Prometheus) {
    wait("both targets are scraped", async || {
        let targets = prometheus.get("targets", &[]).await.unwrap();
        let active = targets["activeTargets"].as_array().unwrap();
        for target in active {
            assert_eq!(target["lastError"], "", "{target}");
        }
        active.iter().filter(|target| target["health"] == "up").count() == 2
    })
    .await;
}

/// Types and meanings arrive as the catalog has them.
async fn check_metadata(prometheus: &Prometheus) {
    // Without samples, for the reasons of WITHOUT_DATA.
    let expected = "credentials_remaining_seconds leader orphans orphans_capacity_bytes volume_unhealthy";
    let expected: BTreeSet<_> = expected.split(' ').map(|name| format!("diskplugin_{name}")).collect();
    let metadata = until("all other metrics are scraped", SOON, async || {
        let metadata = prometheus.get("metadata", &[]).await.unwrap();
        let names = METRICS.iter().map(|metric| metric.full_name());
        let missing: BTreeSet<_> = names.filter(|name| metadata.get(name).is_none()).collect();
        println!("without metadata: {missing:?}");
        (missing == expected).then_some(metadata)
    })
    .await;
    report(METRICS.iter().filter_map(|metric| {
        let name = metric.full_name();
        let found = metadata.get(&name)?;
        let same = found[0]["type"] == metric.kind() && found[0]["help"].as_str()?.starts_with(metric.help);
        (!same).then(|| format!("{name}: {found}"))
    }));
}

async fn check_alerts(prometheus: &Prometheus) {
    let rules = prometheus.get("rules", &[]).await.unwrap();
    let groups = rules["groups"].as_array().unwrap().iter();
    let rules: Vec<_> = groups.flat_map(|group| group["rules"].as_array().unwrap()).collect();
    let names: BTreeSet<_> = rules.iter().map(|rule| rule["name"].as_str().unwrap()).collect();
    let alerts = alerts();
    let expected: BTreeSet<_> = alerts.iter().map(|alert| alert.name.as_str()).collect();
    assert_eq!(names, expected);
    report(rules.iter().filter_map(|rule| {
        let fine = rule["health"] == "ok" && rule.get("lastError").is_none_or(|it| it == "");
        (!fine).then(|| rule.to_string())
    }));
    // It lasts for less than the 10 minutes after which it would fire.
    let state = |name: &str| &rules.iter().find(|rule| rule["name"] == name).unwrap()["state"];
    assert_eq!(state("DiskPluginOutOfStock"), "pending");
    assert_eq!(state("DiskPluginNodeDown"), "inactive");
}

async fn check_panels(prometheus: &Prometheus) {
    let mut problems = Vec::new();
    let mut empty = BTreeSet::new();
    for panel in dashboards().iter().flat_map(|board| board.panels()) {
        match data(prometheus, &panel).await {
            Err(error) => problems.push(error),
            Ok(0) => {
                empty.insert(panel.at);
            }
            Ok(_) => {}
        }
    }
    let expected: BTreeSet<_> = WITHOUT_DATA.map(str::to_owned).into();
    let unexpected = empty.difference(&expected);
    problems.extend(unexpected.map(|at| format!("{at}: no data")));
    let obsolete = expected.difference(&empty);
    problems.extend(obsolete.map(|at| format!("{at} has data: remove it from WITHOUT_DATA")));
    report(problems);
}

/// A RequestId leads from a slow cloud call to the support of the cloud.
async fn check_exemplars(prometheus: &Prometheus) {
    let query = "diskplugin_cloud_call_duration_seconds_bucket";
    let parameters = [("query", query), ("start", "0"), ("end", "9999999999")];
    let exemplars = prometheus.get("query_exemplars", &parameters).await.unwrap();
    assert!(exemplars.to_string().contains("request_id"), "{exemplars}");
}

#[tokio::test]
async fn prometheus_has_data_for_every_panel_and_evaluates_every_alert() {
    let test = "the scrape of the driver";
    if !is_installed(test).await || !has_devices(test).await {
        return;
    }
    let driver = Driver::start().await;
    let prometheus = Prometheus::start(&driver.http).await;
    check_targets(&prometheus).await;
    let kept = driver.stage("kept").await;
    for round in 0..ROUNDS {
        let id = driver.stage(&format!("round-{round}")).await;
        driver.fail(&format!("failed-{round}")).await;
        driver.write(&kept).await;
        driver.delete(&id).await;
        // The next scrape.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    driver.exceed_the_quota("more").await;
    wait("the disks are listed", async || {
        let listed = prometheus.instant("diskplugin_node_attachments_used").await;
        !listed.unwrap().is_empty()
    })
    .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    check_targets(&prometheus).await;
    check_metadata(&prometheus).await;
    check_alerts(&prometheus).await;
    check_panels(&prometheus).await;
    check_exemplars(&prometheus).await;
    driver.delete(&kept).await;
    driver.stop().await;
}
