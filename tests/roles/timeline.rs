//! `diskplugin timeline --url`: the history of a volume from a process.

use serde_json::Value;

use crate::common::csi::{create, endpoint, publish};
use crate::common::fake::{Fake, NODES, ZONE};
use crate::common::process::{Ended, diskplugin};
use crate::common::wait::until;
use crate::running::{HTTP, Running, SOON, served};
use crate::text::{assert_failed, assert_has, assert_lacks, assert_succeeded};

async fn timeline(volume: &str, url: &str, flags: &[&str]) -> Ended {
    let start = diskplugin(["timeline", volume, "--url", url]);
    start.args(flags).ended().await
}

#[tokio::test]
async fn a_stuck_attach_shows_what_it_waits_for() {
    let (_fake, controller) = served(&["--attach-delay=10m"], &[]).await;
    let (http, channel) = (controller.http().await, &controller.channel);
    let volume = create(channel, "pvc-1").await.unwrap();
    let attached = publish(channel, &volume, NODES[0]);
    let shown = until("the attach waits for the cloud", SOON, async || {
        let ended = timeline("pvc-1", &http, &[]).await;
        assert_succeeded(&ended);
        let waits = "ControllerPublishVolume on 127.0.0.1";
        let waiting = ended.stdout.contains(waits) && ended.stdout.contains("(poll).");
        waiting.then_some(ended.stdout)
    });
    let shown = tokio::select! {
        shown = shown => shown,
        ended = attached => panic!("the attach ended: {ended:?}"),
    };
    let disk = format!("disk {volume}, PersistentVolume");
    let waits = "waiting for the cloud to finish AttachDisk (poll)";
    assert_has(&shown, &[&disk, "  CreateVolume  ", "AttachDisk", "RequestId ", waits]);
}

#[tokio::test]
async fn an_unreachable_process_and_another_server_are_errors() {
    let fake = Fake::start(&[]).await;
    let unreachable = "http://127.0.0.1:9";
    for (url, reason) in [
        (fake.url.as_str(), "is not the HTTP port of a diskplugin process"),
        (unreachable, "not available: http://127.0.0.1:9/debug/volumes/d-1"),
    ] {
        let ended = timeline("d-1", url, &[]).await;
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert_has(&ended.stdout, &[reason, "No conclusion"]);
    }
}

#[tokio::test]
async fn a_name_with_empty_parts_is_rejected_with_the_allowed_forms() {
    for volume in ["", "a/", "/b", "a/b/c"] {
        let ended = diskplugin(["timeline", volume]).ended().await;
        assert_failed(&ended, 64, &[&format!("VOLUME is {volume:?}; allowed: a disk ID")]);
    }
}

#[tokio::test]
async fn json_has_the_calls_and_the_conclusion() {
    let (_fake, controller) = served(&[], &[]).await;
    let (http, channel) = (controller.http().await, &controller.channel);
    publish(channel, "d-missing", NODES[0]).await.unwrap_err();
    publish(channel, "d-missing", NODES[0]).await.unwrap_err();
    let ended = timeline("d-missing", &http, &["--output=json"]).await;
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    let entries = json["entries"].as_array().unwrap();
    assert_eq!((entries.len(), &entries[0]["call"]["repeated"]), (1, &Value::from(1)));
    assert_has(json["conclusion"].as_str().unwrap(), &["failed 2 times", "NotFound"]);

    let ended = timeline("d-other", &http, &[]).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_has(&ended.stdout, &["Nothing is recorded"]);
}

#[tokio::test]
async fn a_controller_that_has_restarted_shows_the_disk_in_the_cloud() {
    let (fake, first) = served(&[], &[]).await;
    let volume = create(&first.channel, "pvc-1").await.unwrap();
    publish(&first.channel, &volume, NODES[0]).await.unwrap();
    let second = Running::controller(&fake, &[HTTP]).await;
    let http = second.http().await;

    let ended = timeline(&volume, &http, &[]).await;
    assert_succeeded(&ended);
    let state = format!(
        "cloud: In_use, 20 GiB of cloud_essd in {ZONE}, attached to {}",
        NODES[0]
    );
    assert_has(&ended.stdout, &[&state]);
    let ended = timeline(&volume, &http, &["--output=json"]).await;
    let json: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(json["cloud"]["instances"][0], NODES[0]);
    assert_eq!(json["cloud"]["sizeGib"], 20);
}

#[tokio::test]
async fn the_disk_of_another_cluster_is_not_shown() {
    let (fake, owner) = served(&[], &[]).await;
    let volume = create(&owner.channel, "pvc-1").await.unwrap();
    let other = Running::of(|socket| {
        let start = diskplugin(["controller", "--region=cn-beijing", "--cluster-id=c-other", HTTP]);
        let start = start.args([format!("--ecs-endpoint={}", fake.url), endpoint(socket)]);
        start.keys()
    });
    let page = other.await.get(&format!("/debug/volumes/{volume}")).await;
    assert_eq!(page.status, 404, "{page:?}");
    assert_has(&page.text, &["tag of this cluster"]);
    assert_lacks(&page.text, &["cloud_essd"]);
}
