use jiff::Timestamp;

use super::entry::Timeline;
use super::history::{CallRecord, History, StepRecord};
use super::render::{json, text};
use crate::cluster::volume_history::{VolumeEvent, VolumeHistory};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn call(second: i64, method: &str, code: Option<&str>, message: Option<&str>) -> CallRecord {
    CallRecord {
        method: method.to_owned(),
        started: at(second),
        seconds: code.map(|_| 1.5),
        code: code.map(str::to_owned),
        message: message.map(str::to_owned),
        node: None,
        repeated: 0,
        first_started: None,
        steps: Vec::new(),
        omitted_steps: 0,
        notes: Vec::new(),
    }
}

fn step(name: &str, seconds: Option<f64>, code: Option<&str>) -> StepRecord {
    StepRecord {
        name: name.to_owned(),
        after: 0.1,
        seconds,
        code: code.map(str::to_owned),
        request_id: None,
    }
}

fn event(second: i64, reason: &str, is_warning: bool, message: &str) -> VolumeEvent {
    VolumeEvent {
        time: Some(at(second)),
        count: 1,
        object: "Pod/db-0".to_owned(),
        is_warning,
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

fn of_volume(volume: &str, now: Timestamp) -> Timeline {
    Timeline {
        volume: volume.to_owned(),
        now,
        ..Timeline::default()
    }
}

fn recorded(events: Vec<VolumeEvent>) -> VolumeHistory {
    VolumeHistory {
        claim: Some(("default".to_owned(), "data".to_owned())),
        events,
        ..VolumeHistory::default()
    }
}

fn timeline(calls: Vec<CallRecord>) -> Timeline {
    let mut timeline = of_volume("pvc-1", at(100));
    let history = History {
        volume: "d-1".to_owned(),
        calls,
        disk: None,
    };
    timeline.add_driver("controller c-1", history);
    timeline
}

#[test]
fn a_running_call_is_what_the_volume_waits_for() {
    let mut running = call(40, "ControllerPublishVolume", None, None);
    running.steps.push(step("attach_queue", None, None));
    let timeline = timeline(vec![call(1, "CreateVolume", Some("OK"), None), running]);
    assert_eq!(
        timeline.conclusion(),
        "ControllerPublishVolume on controller c-1 has been running for 60 s: waiting until the instance can attach or \
         detach another disk (attach_queue). Another disk of the instance is being attached or detached. If this takes \
         minutes, that disk is stuck: `kubectl get volumeattachments` lists the volumes of the node."
    );
}

#[test]
fn a_repeated_failure_names_its_number_and_its_reason() {
    let mut failed = call(
        50,
        "CreateVolume",
        Some("ResourceExhausted"),
        Some("OUT_OF_STOCK: none"),
    );
    failed.repeated = 4;
    failed.first_started = Some(at(10));
    assert_eq!(
        timeline(vec![failed]).conclusion(),
        "CreateVolume on controller c-1 failed 5 times since 2023-11-14T22:13:30Z with ResourceExhausted: \
         OUT_OF_STOCK: none; add categories to `type` or zones to `zoneId` of the StorageClass, or wait until there is stock"
    );
}

#[test]
fn a_later_warning_of_kubernetes_is_the_conclusion_of_a_successful_call() {
    let mut timeline = timeline(vec![call(1, "CreateVolume", Some("OK"), None)]);
    assert!(
        timeline.conclusion().ends_with("succeeded."),
        "{}",
        timeline.conclusion()
    );
    timeline.add_kubernetes(VolumeHistory {
        claim: Some(("default".to_owned(), "data".to_owned())),
        events: vec![VolumeEvent {
            time: Some(at(60)),
            count: 3,
            object: "Pod/db-0".to_owned(),
            is_warning: true,
            reason: "FailedScheduling".to_owned(),
            message: "node(s) had volume node affinity conflict".to_owned(),
        }],
        ..VolumeHistory::default()
    });
    assert!(timeline.conclusion().contains("FailedScheduling for Pod/db-0"));
    let text = text(&timeline);
    assert!(text.contains("FailedScheduling (3 times): node(s) had"), "{text}");
    assert!(
        text.starts_with("disk d-1, PersistentVolume unknown, claim default/data\n"),
        "{text}"
    );
}

#[test]
fn nothing_is_not_success() {
    let timeline = of_volume("pvc-2", at(0));
    assert!(timeline.conclusion().starts_with("Nothing is recorded"));
    assert_eq!(json(&timeline)["entries"], serde_json::json!([]));
    let mut unread = timeline.clone();
    unread.unavailable.push("node i-1: cannot connect".to_owned());
    assert!(unread.conclusion().starts_with("No conclusion"));
}

#[test]
fn a_running_call_does_not_hide_the_failure_that_it_repeats() {
    let failed = call(
        10,
        "ControllerPublishVolume",
        Some("FailedPrecondition"),
        Some("DISK_IN_USE_ELSEWHERE: node i-2 holds it"),
    );
    let mut running = call(95, "ControllerPublishVolume", None, None);
    running
        .steps
        .push(step("AttachDisk", Some(0.1), Some("IncorrectDiskStatus")));
    running.steps.push(step("poll", None, None));
    let conclusion = timeline(vec![failed.clone(), running.clone()]).conclusion();
    let lines: Vec<_> = conclusion.lines().collect();
    assert!(
        lines[0].contains("DISK_IN_USE_ELSEWHERE: node i-2 holds it"),
        "{conclusion}"
    );
    assert_eq!(
        lines[1],
        "ControllerPublishVolume on controller c-1 has been running for 5 s: waiting for the cloud to finish AttachDisk \
         (poll), after the cloud responded to AttachDisk with IncorrectDiskStatus."
    );
    // Before a success.
    let succeeded = call(50, "ControllerPublishVolume", Some("OK"), None);
    let conclusion = timeline(vec![failed, succeeded, running]).conclusion();
    assert_eq!(conclusion.lines().count(), 1, "{conclusion}");
}

#[test]
fn events_that_only_wait_do_not_hide_the_warning_before_them() {
    let warning = event(10, "FailedScheduling", true, "1 node(s) exceed max volume count");
    let waiting = event(20, "WaitForPodScheduled", false, "waiting for pod db-0");
    let mut timeline = of_volume("default/data", at(100));
    timeline.add_kubernetes(recorded(vec![waiting.clone()]));
    assert!(timeline.conclusion().contains("WaitForPodScheduled for Pod/db-0"));
    timeline.obstacles = vec!["No controller runs.".to_owned()];
    assert_eq!(timeline.conclusion(), "No controller runs.");
    timeline.obstacles.clear();
    timeline.add_kubernetes(recorded(vec![warning.clone()]));
    assert_eq!(
        timeline.conclusion(),
        "Kubernetes reports FailedScheduling for Pod/db-0: 1 node(s) exceed max volume count. The nodes have reached their \
         limits of attached disks. Add a node, or move pods with volumes (docs/guides/capacity.md)."
    );
    let success = event(15, "SuccessfulAttachVolume", false, "attached");
    let mut timeline = of_volume("default/data", at(100));
    timeline.add_kubernetes(recorded(vec![warning, success]));
    assert!(!timeline.conclusion().contains("FailedScheduling"));
}

#[test]
fn an_unhealthy_volume_is_reported_until_it_recovers_or_is_unmounted() {
    let mut unhealthy = call(10, "NodeGetVolumeStats", Some("OK"), None);
    unhealthy.notes = vec!["the volume is unhealthy: the filesystem does not respond".to_owned()];
    let conclusion = timeline(vec![unhealthy.clone()]).conclusion();
    assert_eq!(
        conclusion,
        "On controller c-1, the volume is unhealthy: the filesystem does not respond"
    );
    let mut healthy = call(20, "NodeGetVolumeStats", Some("OK"), None);
    healthy.notes = vec!["the volume is healthy again".to_owned()];
    let unstaged = call(20, "NodeUnstageVolume", Some("OK"), None);
    for later in [healthy, unstaged] {
        let conclusion = timeline(vec![unhealthy.clone(), later]).conclusion();
        assert!(conclusion.ends_with("succeeded."), "{conclusion}");
    }
}

#[test]
fn a_message_without_advice_gets_it() {
    let message = "DEVICE_NOT_FOUND: volume d-1:\n no device with serial 1 appeared by the dead…";
    let failed = call(1, "NodeStageVolume", Some("DeadlineExceeded"), Some(message));
    let advice = crate::model::Failure::DeviceNotFound.advice();
    let conclusion = timeline(vec![failed]).conclusion();
    assert!(conclusion.ends_with(&format!("by the dead…; {advice}")), "{conclusion}");
    assert_eq!(conclusion.lines().count(), 1);
}

#[test]
fn a_claim_that_does_not_exist_is_named() {
    let mut timeline = of_volume("default/date", at(0));
    timeline.add_kubernetes(VolumeHistory::default());
    assert!(
        timeline
            .conclusion()
            .starts_with("Kubernetes has no PersistentVolumeClaim date in the namespace default.")
    );
}

fn at_node(mut call: CallRecord, node: &str) -> CallRecord {
    call.node = Some(node.to_owned());
    call
}

#[test]
fn another_call_does_not_hide_a_failure() {
    let expand = |second| {
        let message = Some("OUT_OF_RANGE: no size satisfies the request");
        call(second, "ControllerExpandVolume", Some("OutOfRange"), message)
    };
    let publish = |second, code| at_node(call(second, "ControllerPublishVolume", code, None), "i-1");
    let lines = |calls| {
        let conclusion = timeline(calls).conclusion();
        conclusion.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    // The last one of both failures.
    let shown = lines(vec![expand(10), expand(20), publish(30, Some("OK"))]);
    assert_eq!(shown.len(), 1, "{shown:?}");
    assert!(shown[0].starts_with("ControllerExpandVolume on controller c-1 failed"));
    let shown = lines(vec![expand(20), publish(30, None)]);
    assert!(shown[0].contains("OUT_OF_RANGE"), "{shown:?}");
    assert!(shown[1].starts_with("ControllerPublishVolume"), "{shown:?}");
    let expanded = call(40, "ControllerExpandVolume", Some("OK"), None);
    let shown = lines(vec![expand(20), expanded]);
    assert!(shown[0].ends_with("succeeded."), "{shown:?}");
    // The call is not repeated.
    let shown = lines(vec![expand(-1000), publish(30, Some("OK"))]);
    assert!(shown[0].ends_with("succeeded."), "{shown:?}");
    assert!(lines(vec![expand(-1000)])[0].contains("OUT_OF_RANGE"));
}

#[test]
fn a_failure_is_over_once_its_purpose_is() {
    let failed = |method| call(10, method, Some("Internal"), Some("no"));
    let succeeded = |method| call(20, method, Some("OK"), None);
    let publish = "ControllerPublishVolume";
    let unpublish = "ControllerUnpublishVolume";
    for (first, later, is_over) in [
        (failed("CreateVolume"), succeeded(publish), true),
        (failed("NodeStageVolume"), succeeded("NodeUnstageVolume"), true),
        (failed("NodeStageVolume"), succeeded(unpublish), true),
        (failed("NodePublishVolume"), succeeded("NodeUnpublishVolume"), true),
        (failed("NodePublishVolume"), succeeded("NodeStageVolume"), false),
        (failed("CreateSnapshot"), succeeded(publish), false),
        (failed("CreateSnapshot"), succeeded("DeleteVolume"), true),
        (
            at_node(failed(publish), "i-1"),
            at_node(succeeded(unpublish), "i-1"),
            true,
        ),
        (
            at_node(failed(publish), "i-1"),
            at_node(succeeded(unpublish), "i-2"),
            false,
        ),
        (
            at_node(failed(publish), "i-1"),
            at_node(succeeded(publish), "i-2"),
            false,
        ),
    ] {
        let names = (first.method.clone(), later.method.clone());
        let conclusion = timeline(vec![first, later]).conclusion();
        assert_eq!(conclusion.ends_with("succeeded."), is_over, "{names:?}: {conclusion}");
    }
}
