//! `/metrics` and `/debug/volumes`.

use std::collections::BTreeSet;

use diskplugin::telemetry::catalog::METRICS;

use crate::common::csi::{create, publish};
use crate::common::fake::{KEY, NODES, SECRET};
use crate::running::{HTTP, Running, served};
use crate::text::{assert_has, assert_lacks};

/// The values of the samples whose name and labels begin with the text.
fn values(metrics: &str, start: &str) -> Vec<f64> {
    let samples = metrics.lines().filter(|line| line.starts_with(start));
    let samples = samples.map(|line| line.split(" # ").next().unwrap());
    samples
        .map(|sample| sample.rsplit(' ').next().unwrap().parse().unwrap())
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
    assert_lacks(metrics, &[KEY, SECRET]);
}

#[tokio::test]
async fn the_controller_reports_calls_phases_and_quotas() {
    let (fake, controller) = served(&[], &[]).await;
    let channel = &controller.channel;
    let volume = create(channel, "pvc-1").await.unwrap();
    publish(channel, &volume, NODES[0]).await.unwrap();
    publish(channel, "d-missing", NODES[0]).await.unwrap_err();

    let metrics = controller.get("/metrics").await.text;
    check_format(&metrics);
    for (sample, expected) in [
        (r#"rpc_duration_seconds_count{method="CreateVolume",code="OK"}"#, 1.0),
        (
            r#"rpc_duration_seconds_count{method="ControllerPublishVolume",code="OK"}"#,
            1.0,
        ),
        (
            r#"rpc_duration_seconds_count{method="ControllerPublishVolume",code="NotFound"}"#,
            1.0,
        ),
        (r#"rpcs_in_flight{method="CreateVolume"}"#, 0.0),
        (
            r#"cloud_call_duration_seconds_count{action="CreateDisk",code="OK"}"#,
            1.0,
        ),
        (
            r#"cloud_call_duration_seconds_count{action="AttachDisk",code="OK"}"#,
            1.0,
        ),
    ] {
        let sample = format!("diskplugin_{sample}");
        assert_eq!(values(&metrics, &sample), [expected], "{sample}\n{metrics}");
    }
    let poll = r#"diskplugin_rpc_phase_duration_seconds_count{method="CreateVolume",phase="poll"}"#;
    assert!(values(&metrics, poll)[0] >= 1.0, "{metrics}");
    let calls = fake.calls().await;
    let create = calls.iter().find(|call| call["action"] == "CreateDisk").unwrap();
    let id = create["requestId"].as_str().or(create["request_id"].as_str());
    assert_has(&metrics, &[&format!("request_id=\"{}\"", id.unwrap())]);
}

#[tokio::test]
async fn the_history_of_a_volume_has_its_calls_with_request_ids() {
    let (_fake, controller) = served(&[], &[]).await;
    let channel = &controller.channel;
    let volume = create(channel, "pvc-1").await.unwrap();
    publish(channel, &volume, NODES[0]).await.unwrap();
    let error = publish(channel, &volume, NODES[1]).await.unwrap_err();

    let by_name = controller.get("/debug/volumes/pvc-1").await.text;
    let history = controller.get(&format!("/debug/volumes/{volume}")).await;
    assert_eq!(by_name, history.text);
    let history = history.json();
    let calls = history["calls"].as_array().unwrap();
    let methods: Vec<_> = calls.iter().map(|call| call["method"].as_str().unwrap()).collect();
    let publish = "ControllerPublishVolume";
    assert_eq!(methods, ["CreateVolume", publish, publish]);
    let steps = calls[0]["steps"].as_array().unwrap();
    let create = steps.iter().find(|step| step["name"] == "CreateDisk").unwrap();
    assert!(
        create["request_id"].is_string() && create["seconds"].is_number(),
        "{create}"
    );
    assert_eq!(calls[1]["node"], NODES[0]);
    assert_eq!(calls[2]["message"], error.message());
    assert_eq!(calls[2]["code"], "FailedPrecondition");

    let all = controller.get("/debug/volumes").await.json();
    assert_eq!(all["volumes"][0]["volume"], volume);
    let missing = controller.get("/debug/volumes/d-other").await;
    assert_eq!(missing.status, 404, "{missing:?}");
}

#[tokio::test]
async fn a_node_reports_its_limit_and_its_calls() {
    let dir = tempfile::tempdir().unwrap();
    let state = format!("--state-dir={}", dir.path().display());
    let node = Running::node(&[HTTP, "--max-volumes-per-node=7", &state]).await;
    let metrics = node.get("/metrics").await.text;
    check_format(&metrics);
    for (sample, expected) in [("_limit{source=\"setting\"}", 7.0), ("s_free", 7.0), ("s_staged", 0.0)] {
        let sample = format!("diskplugin_node_volume{sample}");
        assert_eq!(values(&metrics, &sample), [expected], "{metrics}");
    }
    assert_has(&metrics, &["role=\"node\""]);
}
