//! `/metrics` and `/debug/volumes`.

use std::collections::BTreeSet;

use diskplugin::telemetry::catalog::METRICS;
use serde_json::Value;

use crate::common::csi::{create, endpoint, publish, socket};
use crate::common::fake::{KEY, NODES, SECRET};
use crate::common::process::diskplugin;
use crate::http_client::{address, get};
use crate::served::Served;

/// The values of the samples whose name and labels begin with the text.
fn values(metrics: &str, start: &str) -> Vec<f64> {
    let samples = metrics.lines().filter(|line| line.starts_with(start));
    samples
        .map(|line| {
            let sample = line.split(" # ").next().unwrap();
            sample.rsplit(' ').next().unwrap().parse().unwrap()
        })
        .collect()
}

/// The names of the metric families.
fn families(metrics: &str) -> BTreeSet<&str> {
    let types = metrics.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    types.map(|line| line.split(' ').next().unwrap()).collect()
}

fn check_format(metrics: &str) {
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    let known: BTreeSet<String> = METRICS.iter().map(|one| one.full_name()).collect();
    for family in families(metrics) {
        assert!(known.contains(family), "{family} is not in the catalog");
    }
    for hidden in [KEY, SECRET] {
        assert!(!metrics.contains(hidden), "{metrics}");
    }
}

#[tokio::test]
async fn the_controller_reports_calls_phases_and_quotas() {
    let served = Served::start(&[], &[]).await;
    let (http, channel) = (&served.http, &served.channel);
    let volume = create(channel, "pvc-1").await.unwrap();
    publish(channel, &volume, NODES[0]).await.unwrap();
    publish(channel, "d-missing", NODES[0]).await.unwrap_err();

    let metrics = get(http, "/metrics").await.text;
    check_format(&metrics);
    for (sample, expected) in [
        (
            r#"diskplugin_rpc_duration_seconds_count{method="CreateVolume",code="OK"}"#,
            1.0,
        ),
        (
            r#"diskplugin_rpc_duration_seconds_count{method="ControllerPublishVolume",code="OK"}"#,
            1.0,
        ),
        (
            r#"diskplugin_rpc_duration_seconds_count{method="ControllerPublishVolume",code="NotFound"}"#,
            1.0,
        ),
        (r#"diskplugin_rpcs_in_flight{method="CreateVolume"}"#, 0.0),
        (
            r#"diskplugin_cloud_call_duration_seconds_count{action="CreateDisk",code="OK"}"#,
            1.0,
        ),
        (
            r#"diskplugin_cloud_call_duration_seconds_count{action="AttachDisk",code="OK"}"#,
            1.0,
        ),
    ] {
        assert_eq!(values(&metrics, sample), [expected], "{sample}\n{metrics}");
    }
    let poll = r#"diskplugin_rpc_phase_duration_seconds_count{method="CreateVolume",phase="poll"}"#;
    assert!(values(&metrics, poll)[0] >= 1.0, "{metrics}");
    let calls = served.fake.calls().await;
    let creates = calls.iter().find(|call| call["action"] == "CreateDisk").unwrap();
    let id = creates["requestId"]
        .as_str()
        .or(creates["request_id"].as_str())
        .unwrap();
    let exemplar = format!("request_id=\"{id}\"");
    assert!(metrics.contains(&exemplar), "no {exemplar}\n{metrics}");
}

#[tokio::test]
async fn the_history_of_a_volume_has_its_calls_with_request_ids() {
    let served = Served::start(&[], &[]).await;
    let (http, channel) = (&served.http, &served.channel);
    let volume = create(channel, "pvc-1").await.unwrap();
    publish(channel, &volume, NODES[0]).await.unwrap();
    let error = publish(channel, &volume, NODES[1]).await.unwrap_err();

    let by_name = get(http, "/debug/volumes/pvc-1").await.text;
    let by_id = get(http, &format!("/debug/volumes/{volume}")).await.text;
    assert_eq!(by_name, by_id);
    let history: Value = serde_json::from_str(&by_id).unwrap();
    let calls = history["calls"].as_array().unwrap();
    let methods: Vec<_> = calls.iter().map(|call| call["method"].as_str().unwrap()).collect();
    let publish = "ControllerPublishVolume";
    assert_eq!(methods, ["CreateVolume", publish, publish]);
    let creates = calls[0]["steps"].as_array().unwrap();
    let create = creates.iter().find(|step| step["name"] == "CreateDisk").unwrap();
    assert!(
        create["request_id"].is_string() && create["seconds"].is_number(),
        "{create}"
    );
    assert_eq!(calls[1]["node"], NODES[0]);
    assert_eq!(calls[2]["message"], error.message());
    assert_eq!(calls[2]["code"], "FailedPrecondition");

    let all: Value = serde_json::from_str(&get(http, "/debug/volumes").await.text).unwrap();
    assert_eq!(all["volumes"][0]["volume"], volume);
    let missing = get(http, "/debug/volumes/d-other").await;
    assert_eq!(missing.status, 404, "{missing:?}");
}

#[tokio::test]
async fn a_node_reports_its_limit_and_its_calls() {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let state = format!("--state-dir={}", dir.path().display());
    let start = diskplugin([
        "node",
        "--zone=cn-beijing-b",
        "--node-id=i-1",
        "--http-address=127.0.0.1:0",
        "--max-volumes-per-node=7",
        &state,
        &endpoint(&socket),
    ]);
    let (node, _) = start.ready(&socket).await;
    let http = address(&node).await;
    let metrics = get(&http, "/metrics").await.text;
    check_format(&metrics);
    assert_eq!(
        values(&metrics, "diskplugin_node_volume_limit{source=\"setting\"}"),
        [7.0]
    );
    assert_eq!(values(&metrics, "diskplugin_node_volumes_free"), [7.0], "{metrics}");
    assert_eq!(values(&metrics, "diskplugin_node_volumes_staged"), [0.0]);
    assert!(metrics.contains("role=\"node\""), "{metrics}");
}
