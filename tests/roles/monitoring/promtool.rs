//! The rules in Prometheus' own tool.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::common::process::Start;
use crate::common::shell::has;
use crate::monitoring::files::{alerts, dashboards, files_below, read, rules_path};
use crate::monitoring::report;
use crate::monitoring::scrape::without_variables;
use crate::text::assert_has;

/// Whether the programs of Debian's package `prometheus` are installed. Prints the reason if not; fails in CI.
pub(crate) async fn is_installed(test: &str) -> bool {
    let missing = "prometheus and promtool are not installed (scripts/setup test)";
    has(test, "command -v prometheus promtool", missing).await
}

/// Runs promtool on files, which must succeed, and returns its output.
async fn promtool(args: &[&str], files: &[PathBuf]) -> String {
    let files = files.iter().map(|file| file.display().to_string());
    let ended = Start::of("promtool").args(args).args(files).ended().await;
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    ended.stdout
}

/// The same on a file with this content.
async fn promtool_on(args: &[&str], content: &str) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file.yaml");
    std::fs::write(&file, content).unwrap();
    promtool(args, &[file]).await;
}

#[tokio::test]
async fn promtool_accepts_the_rules() {
    if !is_installed("the check of the rules").await {
        return;
    }
    let output = promtool(&["check", "rules", "--lint-fatal"], &[rules_path()]).await;
    assert_has(&output, &[&format!("{} rules found", alerts().len())]);
}

#[tokio::test]
async fn every_alert_fires_when_it_should_and_none_in_a_healthy_cluster() {
    if !is_installed("the unit tests of the alerts").await {
        return;
    }
    promtool(&["test", "rules"], &files_below("tests/roles/monitoring/rules", "yaml")).await;
}

#[tokio::test]
async fn promtool_accepts_the_relabeling_of_the_guide() {
    if !is_installed("the check of the relabeling").await {
        return;
    }
    let page = read("docs/guides/monitoring.md");
    let (_, rest) = page.split_once("```yaml\nscrape_configs:\n").unwrap();
    let shown = rest.split("```").next().unwrap();
    // Debian's build has no discovery in Kubernetes.
    let (job, discovery) = shown.split_once("    kubernetes_sd_configs:").unwrap();
    let (_, relabeling) = discovery.split_once("    relabel_configs:").unwrap();
    let configuration = format!("scrape_configs:\n{job}    relabel_configs:{relabeling}");
    promtool_on(&["check", "config"], &configuration).await;
}

/// Each release has two replicas that list the disks at different times: only the newer listing counts. One release has
/// no label `release`, and is in another namespace.
#[tokio::test]
async fn panels_add_releases_and_use_the_newest_listing_of_each() {
    if !is_installed("the unit test of the panels").await {
        return;
    }
    let first = r#"namespace="storage", release="first""#;
    let second = r#"namespace="storage", release="second""#;
    let unlabeled = r#"namespace="other""#;
    // Release, pod, time of the listing, state of the disks, their number.
    let pods = [
        (first, "first-0", 1000, "Available", 100),
        (first, "first-1", 1060, "In_use", 100),
        (second, "second-0", 900, "In_use", 7),
        (second, "second-1", 870, "Available", 6),
        (unlabeled, "first-0", 500, "In_use", 3),
        // The same second as the other replica.
        (unlabeled, "first-1", 500, "In_use", 3),
    ];
    let series = pods.into_iter().flat_map(|(release, pod, listed, state, disks)| {
        let labels = format!(r#"job="diskplugin-controller", {release}, pod="{pod}""#);
        let disk = format!(r#"{labels}, state="{state}", category="cloud_essd""#);
        [
            (format!("volumes_listed_timestamp_seconds{{{labels}}}"), listed),
            (format!("volumes{{{disk}}}"), disks),
            (format!("volumes_capacity_bytes{{{disk}}}"), disks * 1024),
            (format!(r#"node_attachments_used{{{labels}, node_id="i-1"}}"#), disks),
        ]
    });
    let series: Vec<_> = series
        .map(|(name, value)| json!({"series": format!("diskplugin_{name}"), "values": format!("{value}x10")}))
        .collect();
    let expected = [
        ("Volumes", "{}", 110),
        ("Volumes by state", r#"{state="In_use"}"#, 110),
        ("Capacity by category", r#"{category="cloud_essd"}"#, 110 * 1024),
        ("Attached volumes by instance", r#"{node_id="i-1"}"#, 110),
    ];
    let panels: Vec<_> = dashboards().iter().flat_map(|it| it.panels()).collect();
    let cases = expected.map(|(title, labels, value)| {
        let at = format!("controller: {title}");
        let panel = panels.iter().find(|panel| panel.at == at).unwrap();
        json!({
            "expr": without_variables(&panel.queries[0]),
            "eval_time": "5m",
            "exp_samples": [{"labels": labels, "value": value}],
        })
    });
    let content = json!({
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": cases}],
    });
    promtool_on(&["test", "rules"], &content.to_string()).await;
}

/// Needs no tool.
#[test]
fn every_alert_has_a_unit_test_in_which_it_fires() {
    let mut fired = BTreeSet::new();
    for path in files_below("tests/roles/monitoring/rules", "yaml") {
        let file: Value = serde_saphyr::from_str(&read(path)).unwrap();
        let tests = file["tests"].as_array().unwrap().iter();
        let cases = tests.flat_map(|test| test["alert_rule_test"].as_array().into_iter().flatten());
        let fires = cases.filter(|case| !case["exp_alerts"].as_array().unwrap().is_empty());
        fired.extend(fires.map(|case| case["alertname"].as_str().unwrap().to_owned()));
    }
    let alerts = alerts().into_iter().map(|alert| alert.name);
    let silent = alerts.filter(|name| !fired.contains(name));
    report(silent.map(|name| format!("tests/roles/monitoring/rules: {name} fires in no test")));
}
