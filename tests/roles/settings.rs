//! Settings by flag or environment; all missing and invalid settings are reported together.

use std::path::Path;

use crate::common::csi::{create, endpoint, info, socket};
use crate::common::fake::{Fake, KEY, NODES, SECRET};
use crate::common::process::{Ended, Start, diskplugin};
use crate::http_client::{address, get};

/// No server listens there.
const NO_METADATA: &str = "--metadata-endpoint=http://127.0.0.1:9";

/// Asserts that the start fails with an invalid setting, and that the output has all of these texts.
fn assert_invalid(ended: &Ended, texts: &[&str]) {
    assert_eq!(ended.code, Some(64), "{}", ended.stderr);
    for text in texts {
        assert!(ended.stderr.contains(text), "no {text:?}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn all_missing_settings_of_a_role_are_reported_together() {
    let required: [(&str, &[&str]); 2] = [
        ("controller", &["--region", "--cluster-id"]),
        ("all-in-one", &["--region", "--zone", "--node-id", "--cluster-id"]),
    ];
    for (role, flags) in required {
        assert_invalid(&diskplugin([role, NO_METADATA]).ended().await, flags);
    }
}

#[tokio::test]
async fn a_flag_takes_precedence_over_its_variable() {
    let (fake, directory) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let socket = socket(&directory);
    let start = fake.controller(&socket).keys();
    let start = start
        .args(["--http-address=127.0.0.1:0", "--rate-limits=CreateDisk=0.5"])
        .env("DISKPLUGIN_RATE_LIMITS", "AttachDisk=2")
        .env("DISKPLUGIN_CLUSTER_ID", "c-variable")
        .env("DISKPLUGIN_LOG_LEVEL", "debug");
    let (controller, channel) = start.ready(&socket).await;
    create(&channel, "pvc-1").await.unwrap();
    let tags = fake.disks().await[0]["tags"].to_string();
    assert!(tags.contains("\"c-test\""), "{tags}");
    let metrics = get(&address(&controller).await, "/metrics").await.text;
    let limit = |action: &str| {
        metrics.contains(&format!(
            "diskplugin_cloud_configured_calls_per_second{{action=\"{action}\"}}"
        ))
    };
    assert!(limit("CreateDisk") && !limit("AttachDisk"), "{metrics}");
    // It has no flag here.
    let log = controller.stderr();
    assert!(log.contains("DEBUG"), "{log}");
}

#[tokio::test]
async fn invalid_and_missing_settings_are_reported_together() {
    let invalid = "MAX_VOLUMES_PERNODE is \"0\"";
    // A node waits for its metadata, but not with invalid settings.
    for (role, texts) in [
        ("node", &[invalid][..]),
        ("all-in-one", &[invalid, "--zone", "--node-id"]),
    ] {
        let start = diskplugin([role, NO_METADATA]).env("MAX_VOLUMES_PERNODE", "0");
        assert_invalid(&start.ended().await, texts);
    }
}

#[tokio::test]
async fn an_invalid_command_line_is_an_invalid_setting() {
    let lines: [(&[&str], &str); 8] = [
        (&["controller", "--no-such-flag"], "--no-such-flag"),
        (&["no-such-role"], "no-such-role"),
        (&["node", "--max-volumes-per-node=0"], "--max-volumes-per-node"),
        (&["node", "--endpoint=tcp://127.0.0.1:1"], "unix:///absolute/path"),
        (&["controller", "--signature=v2"], "v1, v3"),
        (&["controller", "--ecs-endpoint=nonsense"], "http://HOST"),
        (&["node", "--metadata-endpoint=ftp://h"], "http://HOST"),
        (&[], "Usage"),
    ];
    for (line, text) in lines {
        assert_invalid(&diskplugin(line).ended().await, &[text]);
    }
}

#[tokio::test]
async fn a_controller_can_be_configured_by_environment_variables() {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let socket = socket(&dir);
    let secret = dir.path().join("secret");
    std::fs::create_dir(&secret).unwrap();
    std::fs::write(secret.join("access-key-id"), KEY).unwrap();
    std::fs::write(secret.join("access-key-secret"), SECRET).unwrap();
    let start = from_environment(
        "controller",
        &[
            ("ENDPOINT", &format!("unix://{}", socket.display())),
            ("DRAIN_TIMEOUT", "3s"),
            ("REGION", "cn-beijing"),
            ("ZONE", "cn-beijing-c"),
            ("METADATA_ENDPOINT", "http://127.0.0.1:9"),
            ("ECS_ENDPOINT", &fake.url),
            ("NETWORK", "vpc"),
            ("SIGNATURE", "v3"),
            ("CREDENTIALS_DIR", &secret.display().to_string()),
            ("CLUSTER_ID", "c-environment"),
            ("LOG_FORMAT", "json"),
        ],
    );
    let (controller, channel) = start.ready(&socket).await;
    create(&channel, "pvc-1").await.unwrap();
    let disk = &fake.disks().await[0];
    assert_eq!(disk["zone"], "cn-beijing-c");
    assert!(disk["tags"].to_string().contains("c-environment"), "{disk}");
    assert_eq!(fake.calls().await[0]["via"], "v3");
    assert!(controller.stderr().starts_with('{'), "{}", controller.stderr());
}

#[tokio::test]
async fn a_node_can_be_configured_by_environment_variables() {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let start = from_environment(
        "node",
        &[
            ("ENDPOINT", &format!("unix://{}", socket.display())),
            ("ZONE", "cn-beijing-c"),
            ("NODE_ID", "i-environment"),
            ("MAX_VOLUMES_PER_NODE", "7"),
            ("DEVICE_DIR", &dir.path().display().to_string()),
        ],
    );
    let (_node, channel) = start.ready(&socket).await;
    let info = info(&channel).await.unwrap();
    assert_eq!((info.node_id.as_str(), info.max_volumes_per_node), ("i-environment", 7));
}

#[tokio::test]
async fn the_cloud_can_be_selected_by_an_environment_variable() {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let endpoint = format!("unix://{}", socket.display());
    let settings = [("ENDPOINT", endpoint.as_str()), ("CLOUD", "mock")];
    let (_both, channel) = from_environment("all-in-one", &settings).ready(&socket).await;
    create(&channel, "pvc-1").await.unwrap();
}

#[tokio::test]
async fn the_volume_limit_flag_takes_precedence_over_the_vendors_variable() {
    assert_eq!(limit(&[], Some("9")).await, 9);
    assert_eq!(limit(&["--max-volumes-per-node=5"], Some("9")).await, 5);
    assert_eq!(limit(&[], None).await, 0);
}

/// The volume limit that a node with this flag and variable reports.
async fn limit(flags: &[&str], variable: Option<&str>) -> i64 {
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let mut start = node(&socket).args(flags);
    if let Some(value) = variable {
        start = start.env("MAX_VOLUMES_PERNODE", value);
    }
    let (_node, channel) = start.ready(&socket).await;
    info(&channel).await.unwrap().max_volumes_per_node
}

fn node(socket: &Path) -> Start {
    let id = format!("--node-id={}", NODES[0]);
    diskplugin(["node", "--zone=cn-beijing-b", &id, &endpoint(socket)])
}

/// A role without flags, only with environment variables.
fn from_environment(role: &str, settings: &[(&str, &str)]) -> Start {
    let start = diskplugin([role]);
    settings.iter().fold(start, |start, (name, value)| {
        start.env(&format!("DISKPLUGIN_{name}"), value)
    })
}
