//! The format of log lines.

use serde_json::Value;

use crate::common::csi::{create, publish};
use crate::common::fake::Fake;
use crate::common::process::Ended;
use crate::running::Running;
use crate::text::{assert_has, assert_lacks};

async fn run_calls(flags: &[&str]) -> Ended {
    let fake = Fake::start(&[]).await;
    let controller = Running::controller(&fake, flags).await;
    create(&controller.channel, "pvc-1").await.unwrap();
    publish(&controller.channel, "d-none", "i-one").await.unwrap_err();
    controller.stop().await
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

/// No collector of traces is set.
#[tokio::test]
async fn text_lines_in_a_file_have_neither_escape_sequences_nor_fields_of_traces() {
    let log = run_calls(&[]).await.stderr;
    assert_has(&log, &["CreateVolume done"]);
    assert_lacks(&log, &["\u{1b}", "otel.", "trace_id"]);
}
