//! `diskplugin timeline --url`: the history of a volume from a process.

use serde_json::Value;

use crate::common::csi::{create, endpoint, publish, socket};
use crate::common::fake::{Fake, NODES, ZONE};
use crate::common::process::{Ended, diskplugin};
use crate::common::wait::until;
use crate::http_client::{address, get};
use crate::served::Served;

const SOON: std::time::Duration = std::time::Duration::from_secs(60);

async fn timeline(volume: &str, url: &str, flags: &[&str]) -> Ended {
    let start = diskplugin(["timeline", volume, "--url", url]);
    start.args(flags).ended().await
}

#[tokio::test]
async fn a_stuck_attach_shows_what_it_waits_for() {
    let served = Served::start(&["--attach-delay=10m"], &[]).await;
    let (http, channel) = (&served.http, &served.channel);
    let volume = create(channel, "pvc-1").await.unwrap();
    let attached = publish(channel, &volume, NODES[0]);
    let shown = until("the attach waits for the cloud", SOON, async || {
        let ended = timeline("pvc-1", http, &[]).await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        let waits = "ControllerPublishVolume on 127.0.0.1";
        let waiting = ended.stdout.contains(waits) && ended.stdout.contains("(poll).");
        waiting.then_some(ended.stdout)
    });
    let shown = tokio::select! {
        shown = shown => shown,
        ended = attached => panic!("the attach ended: {ended:?}"),
    };
    for part in [
        format!("disk {volume}, PersistentVolume"),
        "  CreateVolume  ".to_owned(),
        "AttachDisk".to_owned(),
        "RequestId ".to_owned(),
        "waiting for the cloud to finish AttachDisk (poll)".to_owned(),
    ] {
        assert!(shown.contains(&part), "no {part:?}\n{shown}");
    }
}

#[tokio::test]
async fn a_url_of_another_server_is_an_error() {
    let fake = Fake::start(&[]).await;
    let ended = timeline("d-1", &fake.url, &[]).await;
    assert_eq!(ended.code, Some(1), "{}", ended.stdout);
    assert!(
        ended.stdout.contains("is not the HTTP port of a diskplugin process"),
        "{}{}",
        ended.stdout,
        ended.stderr
    );
}

#[tokio::test]
async fn a_name_with_empty_parts_is_rejected_with_the_allowed_forms() {
    for volume in ["", "a/", "/b", "a/b/c"] {
        let ended = diskplugin(["timeline", volume]).ended().await;
        assert_eq!(ended.code, Some(64), "{volume}: {}", ended.stderr);
        let form = format!("VOLUME is {volume:?}; allowed: a disk ID");
        assert!(ended.stderr.contains(&form), "{}", ended.stderr);
    }
}

#[tokio::test]
async fn json_has_the_calls_and_the_conclusion() {
    let served = Served::start(&[], &[]).await;
    let (http, channel) = (&served.http, &served.channel);
    publish(channel, "d-missing", NODES[0]).await.unwrap_err();
    publish(channel, "d-missing", NODES[0]).await.unwrap_err();
    let ended = timeline("d-missing", http, &["--output=json"]).await;
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    let entries = json["entries"].as_array().unwrap();
    assert_eq!((entries.len(), &entries[0]["call"]["repeated"]), (1, &Value::from(1)));
    let conclusion = json["conclusion"].as_str().unwrap();
    assert!(
        conclusion.contains("failed 2 times") && conclusion.contains("NotFound"),
        "{conclusion}"
    );

    let ended = timeline("d-other", http, &[]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("Nothing is recorded"), "{ended:?}");
}

#[tokio::test]
async fn an_unreachable_process_is_an_error_with_its_url() {
    let ended = timeline("d-1", "http://127.0.0.1:9", &[]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended
            .stdout
            .contains("not available: http://127.0.0.1:9/debug/volumes/d-1"),
        "{ended:?}"
    );
    assert!(ended.stdout.contains("No conclusion"), "{ended:?}");
    let ended = timeline("default/data", "http://127.0.0.1:9", &[]).await;
    assert_eq!(ended.code, Some(64), "{ended:?}");
    let ended = timeline("d-1", "127.0.0.1:9", &[]).await;
    assert_eq!(ended.code, Some(64), "{ended:?}");
    assert!(ended.stderr.contains("allowed: http://HOST:PORT"), "{ended:?}");
}

#[tokio::test]
async fn a_controller_that_has_restarted_shows_the_disk_in_the_cloud() {
    let first = Served::start(&[], &[]).await;
    let volume = create(&first.channel, "pvc-1").await.unwrap();
    publish(&first.channel, &volume, NODES[0]).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let socket = socket(&directory);
    let start = first.fake.controller(&socket).keys();
    let start = start.args(["--http-address=127.0.0.1:0"]);
    let (second, _) = start.ready(&socket).await;
    let http = address(&second).await;

    let ended = timeline(&volume, &http, &[]).await;
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    let state = format!(
        "cloud: In_use, 20 GiB of cloud_essd in {ZONE}, attached to {}",
        NODES[0]
    );
    assert!(ended.stdout.contains(&state), "{state}: {}", ended.stdout);
    let ended = timeline(&volume, &http, &["--output=json"]).await;
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["cloud"]["instances"][0], NODES[0]);
    assert_eq!(json["cloud"]["sizeGib"], 20);
}

#[tokio::test]
async fn the_disk_of_another_cluster_is_not_shown() {
    let owner = Served::start(&[], &[]).await;
    let volume = create(&owner.channel, "pvc-1").await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let socket = socket(&directory);
    let start = diskplugin([
        "controller",
        "--region=cn-beijing",
        "--cluster-id=c-other",
        "--http-address=127.0.0.1:0",
        &format!("--ecs-endpoint={}", owner.fake.url),
        &endpoint(&socket),
    ]);
    let (other, _) = start.keys().ready(&socket).await;
    let page = get(&address(&other).await, &format!("/debug/volumes/{volume}")).await;
    assert_eq!(page.status, 404, "{page:?}");
    assert!(page.text.contains("tag of this cluster"), "{page:?}");
    assert!(!page.text.contains("cloud_essd"), "{page:?}");
}
