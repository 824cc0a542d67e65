//! The table of failures in `docs/reference/node-rpcs.md`. Tests create each failure and compare its row with what the
//! driver returns.

use std::fs;
use std::path::Path;

use diskplugin::csi::proto::volume_health::VolumeHealthEntry;
use diskplugin::csi::proto::{NodeGetVolumeStatsResponse, VolumeHealthErrorType};
use tonic::Status;

const PAGE: &str = "docs/reference/node-rpcs.md";
const HEADER: &str = "| failure |";

/// A row of the table.
#[derive(Debug)]
pub(crate) struct FailureRow {
    cells: Vec<String>,
}

/// What the driver returns while the failure exists.
#[derive(Debug)]
pub(crate) struct Observed {
    /// NodePublishVolume for another pod.
    pub(crate) publish: Result<(), Status>,
    /// NodeUnstageVolume, after NodeUnpublishVolume.
    pub(crate) unstage: Result<(), Status>,
    pub(crate) health: Vec<VolumeHealthEntry>,
    pub(crate) stats: NodeGetVolumeStatsResponse,
}

/// The rows of the table in the page.
pub(crate) fn rows() -> Vec<Vec<String>> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE));
    let text = text.expect("the page exists");
    let mut lines = text.lines().skip_while(|line| !line.starts_with(HEADER));
    assert!(lines.next().is_some(), "{PAGE} has no table {HEADER}");
    let cells = |line: &str| {
        let line = line.trim_matches('|');
        line.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    lines
        .skip(1)
        .take_while(|line| line.starts_with('|'))
        .map(cells)
        .collect()
}

impl FailureRow {
    pub(crate) fn of(failure: &str) -> Self {
        let mut rows = rows().into_iter().filter(|cells| cells[0] == failure);
        let (row, second) = (rows.next(), rows.next());
        assert!(second.is_none(), "{PAGE} has two rows {failure:?}");
        let cells = row.unwrap_or_else(|| panic!("{PAGE} has no row {failure:?}"));
        assert_eq!(cells.len(), 6, "{cells:?}");
        Self { cells }
    }

    /// The last cell.
    pub(crate) fn advice(&self) -> &str {
        &self.cells[5]
    }

    /// Compares all cells with what the driver returns. The advice is a part of the messages, if there are any.
    pub(crate) fn check(&self, observed: &Observed) {
        let found = [
            self.cells[0].clone(),
            error_cell(&observed.publish),
            error_cell(&observed.unstage),
            condition_cell(&observed.health),
            statistics_cell(&observed.stats),
        ];
        assert_eq!(self.cells[..5], found, "the page and the driver differ: {observed:#?}");
        let errors = [&observed.publish, &observed.unstage];
        let errors = errors.iter().filter_map(|result| result.as_ref().err());
        let mut messages: Vec<&str> = errors.map(Status::message).collect();
        messages.extend(observed.health.iter().map(|entry| entry.message.as_str()));
        assert!(
            messages.is_empty() || messages.iter().any(|message| message.contains(self.advice())),
            "no message contains {:?}: {messages:#?}",
            self.advice()
        );
    }
}

/// The gRPC code and the name of the failure.
fn error_cell(result: &Result<(), Status>) -> String {
    let Err(status) = result else {
        return "none".to_owned();
    };
    let code = format!("{:?}", status.code());
    let mut upper = String::new();
    for (index, letter) in code.char_indices() {
        if letter.is_uppercase() && index > 0 {
            upper.push('_');
        }
        upper.push(letter.to_ascii_uppercase());
    }
    let message = status.message();
    let name = message.split_once(':').map_or(message, |(name, _)| name);
    format!("`{upper}` `{name}`")
}

/// Status and reason of each entry.
fn condition_cell(health: &[VolumeHealthEntry]) -> String {
    let cells = health.iter().map(|entry| {
        let status = VolumeHealthErrorType::try_from(entry.status).expect("a known status");
        format!("`{}` `{}`", status.as_str_name(), entry.reason)
    });
    let cells: Vec<_> = cells.collect();
    if cells.is_empty() {
        return "none".to_owned();
    }
    cells.join(", ")
}

fn statistics_cell(stats: &NodeGetVolumeStatsResponse) -> String {
    let cell = match stats.usage.as_slice() {
        [] => "none",
        [bytes, _inodes] if bytes.available == 0 => "0 bytes available",
        [_bytes, _inodes] => "bytes and inodes",
        [bytes] if bytes.used == 0 && bytes.available == 0 => "size of the device",
        other => panic!("unknown usage: {other:?}"),
    };
    cell.to_owned()
}
