//! `diskplugin doctor` reports problems, and changes nothing.

use std::time::Duration;

use ::ecs::CreateDisk;
use diskplugin::base::Deadline;
use diskplugin::model::{ClientToken, Tags};
use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::common::ecs;
use crate::common::fake::{Fake, KEY, SECRET, ZONE};
use crate::common::process::{Start, diskplugin};
use crate::kubernetes::kit::config;
use crate::running::NO_METADATA;
use crate::text::{assert_has, assert_lacks};

const OK: i32 = 0;
const FAILED: i32 = 1;

/// A fake cloud with a disk, as every account with an instance has one.
async fn cloud(flags: &[&str]) -> Fake {
    let fake = Fake::start(flags).await;
    let disk = CreateDisk {
        zone: "cn-beijing-a".parse().ok(),
        ..ecs::disk(Tags::new(), ClientToken::derive("test", []))
    };
    let deadline = Deadline::after(Duration::from_secs(30));
    let client = ecs::client(&fake);
    client.create_disk(deadline, &disk).await.unwrap();
    fake
}

/// The checks of the cloud at this URL, without credentials.
fn doctor(url: &str) -> Start {
    diskplugin(["doctor", "--scope=cloud", "--output=json", "--region=cn-beijing"])
        .args([format!("--ecs-endpoint={url}")])
        .args([NO_METADATA])
}

/// The report of a run that ends with this code.
async fn report(start: Start, code: i32) -> Value {
    let ended = start.ended().await;
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert_lacks(&format!("{}{}", ended.stdout, ended.stderr), &[SECRET, KEY]);
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"))
}

/// The check with this name.
fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is missing: {report}"))
}

const ANY: (&str, &str) = ("found", "");

/// Asserts the status of a check, and a part of one of its fields.
#[track_caller]
fn assert_check(report: &Value, name: &str, status: &str, (field, part): (&str, &str)) {
    let check = check(report, name);
    assert_eq!(check["status"], status, "{report}");
    assert_has(&check[field].to_string(), &[part]);
}

#[tokio::test]
async fn a_working_cloud_has_no_failed_check_and_is_not_changed() {
    let fake = cloud(&[]).await;
    let before = fake.control("state").await;
    let earlier = fake.calls().await.len();
    let report = report(doctor(&fake.url).args([format!("--zone={ZONE}")]).keys(), OK).await;
    for name in [
        "cloud/credentials",
        "cloud/clock",
        "cloud/api",
        "cloud/zone",
        "cloud/stock/cn-beijing-b",
        "cloud/permission/ecs:DescribeDisks",
    ] {
        assert_check(&report, name, "ok", ANY);
    }
    assert_check(&report, "cloud/permission/ecs:CreateDisk", "skipped", ANY);
    // No write names a resource that exists.
    let state = before.to_string();
    for call in &fake.calls().await[earlier..] {
        let params = call["params"].as_object().unwrap().iter();
        let is_read = call["action"].as_str().unwrap().starts_with("Describe");
        for (name, value) in params.filter(|(name, _)| !is_read && name.contains("Id")) {
            let id = value.as_str().unwrap();
            let is_region = name == "RegionId";
            assert!(is_region || !state.contains(&format!("\"{id}\"")), "{call}");
        }
    }
    let after = fake.control("state").await;
    for part in ["disks", "snapshots", "groups", "tasks", "instances"] {
        assert_eq!(before[part], after[part], "{part}");
    }
}

#[tokio::test]
async fn every_action_of_the_policy_is_checked_and_a_denied_one_is_named() {
    let fake = cloud(&[]).await;
    let policy = include_str!("../../deploy/ram-policies/controller.json");
    let policy: Value = serde_json::from_str(policy).unwrap();
    for action in policy["Statement"][0]["Action"].as_array().unwrap() {
        let action = action.as_str().unwrap();
        let denied = action.trim_start_matches("ecs:");
        fake.configure(json!({"denied": [denied]})).await;
        // For optional objects, an empty list is not distinguished from a denied one.
        let is_ambiguous = ["DescribeSnapshots", "DescribeSnapshotGroups", "DescribeTasks"].contains(&denied);
        // Without them, a feature is missing.
        let is_optional = denied.contains("Snapshot")
            || denied.contains("Modify")
            || ["DescribeAvailableResource", "DescribeDisksFullStatus"].contains(&denied);
        let (status, code) = match (is_ambiguous, is_optional) {
            (true, _) => ("skipped", OK),
            (false, true) => ("warning", OK),
            (false, false) => ("failed", FAILED),
        };
        let report = report(doctor(&fake.url).keys(), code).await;
        let advice = if is_ambiguous { ANY } else { ("todo", action) };
        assert_check(&report, &format!("cloud/permission/{action}"), status, advice);
        // No other check fails.
        assert_eq!(report["counts"]["failed"], u64::from(status == "failed"), "{report}");
    }
}

#[tokio::test]
async fn the_right_to_list_disks_is_verified_without_disks() {
    let fake = Fake::start(&[]).await;
    // The last one is an API without dry runs.
    let no_rows = json!([{"action": "DescribeDisks", "times": 1000, "kind": "no-rows"}]);
    for (config, code, status, advice) in [
        (json!({"denied": []}), OK, "ok", ANY),
        (json!({"denied": ["DescribeDisks"]}), FAILED, "failed", ANY),
        (
            json!({"denied": [], "faults": no_rows}),
            OK,
            "warning",
            ("todo", "ecs:DescribeDisks is granted"),
        ),
    ] {
        fake.configure(config).await;
        let report = report(doctor(&fake.url).keys(), code).await;
        assert_check(&report, "cloud/permission/ecs:DescribeDisks", status, advice);
    }
}

#[tokio::test]
async fn an_unreachable_api_server_is_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = dir.path().join("kubeconfig");
    std::fs::write(&kubeconfig, config("http://127.0.0.1:9")).unwrap();
    let start = diskplugin(["doctor", "--scope=cluster", "--output=json"]);
    let start = start.args([format!("--kubeconfig={}", kubeconfig.display())]);
    assert_check(&report(start, FAILED).await, "cluster/access", "failed", ANY);
}

#[tokio::test]
async fn missing_or_wrong_credentials_and_an_unreachable_api_are_failures() {
    let fake = cloud(&[]).await;
    let wrong_key = doctor(&fake.url).keys().env("ACCESS_KEY_SECRET", "wrong");
    let report_ = report(wrong_key, FAILED).await;
    assert_check(&report_, "cloud/api", "failed", ("found", "SignatureDoesNotMatch"));
    assert_check(&report_, "cloud/permissions", "skipped", ANY);
    let unreachable = "http://127.0.0.1:9";
    assert_check(
        &report(doctor(unreachable), FAILED).await,
        "cloud/credentials",
        "failed",
        ANY,
    );
    assert_check(
        &report(doctor(unreachable).keys(), FAILED).await,
        "cloud/api",
        "failed",
        ("found", unreachable),
    );
}

#[tokio::test]
async fn a_zone_of_another_region_fails_and_an_empty_zone_warns() {
    let fake = cloud(&["--out-of-stock=cn-beijing-b/*"]).await;
    let of_region = report(doctor(&fake.url).keys(), OK).await;
    assert_check(&of_region, "cloud/stock/cn-beijing-b", "warning", ANY);
    let other = report(doctor(&fake.url).args(["--zone=cn-hangzhou-h"]).keys(), FAILED).await;
    assert_check(&other, "cloud/zone", "failed", ("todo", "cn-beijing-b"));
    assert_check(&other, "cloud/permission/ecs:DescribeAvailableResource", "ok", ANY);
}

#[tokio::test]
async fn a_skewed_clock_fails() {
    let server = MockServer::start().await;
    let response = ResponseTemplate::new(400)
        .insert_header("date", "Fri, 02 Jan 2026 03:04:05 GMT")
        .set_body_json(json!({"Code": "InvalidTimeStamp.Expired", "Message": "expired", "RequestId": "R"}));
    Mock::given(any()).respond_with(response).mount(&server).await;
    let report = report(doctor(&server.uri()).keys(), FAILED).await;
    assert_check(&report, "cloud/clock", "failed", ("todo", "NTP"));
}

#[tokio::test]
async fn the_programs_check_the_node_by_the_same_names() {
    let dir = tempfile::tempdir().unwrap();
    let node = Start::of(env!("CARGO_BIN_EXE_diskplugin-node")).args(["doctor"]);
    let whole = diskplugin(["doctor", "--scope=node"]);
    let mut names = Vec::new();
    for start in [node, whole] {
        let (kubelet, state) = (dir.path().join("none"), dir.path().join("state"));
        let start = start.args([format!("--kubelet-dir={}", kubelet.display())]);
        let start = start.args([format!("--state-dir={}", state.display())]);
        let report = report(start.args(["--output=json"]), FAILED).await;
        assert_check(&report, "node/mounts", "failed", ("found", "--kubelet-dir"));
        assert_check(&report, "node/state", "ok", ANY);
        let checks = report["checks"].as_array().unwrap().iter();
        names.push(checks.map(|check| check["name"].clone()).collect::<Vec<_>>());
    }
    assert_eq!(names[0], names[1]);
}
