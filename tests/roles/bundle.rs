//! `diskplugin bundle --url`: the archive, and that no secret is in it.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use diskplugin::csi::proto::controller_client::ControllerClient;
use serde_json::Value;

use crate::common::archive::{assert_without, members};
use crate::common::csi::{publish, volume};
use crate::common::fake::{Fake, KEY, NODES};
use crate::common::process::{Start, diskplugin};
use crate::running::{HTTP, Running};
use crate::text::{assert_failed, assert_lacks, assert_succeeded};

const WRONG_SECRET: &str = "wrong-and-hidden";
const REQUEST_SECRET: &str = "value-of-the-request";

fn bundle(out: &Path, url: &str) -> Start {
    diskplugin(["bundle", "--out"]).args([out.to_str().unwrap(), "--url", url])
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn the_archive_of_a_process_has_its_pages_and_no_secret() {
    let fake = Fake::start(&[]).await;
    let controller = Running::of(|socket| {
        let start = fake.controller(socket).keys().args([HTTP]);
        start.env("ACCESS_KEY_SECRET", WRONG_SECRET)
    });
    let controller = controller.await;
    let (http, channel) = (controller.http().await, &controller.channel);
    let mut request = volume("pvc-1");
    let secret = ("accessKeySecret".to_owned(), REQUEST_SECRET.to_owned());
    request.secrets.extend([secret]);
    let mut client = ControllerClient::new(channel.clone());
    client.create_volume(request).await.unwrap_err();
    publish(channel, "d-1", NODES[0]).await.unwrap_err();

    let out = tempfile::tempdir().unwrap();
    let file = out.path().join("bundle.tar.gz");
    let start = bundle(&file, &http).args(["--volume=d-1", "--volume=pvc-1"]);
    let ended = start.ended().await;
    assert_succeeded(&ended);
    assert_eq!(files(out.path()), std::slice::from_ref(&file));
    let mode = file.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let found = members(&file);
    let secrets = [WRONG_SECRET, REQUEST_SECRET, KEY];
    assert_without(&found, &secrets);
    assert_lacks(&ended.stdout, &secrets);
    let authority = http.trim_start_matches("http://").replace(':', "_");
    let page = |name: &str| &found[&format!("{authority}/{name}")];
    assert!(page("metrics.txt").contains("diskplugin_"), "{found:?}");
    assert!(page("volumes.json").contains("pvc-1"), "{found:?}");
    let history: Value = serde_json::from_str(page("volume-d-1.json")).unwrap();
    let call = &history["calls"][0];
    assert_eq!(call["method"], "ControllerPublishVolume", "{history}");
    let manifest: Value = serde_json::from_str(&found["manifest.json"]).unwrap();
    let listed = manifest["members"].as_array().unwrap().len();
    assert_eq!(listed + 1, found.len(), "{manifest}");
}

async fn failed(start: Start, code: i32, dir: &Path, files_left: usize, reason: &str) {
    let ended = start.ended().await;
    assert_failed(&ended, code, &[reason]);
    assert_eq!(ended.stdout, "");
    assert_eq!(files(dir).len(), files_left, "{:?}", files(dir));
}

#[tokio::test]
async fn a_failure_leaves_no_file_and_changes_none() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bundle.tar.gz");
    let unreachable = "http://127.0.0.1:9";
    let reason = "http://127.0.0.1:9/metrics: cannot connect";
    failed(bundle(&file, unreachable), 1, dir.path(), 0, reason).await;
    let missing = dir.path().join("missing/bundle.tar.gz");
    failed(bundle(&missing, unreachable), 64, dir.path(), 0, "--out").await;
    std::fs::write(&file, "mine").unwrap();
    failed(bundle(&file, unreachable), 64, dir.path(), 1, "it exists").await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine");
}
