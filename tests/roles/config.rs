//! The configuration file of a role.

use std::path::{Path, PathBuf};
use std::time::Duration;

use diskplugin::cli::API_VERSION;

use crate::common::csi::{create, publish, socket};
use crate::common::fake::{Fake, NODES, ZONE};
use crate::common::process::{Ended, diskplugin};
use crate::common::wait::until;
use crate::http_client::{address, get};

/// The file is read every 5 s.
const ADOPTED: Duration = Duration::from_secs(30);

const LIMIT: &str = "diskplugin_cloud_configured_calls_per_second{action=\"AttachDisk\"} 0.5\n";

fn write(path: &Path, settings: &str) {
    let text = format!("apiVersion: {API_VERSION}\nkind: ControllerConfiguration\n{settings}");
    // Replaced, as kubelet replaces the file of a ConfigMap.
    let new = path.with_extension("new");
    std::fs::write(&new, text).unwrap();
    std::fs::rename(new, path).unwrap();
}

fn file(directory: &tempfile::TempDir, settings: &str) -> PathBuf {
    let path = directory.path().join("controller.yaml");
    write(&path, settings);
    path
}

async fn check(path: &Path) -> Ended {
    let path = path.to_str().unwrap();
    diskplugin(["config", "check", path]).ended().await
}

#[tokio::test]
async fn a_controller_runs_with_the_settings_of_its_file_and_adopts_changes() {
    let (fake, directory) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let socket = socket(&directory);
    let settings = |more: &str| {
        let url = &fake.url;
        format!(
            "region: cn-beijing\nclusterId: c-file\nzone: {ZONE}\necsEndpoint: {url}\n\
             httpAddress: 127.0.0.1:0\nendpoint: unix://{}\n{more}",
            socket.display()
        )
    };
    let path = file(&directory, &settings(""));
    let flag = format!("--config-file={}", path.display());
    let start = diskplugin(["controller", &flag]).keys();
    let (controller, channel) = start.ready(&socket).await;
    let http = address(&controller).await;
    let volume = create(&channel, "pvc-1").await.unwrap();
    let tags = fake.disks().await[0]["tags"].to_string();
    assert!(tags.contains("\"c-file\""), "{tags}");
    let valid = "diskplugin_config_last_reload_successful";
    let metrics = get(&http, "/metrics").await.text;
    assert!(metrics.contains(&format!("{valid} 1\n")), "{metrics}");

    write(
        &path,
        &settings("logLevel: debug\nrateLimits: {AttachDisk: 0.5}\nevents: true\n"),
    );
    until("the change is adopted", ADOPTED, async || {
        let metrics = get(&http, "/metrics").await.text;
        publish(&channel, &volume, NODES[0]).await.unwrap();
        let has_limit = metrics.contains(LIMIT);
        (has_limit && controller.stderr().contains("DEBUG")).then_some(())
    })
    .await;
    let log = controller.stderr();
    assert!(log.contains("need a restart: events"), "{log}");

    write(&path, &settings("logLevels: debug\n"));
    until("the invalid file is reported", ADOPTED, async || {
        let metrics = get(&http, "/metrics").await.text;
        let is_reported = controller.stderr().contains("logLevels: unknown key");
        (is_reported && metrics.contains(&format!("{valid} 0\n"))).then_some(())
    })
    .await;
    let metrics = get(&http, "/metrics").await.text;
    assert!(metrics.contains(LIMIT), "the settings remain: {metrics}");
}

#[tokio::test]
async fn flags_precede_variables_and_variables_precede_the_file() {
    let (fake, directory) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let socket = socket(&directory);
    let path = file(
        &directory,
        "clusterId: c-file\nzone: from-file\ndrainTimeout: 7s\n",
    );
    let start = fake.controller(&socket).keys();
    let start = start
        .args([format!("--config-file={}", path.display())])
        .args(["--http-address=127.0.0.1:0", "--rate-limits=CreateDisk=0.5"])
        .env("DISKPLUGIN_DRAIN_TIMEOUT", "3s")
        .env("DISKPLUGIN_LOG_LEVEL", "debug");
    let (controller, channel) = start.ready(&socket).await;
    create(&channel, "pvc-1").await.unwrap();
    let tags = fake.disks().await[0]["tags"].to_string();
    assert!(tags.contains("\"c-test\""), "{tags}");
    // The file has neither.
    let metrics = get(&address(&controller).await, "/metrics").await.text;
    assert!(
        metrics.contains("{action=\"CreateDisk\"} 0.5\n"),
        "{metrics}"
    );
    let log = controller.stderr();
    assert!(log.contains("DEBUG"), "{log}");
    for key in ["clusterId", "zone", "drainTimeout"] {
        let warning = format!("{key} in {} has no effect", path.display());
        assert!(log.contains(&warning), "{warning}: {log}");
    }
}

#[tokio::test]
async fn an_invalid_file_prevents_the_start_and_names_every_problem() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, "drainTimeout: soon\nclusterID: c\n");
    let start = diskplugin(["controller"]).env("DISKPLUGIN_CONFIG_FILE", &path);
    for ended in [start.ended().await, check(&path).await] {
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(64), ""));
        for part in [
            path.to_str().unwrap(),
            "clusterID: unknown key; allowed: ",
            "drainTimeout: invalid value 'soon'",
        ] {
            assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
        }
    }
}

#[tokio::test]
async fn a_valid_file_is_shown_with_what_needs_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let path = file(&directory, "logLevel: debug\nclusterId: c-1\n");
    let ended = check(&path).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    for row in [
        ["logLevel", "debug", "adopted while running"],
        ["clusterId", "c-1", "need a restart"],
    ] {
        let has_row = |line: &str| row.iter().all(|cell| line.contains(cell));
        assert!(ended.stdout.lines().any(has_row), "{}", ended.stdout);
    }
    assert!(
        ended.stdout.contains("of the role controller"),
        "{}",
        ended.stdout
    );
}
