//! Judgements and words that several plans share.

use super::{PathState, Plan, Refusal, Step};
use crate::host::filesystem::SLACK;
use crate::host::{Device, Entry, Mount};
use crate::model::{Bytes, Filesystem};

/// Whether the filesystem leaves so much of the device unused that it should grow.
pub(super) fn is_small(stated: Option<Bytes>, device: &Device) -> bool {
    stated.is_some_and(|size| device.size.0.saturating_sub(size.0) > SLACK.0)
}

pub(super) fn directory(path_state: &PathState) -> Plan {
    match path_state.entry {
        Entry::Directory => Ok(Vec::new()),
        Entry::Missing => Ok(vec![Step::MakeDirectory(path_state.path.clone())]),
        other => Err(bad(path_state, other, "a directory")),
    }
}

pub(super) fn bad(path_state: &PathState, entry: Entry, wanted: &'static str) -> Refusal {
    Refusal::BadTarget {
        path: path_state.path.clone(),
        found: match entry {
            Entry::Missing => "missing",
            Entry::Directory => "a directory",
            Entry::File => "a file",
            Entry::Block(_) => "a block device",
            Entry::Symlink => "a symlink",
            Entry::Other => "a special file",
        },
        wanted,
    }
}

pub(super) fn incompatible(path_state: &PathState, found: String, wanted: &str) -> Refusal {
    Refusal::Incompatible {
        path: path_state.path.clone(),
        found,
        wanted: wanted.to_owned(),
    }
}

pub(super) fn occupied(path_state: &PathState, mount: &Mount) -> Refusal {
    Refusal::Occupied {
        path: path_state.path.clone(),
        source_name: format!("{} ({})", mount.source.display(), mount.kind),
    }
}

/// Something else is mounted there, and it is known from what.
pub(super) fn occupied_by(path_state: &PathState, mount: &Mount, device: &Device) -> Refusal {
    Refusal::Occupied {
        path: path_state.path.clone(),
        source_name: format!(
            "{} ({}), which is of {device} with {},",
            mount.source.display(),
            mount.kind,
            device.identity()
        ),
    }
}

pub(super) fn foreign(device: &Device, what: &str, wanted: Filesystem) -> Refusal {
    Refusal::ForeignData {
        device: device.to_string(),
        found: what.to_owned(),
        wanted,
    }
}

pub(super) fn places(mounts: &[Mount]) -> String {
    let points: Vec<String> = mounts
        .iter()
        .map(|m| m.point.display().to_string())
        .collect();
    points.join(", ")
}

pub(super) fn word(read_only: bool) -> &'static str {
    if read_only { "read-only" } else { "writable" }
}
