//! A timeline as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

use super::entry::{Entry, Timeline};
use super::history::{CallRecord, DiskState, StepRecord};
use super::obstacle::one_line;

/// The timeline for a terminal. The conclusion is the last paragraph.
pub(super) fn text(timeline: &Timeline) -> String {
    let mut text = String::new();
    let unknown = || "unknown".to_owned();
    line(
        &mut text,
        &format!(
            "disk {}, PersistentVolume {}, claim {}",
            timeline.disk.clone().unwrap_or_else(unknown),
            timeline.persistent_volume.clone().unwrap_or_else(unknown),
            timeline.claim.clone().unwrap_or_else(unknown)
        ),
    );
    if let Some(disk) = &timeline.cloud {
        line(&mut text, &cloud(disk));
    }
    for entry in &timeline.entries {
        let time = entry.time();
        let time = time.map_or_else(|| "-".to_owned(), |time| format!("{time:.3}"));
        match entry {
            Entry::Call { source, call } => {
                line(&mut text, &format!("{time}  {source}  {}", summary(call)));
                steps(&mut text, call);
            }
            Entry::Event(event) => {
                let times = match event.count {
                    count @ 2.. => format!(" ({count} times)"),
                    _ => String::new(),
                };
                let message = one_line(&event.message);
                let (object, reason) = (&event.object, &event.reason);
                line(
                    &mut text,
                    &format!("{time}  event  {object}  {reason}{times}: {message}"),
                );
            }
            Entry::Attachment { node, state, .. } => {
                line(
                    &mut text,
                    &format!("{time}  VolumeAttachment to {node}: {}", one_line(state)),
                );
            }
        }
    }
    for problem in &timeline.unavailable {
        line(&mut text, &format!("not available: {problem}"));
    }
    text + "\n" + &timeline.conclusion()
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing into memory does not fail");
}

/// The state of the disk in the cloud.
fn cloud(disk: &DiskState) -> String {
    match disk {
        DiskState::Error { error } => {
            format!("cloud: the state of the disk could not be read: {error}")
        }
        DiskState::Known {
            status,
            category,
            size_gib,
            zone,
            instances,
        } => {
            let zone = zone.as_deref().unwrap_or("the region");
            let instances = match instances.as_slice() {
                [] => "attached to no instance".to_owned(),
                attached => format!("attached to {}", attached.join(", ")),
            };
            format!("cloud: {status}, {size_gib} GiB of {category} in {zone}, {instances}")
        }
    }
}

fn summary(call: &CallRecord) -> String {
    let node = call.node.as_deref();
    let node = node.map(|node| format!(" on {node}")).unwrap_or_default();
    let duration = match call.seconds {
        Some(seconds) => format!("{seconds:.3} s"),
        None => "running".to_owned(),
    };
    let code = call.code.as_deref().unwrap_or_default();
    let repeated = match call.repeated {
        0 => String::new(),
        more => format!(" (after {more} calls with the same failure)"),
    };
    let message = call.message.as_deref();
    let message = message.map(|text| format!(": {}", one_line(text)));
    let message = message.unwrap_or_default();
    format!("{}{node}  {duration}  {code}{repeated}{message}", call.method)
}

fn steps(text: &mut String, call: &CallRecord) {
    for step in &call.steps {
        line(text, &format!("    {}", step_line(step)));
    }
    if call.omitted_steps > 0 {
        line(text, &format!("    {} more steps are not kept", call.omitted_steps));
    }
    for note in &call.notes {
        line(text, &format!("    warning: {note}"));
    }
}

fn step_line(step: &StepRecord) -> String {
    let duration = match step.seconds {
        Some(seconds) => format!("{seconds:.3} s"),
        None => "running".to_owned(),
    };
    let code = step.code.as_deref();
    let code = code.map(|code| format!("  {code}")).unwrap_or_default();
    let id = step.request_id.as_deref();
    let id = id.map(|id| format!("  RequestId {id}")).unwrap_or_default();
    format!("+{:.3} s  {}  {duration}{code}{id}", step.after, step.name)
}

/// The timeline as one JSON object.
pub(super) fn json(timeline: &Timeline) -> Value {
    json!({
        "volume": timeline.volume,
        "disk": timeline.disk,
        "persistentVolume": timeline.persistent_volume,
        "claim": timeline.claim,
        "cloud": timeline.cloud,
        "entries": timeline.entries,
        "obstacles": timeline.obstacles,
        "unavailable": timeline.unavailable,
        "conclusion": timeline.conclusion(),
    })
}
