//! `diskplugin doctor`: names what will not work, and changes nothing.

use std::time::Duration;

use ::ecs::CreateDisk;
use diskplugin::base::Deadline;
use diskplugin::model::{ClientToken, Tags};
use serde_json::{Value, json};
use wiremock::matchers::any;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::common::ecs;
use crate::common::fake::{Fake, KEY, SECRET, ZONE};
use crate::common::process::{Ended, Start, diskplugin};

const OK: Option<i32> = Some(0);
const FAILED: Option<i32> = Some(1);

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
        // Nothing listens there.
        .args(["--metadata-endpoint=http://127.0.0.1:9"])
}

fn document(ended: &Ended) -> Value {
    let printed = format!("{}{}", ended.stdout, ended.stderr);
    for secret in [SECRET, KEY] {
        assert!(!printed.contains(secret), "{printed}");
    }
    serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"))
}

/// The check with this name.
fn check<'a>(document: &'a Value, name: &str) -> &'a Value {
    let checks = document["checks"].as_array().unwrap();
    let found = checks.iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is missing: {document}"))
}

#[tokio::test]
async fn a_working_cloud_has_no_failed_check_and_is_not_changed() {
    let fake = cloud(&[]).await;
    let before = fake.control("state").await;
    let earlier = fake.calls().await.len();
    let ended = doctor(&fake.url).args([format!("--zone={ZONE}")]).keys().ended().await;
    let document = document(&ended);
    assert_eq!(ended.code, OK, "{document}");
    for name in [
        "cloud/credentials",
        "cloud/clock",
        "cloud/api",
        "cloud/zone",
        "cloud/stock/cn-beijing-b",
        "cloud/permission/ecs:DescribeDisks",
    ] {
        assert_eq!(check(&document, name)["status"], "ok", "{document}");
    }
    let create = check(&document, "cloud/permission/ecs:CreateDisk");
    assert_eq!(create["status"], "skipped", "{create}");
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
        let ended = doctor(&fake.url).keys().ended().await;
        let document = document(&ended);
        let row = check(&document, &format!("cloud/permission/{action}"));
        // An empty list of what need not exist is not distinguished from a denied one.
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
        assert_eq!((&row["status"], ended.code), (&json!(status), code), "{row}");
        assert!(is_ambiguous || row["todo"].as_str().unwrap().contains(action), "{row}");
        // The others are not blamed.
        let failed = document["counts"]["failed"].as_u64().unwrap();
        assert_eq!(failed, u64::from(status == "failed"), "{document}");
    }
}

#[tokio::test]
async fn the_right_to_list_disks_is_verified_without_disks() {
    let fake = Fake::start(&[]).await;
    for (denied, status, code) in [(json!([]), "ok", OK), (json!(["DescribeDisks"]), "failed", FAILED)] {
        fake.configure(json!({"denied": denied})).await;
        let ended = doctor(&fake.url).keys().ended().await;
        let document = document(&ended);
        assert_eq!(ended.code, code, "{document}");
        let row = check(&document, "cloud/permission/ecs:DescribeDisks");
        assert_eq!(row["status"], status, "{row}");
    }
}

#[tokio::test]
async fn no_disks_from_an_api_without_dry_runs_are_a_warning() {
    let fake = Fake::start(&[]).await;
    let no_rows = json!([{"action": "DescribeDisks", "times": 1000, "kind": "no-rows"}]);
    fake.configure(json!({"faults": no_rows})).await;
    let ended = doctor(&fake.url).keys().ended().await;
    let document = document(&ended);
    assert_eq!(ended.code, OK, "{document}");
    let row = check(&document, "cloud/permission/ecs:DescribeDisks");
    assert_eq!(row["status"], "warning", "{row}");
    let todo = row["todo"].as_str().unwrap();
    assert!(todo.contains("ecs:DescribeDisks is granted"), "{todo}");
}

#[tokio::test]
async fn two_rate_limits_of_an_action_are_rejected() {
    let start = doctor("http://127.0.0.1:9").args(["--rate-limits=CreateDisk=1,CreateDisk=2"]);
    let ended = start.keys().ended().await;
    let text = "--rate-limits has several limits of CreateDisk";
    assert!(ended.stderr.contains(text), "{}", ended.stderr);
    assert_eq!(ended.code, Some(64), "{}", ended.stdout);
}

#[tokio::test]
async fn an_unreachable_api_server_is_a_failure() {
    let dir = tempfile::tempdir().unwrap();
    let kubeconfig = dir.path().join("kubeconfig");
    let cluster = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
    });
    std::fs::write(&kubeconfig, cluster.to_string()).unwrap();
    let ended = diskplugin(["doctor", "--scope=cluster", "--output=json"])
        .args([format!("--kubeconfig={}", kubeconfig.display())])
        .ended()
        .await;
    let document = document(&ended);
    assert_eq!(ended.code, FAILED, "{document}");
    assert_eq!(check(&document, "cluster/access")["status"], "failed");
}

#[tokio::test]
async fn a_wrong_key_fails_the_api_and_skips_the_rest() {
    let fake = cloud(&[]).await;
    let start = doctor(&fake.url)
        .env("ACCESS_KEY_ID", KEY)
        .env("ACCESS_KEY_SECRET", "wrong");
    let ended = start.ended().await;
    let document = document(&ended);
    assert_eq!(ended.code, FAILED);
    let api = check(&document, "cloud/api");
    assert_eq!(api["status"], "failed");
    assert!(
        api["found"].as_str().unwrap().contains("SignatureDoesNotMatch"),
        "{api}"
    );
    assert_eq!(check(&document, "cloud/permissions")["status"], "skipped");
}

#[tokio::test]
async fn missing_credentials_and_an_unreachable_api_are_failures() {
    let ended = doctor("http://127.0.0.1:9").ended().await;
    let document_ = document(&ended);
    assert_eq!(ended.code, FAILED);
    assert_eq!(
        check(&document_, "cloud/credentials")["status"],
        "failed",
        "{document_}"
    );
    let ended = doctor("http://127.0.0.1:9").keys().ended().await;
    let document = document(&ended);
    assert_eq!(ended.code, FAILED);
    let api = check(&document, "cloud/api");
    assert!(api["found"].as_str().unwrap().contains("http://127.0.0.1:9"), "{api}");
}

#[tokio::test]
async fn a_zone_of_another_region_fails_and_an_empty_zone_warns() {
    let fake = cloud(&["--out-of-stock=cn-beijing-b/*"]).await;
    let ended = doctor(&fake.url).keys().ended().await;
    let row = document(&ended);
    assert_eq!(check(&row, "cloud/stock/cn-beijing-b")["status"], "warning", "{row}");
    let ended = doctor(&fake.url).args(["--zone=cn-hangzhou-h"]).keys().ended().await;
    assert_eq!(ended.code, FAILED, "{ended:?}");
    let row = document(&ended);
    let zone = check(&row, "cloud/zone");
    assert_eq!(zone["status"], "failed", "{row}");
    assert!(zone["todo"].as_str().unwrap().contains("cn-beijing-b"), "{zone}");
    let query = check(&row, "cloud/permission/ecs:DescribeAvailableResource");
    assert_eq!(query["status"], "ok", "{row}");
}

#[tokio::test]
async fn a_skewed_clock_fails() {
    let server = MockServer::start().await;
    let response = ResponseTemplate::new(400)
        .insert_header("date", "Fri, 02 Jan 2026 03:04:05 GMT")
        .set_body_json(json!({"Code": "InvalidTimeStamp.Expired", "Message": "expired", "RequestId": "R"}));
    Mock::given(any()).respond_with(response).mount(&server).await;
    let ended = doctor(&server.uri()).keys().ended().await;
    let document = document(&ended);
    let clock = check(&document, "cloud/clock");
    assert_eq!(clock["status"], "failed", "{clock}");
    assert!(clock["todo"].as_str().unwrap().contains("NTP"), "{clock}");
}

#[tokio::test]
async fn the_programs_check_the_node_by_the_same_names() {
    let dir = tempfile::tempdir().unwrap();
    let node = Start::of(env!("CARGO_BIN_EXE_diskplugin-node")).args(["doctor"]);
    let whole = diskplugin(["doctor", "--scope=node"]);
    let mut names = Vec::new();
    for start in [node, whole] {
        let ended = start
            .args(["--output=json"])
            .args([format!("--kubelet-dir={}/none", dir.path().display())])
            .args([format!("--state-dir={}/state", dir.path().display())])
            .ended()
            .await;
        assert_eq!(ended.code, FAILED, "{ended:?}");
        let document = document(&ended);
        let mounts = check(&document, "node/mounts");
        assert!(mounts["found"].as_str().unwrap().contains("--kubelet-dir"), "{mounts}");
        assert_eq!(check(&document, "node/state")["status"], "ok");
        let checks = document["checks"].as_array().unwrap().iter();
        names.push(checks.map(|check| check["name"].clone()).collect::<Vec<_>>());
    }
    assert_eq!(names[0], names[1]);
}
