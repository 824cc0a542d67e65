//! The format of log lines.

use serde_json::Value;

use crate::common::csi::{create, publish, socket};
use crate::common::fake::Fake;
use crate::common::process::{Ended, diskplugin};

async fn run_calls(flags: &[&str]) -> Ended {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let socket = socket(&dir);
    let start = fake.controller(&socket).keys().args(flags);
    let (controller, channel) = start.ready(&socket).await;
    create(&channel, "pvc-1").await.unwrap();
    publish(&channel, "d-none", "i-one").await.unwrap_err();
    controller.signal(nix::sys::signal::Signal::SIGTERM);
    controller.ended().await
}

fn lines(stderr: &str) -> Vec<Value> {
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    stderr.lines().map(line).collect()
}

#[tokio::test]
async fn in_json_each_line_is_an_object_and_each_call_has_its_method() {
    let ended = run_calls(&["--log-format=json"]).await;
    let lines = lines(&ended.stderr);
    for (method, level) in [("CreateVolume", "INFO"), ("ControllerPublishVolume", "WARN")] {
        let line = lines.iter().find(|line| line["rpc.method"] == method);
        let line = line.unwrap_or_else(|| panic!("no {method}: {}", ended.stderr));
        assert_eq!(line["level"], level, "{line}");
        assert!(line["elapsed_ms"].is_u64(), "{line}");
    }
    assert_eq!(ended.stdout, "");
}

#[tokio::test]
async fn in_json_the_reason_of_a_failed_start_is_an_object_too() {
    let ended = diskplugin(["controller", "--region=r", "--zone=z", "--log-format=json"]);
    let ended = ended.ended().await;
    let lines = lines(&ended.stderr);
    let last = lines.last().expect("there is a reason");
    assert!(last["message"].to_string().contains("--cluster-id"), "{last}");
}

#[tokio::test]
async fn text_lines_in_a_file_have_no_escape_sequences() {
    let ended = run_calls(&[]).await;
    assert!(ended.stderr.contains("CreateVolume done"), "{}", ended.stderr);
    assert!(!ended.stderr.contains('\u{1b}'), "{:?}", ended.stderr);
}
