use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use super::*;

/// Starts in 1970, and advances with tokio's clock.
#[derive(Debug)]
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH.saturating_add(self.0.elapsed()).unwrap()
    }
}

fn timelines() -> Timelines {
    Timelines::new(Arc::new(TokioClock(Instant::now())))
}

fn finished(timelines: &Timelines, method: &str, key: &str, code: &str, message: &str) {
    let call = timelines.start(method);
    match key.starts_with("d-") {
        true => timelines.assign_disk(&call, key),
        false => timelines.assign_name(&call, key),
    }
    let message = Some(message.to_owned()).filter(|message| !message.is_empty());
    timelines.end(&call, code, message, Duration::from_secs(1));
}

fn json(timelines: &Timelines, volume: &str) -> Value {
    serde_json::to_value(timelines.history(volume).unwrap()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_call_with_name_and_disk_connects_both() {
    let timelines = timelines();
    let call = timelines.start("CreateVolume");
    timelines.assign_name(&call, "pvc-1");
    assert!(timelines.history("pvc-1").is_some());
    timelines.assign_disk(&call, "d-1");
    timelines.end(&call, "OK", None, Duration::from_secs(2));
    finished(&timelines, "ControllerPublishVolume", "d-1", "OK", "");
    for key in ["pvc-1", "d-1"] {
        let history = json(&timelines, key);
        assert_eq!(history["volume"], "d-1");
        assert_eq!(history["names"], serde_json::json!(["pvc-1"]));
        assert_eq!(history["calls"][0]["method"], "CreateVolume");
        assert_eq!(history["calls"][1]["method"], "ControllerPublishVolume");
    }
    // A later call with the name only.
    finished(&timelines, "CreateVolume", "pvc-1", "OK", "");
    assert_eq!(json(&timelines, "d-1")["calls"].as_array().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_running_call_shows_its_running_step() {
    let timelines = timelines();
    let call = timelines.start("NodeStageVolume");
    timelines.assign_disk(&call, "d-1");
    call.start_step("device_wait").unwrap();
    let shown = &json(&timelines, "d-1")["calls"][0];
    assert!(shown["seconds"].is_null() && shown["code"].is_null(), "{shown}");
    assert_eq!(shown["steps"][0]["name"], "device_wait");
    assert!(shown["steps"][0]["seconds"].is_null(), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn retries_with_the_same_failure_are_counted_and_others_are_kept() {
    let timelines = timelines();
    for id in 0..100 {
        let message = format!("no stock (RequestId {id:X}-AB)");
        finished(&timelines, "CreateVolume", "pvc-1", "ResourceExhausted", &message);
    }
    finished(&timelines, "CreateVolume", "pvc-1", "Unavailable", "no response");
    let calls = &json(&timelines, "pvc-1")["calls"];
    assert_eq!(calls.as_array().unwrap().len(), 2);
    assert_eq!(calls[0]["repeated"], 99);
    assert_eq!(calls[0]["message"], "no stock (RequestId 63-AB)");
    assert!(calls[1]["repeated"].is_null());
}

#[tokio::test(start_paused = true)]
async fn histories_are_bounded_per_volume_and_in_total() {
    let timelines = timelines();
    for _ in 0..1000 {
        finished(&timelines, "NodePublishVolume", "d-busy", "OK", "");
    }
    let busy = json(&timelines, "d-busy");
    assert_eq!(busy["calls"].as_array().unwrap().len(), MAX_CALLS_PER_VOLUME);
    for disk in 0..10_000 {
        finished(&timelines, "ControllerPublishVolume", &format!("d-{disk}"), "OK", "");
    }
    let volumes = lock(&timelines.volumes);
    assert_eq!(volumes.calls.len(), MAX_CALLS);
    assert!(volumes.calls.iter().all(|(key, _)| key != "d-busy"));
    assert_eq!(volumes.calls[MAX_CALLS - 1].0, "d-9999");
}

#[tokio::test(start_paused = true)]
async fn a_creation_that_was_dropped_while_it_ran_connects_its_name_with_the_disk() {
    let timelines = timelines();
    let call = timelines.start("CreateVolume");
    timelines.assign_name(&call, "pvc-1");
    for disk in 0..MAX_CALLS {
        finished(&timelines, "ControllerPublishVolume", &format!("d-{disk}"), "OK", "");
    }
    finished(&timelines, "CreateVolume", "pvc-1", "ABORTED", "it runs");
    timelines.assign_disk(&call, "d-new");
    let history = json(&timelines, "pvc-1");
    assert_eq!(history["volume"], "d-new");
    assert_eq!(history["calls"].as_array().unwrap().len(), 2, "{history}");
}

#[tokio::test(start_paused = true)]
async fn many_steps_keep_the_first_and_the_last() {
    let call = RecordedCall::new("CreateVolume", Timestamp::UNIX_EPOCH);
    for number in 0..200 {
        let step = call.start_step(&format!("step-{number}")).unwrap();
        call.end_step(step, Duration::from_secs(1), None, None);
    }
    let shown = serde_json::to_value(&call).unwrap();
    let steps = shown["steps"].as_array().unwrap();
    assert_eq!((steps[0]["name"].as_str(), steps.len()), (Some("step-0"), 24));
    assert_eq!(steps[23]["name"], "step-199");
    assert_eq!(shown["omitted_steps"], 176);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_used_again_belongs_to_the_new_disk() {
    let timelines = timelines();
    for disk in ["d-old", "d-new"] {
        let call = timelines.start("CreateVolume");
        timelines.assign_name(&call, "pvc-1");
        timelines.assign_disk(&call, disk);
        timelines.end(&call, "OK", None, Duration::from_secs(1));
        finished(&timelines, "DeleteVolume", disk, "OK", "");
    }
    for (key, disk) in [("d-old", "d-old"), ("d-new", "d-new"), ("pvc-1", "d-new")] {
        let history = json(&timelines, key);
        assert_eq!(history["volume"], disk);
        assert_eq!(history["calls"].as_array().unwrap().len(), 2, "{history}");
    }
    assert_eq!(json(&timelines, "d-old")["names"], serde_json::json!([]));
}

#[tokio::test(start_paused = true)]
async fn routine_calls_are_kept_only_with_a_failure_or_a_warning() {
    let timelines = timelines();
    finished(&timelines, "NodeStageVolume", "d-1", "OK", "");
    for _ in 0..100 {
        finished(&timelines, "NodeGetVolumeStats", "d-1", "OK", "");
    }
    finished(&timelines, "NodeGetVolumeStats", "d-1", "Internal", "hangs");
    let warned = timelines.start("NodeGetVolumeStats");
    timelines.assign_disk(&warned, "d-1");
    warned.note("the volume is unhealthy");
    timelines.end(&warned, "OK", None, Duration::ZERO);
    let history = json(&timelines, "d-1");
    let methods: Vec<_> = history["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| &call["method"])
        .collect();
    assert_eq!(methods, ["NodeStageVolume", "NodeGetVolumeStats", "NodeGetVolumeStats"]);
    assert_eq!(lock(&timelines.volumes).calls.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_routine_call_that_succeeds_removes_its_failure() {
    let timelines = timelines();
    finished(&timelines, "CreateVolume", "d-1", "OK", "");
    finished(&timelines, "ControllerGetVolume", "d-1", "Unavailable", "no");
    finished(&timelines, "NodeGetVolumeStats", "d-1", "Internal", "hangs");
    let warned = timelines.start("ControllerGetVolume");
    timelines.assign_disk(&warned, "d-1");
    warned.note("the volume is unhealthy");
    timelines.end(&warned, "Internal", None, Duration::ZERO);
    finished(&timelines, "ControllerGetVolume", "d-1", "OK", "");
    let history = json(&timelines, "d-1");
    let calls = history["calls"].as_array().unwrap();
    let methods: Vec<_> = calls.iter().map(|call| &call["method"]).collect();
    assert_eq!(methods, ["CreateVolume", "NodeGetVolumeStats", "ControllerGetVolume"]);
    assert_eq!(lock(&timelines.volumes).calls.len(), 3);
}
