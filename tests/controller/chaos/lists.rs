//! Continuous listing of the volumes. Each list must match the state at its time or at most the lag of reads before.

use std::collections::BTreeMap;
use std::time::Duration;

use diskplugin::csi::proto::ListVolumesRequest;
use diskplugin::csi::proto::list_volumes_response::Entry;
use jiff::Timestamp;

use crate::common::expected::Volume;
use crate::common::lifecycle::Callers;
use crate::common::sidecar::is_transient;

/// Between two lists.
const PERIOD: Duration = Duration::from_secs(3);
/// The maximum duration of a list with its retries.
const SLACK: Duration = Duration::from_millis(1);

/// Lists continuously and records wrong entries.
pub(crate) async fn list_continuously(callers: &Callers, lag: Duration) {
    let mut tick = tokio::time::interval(PERIOD);
    loop {
        tick.tick().await;
        let begun = callers.recorder.now();
        let mut entries = Vec::new();
        let mut request = ListVolumesRequest {
            max_entries: 50,
            ..ListVolumesRequest::default()
        };
        let complete = loop {
            match callers.sidecar.once(&request).await {
                Ok(page) => {
                    entries.extend(page.entries);
                    request.starting_token = page.next_token;
                    if request.starting_token.is_empty() {
                        break true;
                    }
                }
                Err(status) => {
                    if !is_transient(&status) {
                        callers.recorder.incorrect(&format!("ListVolumes failed: {status}"));
                    }
                    break false;
                }
            }
        };
        if complete {
            let early = begun - (lag + SLACK);
            let late = callers.recorder.now();
            let wrong: Vec<String> = {
                let expected = callers.recorder.expected();
                compare(expected.volumes.values(), entries, early, late)
            };
            for wrong in wrong {
                callers.recorder.incorrect(&format!("ListVolumes: {wrong}"));
            }
        }
    }
}

/// Listed entries that did not exist at any time between the two times.
fn compare<'a>(
    volumes: impl Iterator<Item = &'a Volume>,
    entries: Vec<Entry>,
    early: Timestamp,
    late: Timestamp,
) -> Vec<String> {
    let mut listed = BTreeMap::new();
    let mut wrong = Vec::new();
    for entry in entries {
        let volume = entry.volume.clone().unwrap_or_default();
        if listed.insert(volume.volume_id.clone(), entry).is_some() {
            wrong.push(format!("{} is listed twice", volume.volume_id));
        }
    }
    for volume in volumes {
        let Some(id) = &volume.id else { continue };
        let entry = listed.remove(id);
        let name = &volume.name;
        let must = volume.created.completed_before(early) && !volume.deleted.started_by(late);
        let Some(entry) = entry else {
            if must {
                wrong.push(format!("{name} ({id}) exists and is not listed"));
            }
            continue;
        };
        if volume.deleted.completed_before(early) {
            wrong.push(format!("{name} ({id}) is deleted and listed"));
        }
        let gib = entry.volume.unwrap_or_default().capacity_bytes >> 30;
        let (small, large) = (i64::from(volume.size), volume.larger.map(i64::from));
        let small_is_right = gib == small && !volume.expanded.completed_before(early);
        let large_is_right = Some(gib) == large && volume.expanded.started_by(late);
        if !small_is_right && !large_is_right {
            wrong.push(format!("{name} ({id}) is listed with {gib} GiB"));
        }
        let nodes = entry.status.unwrap_or_default().published_node_ids;
        let held = volume.published.completed_before(early) && !volume.unpublished.started_by(late);
        let free = !volume.published.started_by(late) || volume.unpublished.completed_before(early);
        let own: Vec<String> = volume.node.iter().cloned().collect();
        let right = match nodes.as_slice() {
            [] => !held,
            nodes => nodes == own && !free,
        };
        if !right {
            wrong.push(format!("{name} ({id}) is listed on {nodes:?}"));
        }
    }
    wrong
}
