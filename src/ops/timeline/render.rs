//! A timeline as text and as JSON.

use serde_json::{Value, json};

use super::entry::{Entry, Timeline};
use super::history::{CallRecord, DiskState, StepRecord};
use super::obstacle::{one_line, or_empty};

/// The timeline for a terminal. The conclusion is the last paragraph.
pub(super) fn text(timeline: &Timeline) -> String {
    let or_unknown = |name: Option<String>| name.unwrap_or_else(|| "unknown".to_owned());
    let mut lines = vec![format!(
        "disk {}, PersistentVolume {}, claim {}",
        or_unknown(timeline.disk.clone()),
        or_unknown(timeline.found.persistent_volume.clone()),
        or_unknown(timeline.claim())
    )];
    lines.extend(timeline.cloud.as_ref().map(cloud));
    for entry in &timeline.entries {
        let time = entry.time();
        let time = time.map_or_else(|| "-".to_owned(), |time| format!("{time:.3}"));
        match entry {
            Entry::Call { source, call } => {
                lines.push(format!("{time}  {source}  {}", summary(call)));
                lines.extend(call.steps.iter().map(step));
                if call.omitted_steps > 0 {
                    lines.push(format!("    {} more steps are not kept", call.omitted_steps));
                }
                lines.extend(call.notes.iter().map(|note| format!("    warning: {note}")));
            }
            Entry::Event(event) => {
                let times = match event.count {
                    count @ 2.. => format!(" ({count} times)"),
                    _ => String::new(),
                };
                let message = one_line(&event.message);
                let (object, reason) = (&event.object, &event.reason);
                lines.push(format!("{time}  event  {object}  {reason}{times}: {message}"));
            }
            Entry::Attachment(attachment) => {
                let (node, state) = (&attachment.node, one_line(&attachment.state));
                lines.push(format!("{time}  VolumeAttachment to {node}: {state}"));
            }
        }
    }
    let unavailable = timeline.unavailable.iter();
    lines.extend(unavailable.map(|problem| format!("not available: {problem}")));
    format!("{}\n\n{}", lines.join("\n"), timeline.conclusion())
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
    let node = or_empty(" on ", call.node.as_deref());
    let duration = duration(call.seconds);
    let code = call.code.as_deref().unwrap_or_default();
    let repeated = match call.repeated {
        0 => String::new(),
        more => format!(" (after {more} calls with the same failure)"),
    };
    let message = call.message.as_deref().map(one_line);
    let message = or_empty(": ", message.as_deref());
    format!("{}{node}  {duration}  {code}{repeated}{message}", call.method)
}

fn step(step: &StepRecord) -> String {
    let duration = duration(step.seconds);
    let code = or_empty("  ", step.code.as_deref());
    let id = or_empty("  RequestId ", step.request_id.as_deref());
    format!("    +{:.3} s  {}  {duration}{code}{id}", step.after, step.name)
}

fn duration(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "running".to_owned(), |seconds| format!("{seconds:.3} s"))
}

/// The timeline as one JSON object.
pub(super) fn json(timeline: &Timeline) -> Value {
    json!({
        "volume": timeline.volume,
        "disk": timeline.disk,
        "persistentVolume": timeline.found.persistent_volume,
        "claim": timeline.claim(),
        "cloud": timeline.cloud,
        "entries": timeline.entries,
        "obstacles": timeline.obstacles,
        "unavailable": timeline.unavailable,
        "conclusion": timeline.conclusion(),
    })
}
