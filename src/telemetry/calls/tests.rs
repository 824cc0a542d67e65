use ecs::span;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tracing::field::Empty;
use tracing_subscriber::layer::SubscriberExt;

use super::*;

/// A call with this method and disk, one phase, and one cloud call with this code.
fn make_call(method: &str, disk: &str, code: &str) {
    let rpc = tracing::info_span!(
        target: rpc::TARGET,
        "rpc",
        rpc.method = method,
        rpc.code = Empty,
        rpc.message = Empty,
        disk.id = Empty
    );
    let _entered = rpc.enter();
    rpc.record("disk.id", disk);
    let phase = tracing::info_span!(target: span::TARGET, "phase", phase = "poll");
    drop(phase.entered());
    let attempt = span::cloud_call("AttachDisk");
    attempt.record(span::CODE_FIELD, code);
    attempt.record(span::REQUEST_ID_FIELD, format!("R-{disk}"));
    attempt.record(span::THROTTLED_FIELD, code == "Throttling");
    drop(attempt);
    rpc.record(rpc::CODE_FIELD, "Unavailable");
}

fn encoded(telemetry: &Telemetry) -> String {
    let mut registry = Registry::default();
    telemetry.metrics.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text
}

#[tokio::test]
async fn a_call_is_measured_with_its_phase_and_its_cloud_call() {
    let telemetry = Telemetry::default();
    let subscriber = tracing_subscriber::registry().with(telemetry.clone());
    tracing::subscriber::with_default(subscriber, || {
        make_call("ControllerPublishVolume", "d-1", "Throttling");
    });
    let text = encoded(&telemetry);
    for sample in [
        r#"rpc_duration_seconds_count{method="ControllerPublishVolume",code="Unavailable"} 1"#,
        r#"rpcs_in_flight{method="ControllerPublishVolume"} 0"#,
        r#"rpc_phase_duration_seconds_count{method="ControllerPublishVolume",phase="poll"} 1"#,
        r#"cloud_call_duration_seconds_count{action="AttachDisk",code="Throttling"} 1"#,
        r#"cloud_calls_throttled_total{action="AttachDisk"} 1"#,
        r#"# {request_id="R-d-1"}"#,
    ] {
        assert!(text.contains(sample), "no {sample}\n{text}");
    }
    assert!(telemetry.timelines.history("d-1").is_some());
}

#[tokio::test]
async fn a_call_that_fails_otherwise_does_not_count_as_throttled() {
    let telemetry = Telemetry::default();
    let subscriber = tracing_subscriber::registry().with(telemetry.clone());
    tracing::subscriber::with_default(subscriber, || make_call("CreateVolume", "d-1", "IncorrectDiskStatus"));
    let text = encoded(&telemetry);
    assert!(!text.contains("cloud_calls_throttled_total{"), "{text}");
}

#[tokio::test]
async fn the_number_of_series_does_not_grow_with_volumes_methods_or_codes() {
    let telemetry = Telemetry::default();
    let subscriber = tracing_subscriber::registry().with(telemetry.clone());
    tracing::subscriber::with_default(subscriber, || {
        for number in 0..10_000 {
            let disk = format!("d-{number}");
            make_call("ControllerPublishVolume", &disk, "Throttling");
        }
    });
    let before = encoded(&telemetry).lines().count();
    assert!(before < 100, "{before} lines for one method and one code");
    let subscriber = tracing_subscriber::registry().with(telemetry.clone());
    tracing::subscriber::with_default(subscriber, || {
        for number in 0..1_000 {
            make_call(&format!("Method{number}"), "d-1", &format!("Code{number}"));
        }
    });
    let text = encoded(&telemetry);
    assert!(text.contains(r#"method="other""#) && text.contains(r#"code="other""#));
    assert!(!text.contains("Method999") && !text.contains("Code999"));
    // 64 methods and 64 codes, with their buckets.
    assert!(text.lines().count() < 64 * 60, "{}", text.lines().count());
}
