//! The report as a table for people and as JSON for programs. docs/guides/orphans.md describes both.

use std::time::Duration;

use comfy_table::{Table, presets};
use serde_json::{Value, json};

use super::classify::age;
use super::delete::{Deletion, Outcome};
use super::finding::{Finding, Report};
use crate::model::InstanceId;

const DAY: u64 = 24 * 3600;

/// The report with one line per finding, and its notes.
pub(super) fn table(report: &Report) -> String {
    let mut lines = Vec::new();
    if report.findings.is_empty() {
        lines.push(format!("No orphans of cluster ID {}.", report.cluster));
    } else {
        lines.push(findings(report));
    }
    if report.young > 0 {
        lines.push(format!(
            "{} unreferenced resources are younger than --min-age and may still get their object.",
            report.young
        ));
    }
    lines.extend(report.notes.iter().map(|note| format!("Note: {note}.")));
    lines.join("\n")
}

fn findings(report: &Report) -> String {
    let mut table = new_table(&[
        "KIND",
        "ID",
        "CLASS",
        "PV/CONTENT",
        "CLAIM",
        "AGE",
        "SIZE",
        "ZONE",
        "INSTANCE",
        "DETAIL",
    ]);
    for finding in &report.findings {
        table.add_row(vec![
            finding.kind.to_string(),
            finding.id.clone(),
            finding.class.to_string(),
            or_dash(finding.object.clone()),
            or_dash(finding.claim.clone()),
            or_dash(finding.created.map(|created| short(age(report.at, created)))),
            or_dash(finding.size.map(|size| size.to_string())),
            or_dash(finding.zone.clone()),
            or_dash(Some(instances(finding).join(" ")).filter(|text| !text.is_empty())),
            or_dash(finding.detail.clone()),
        ]);
    }
    trimmed(&table)
}

/// The results of deletions.
pub(super) fn deletions_table(deletions: &[Deletion]) -> String {
    let mut table = new_table(&["ID", "RESULT", "REASON"]);
    for deletion in deletions {
        let (result, reason) = words(&deletion.outcome);
        table.add_row(vec![deletion.id.to_string(), result.to_owned(), or_dash(reason)]);
    }
    trimmed(&table)
}

/// The stable JSON document. `deletions` is there only if a deletion was requested.
pub(super) fn json(report: &Report, deletions: Option<&[Deletion]>) -> Value {
    let items: Vec<_> = report
        .findings
        .iter()
        .map(|finding| {
            json!({
                "kind": finding.kind,
                "id": finding.id,
                "class": finding.class,
                "object": finding.object,
                "claim": finding.claim,
                "createdAt": finding.created.map(|created| created.to_string()),
                "ageSeconds": finding.created.map(|created| age(report.at, created).as_secs()),
                "sizeGiB": finding.size,
                "category": finding.category.as_ref().map(ToString::to_string),
                "performanceLevel": finding.performance_level,
                "zone": finding.zone,
                "instances": instances(finding),
                "detail": finding.detail,
            })
        })
        .collect();
    let mut document = json!({
        "clusterId": report.cluster.as_str(),
        "listedAt": report.at.to_string(),
        "items": items,
        "younger": report.young,
        "notes": report.notes,
    });
    if let Some(deletions) = deletions {
        let rows = deletions.iter().map(|deletion| {
            let (result, reason) = words(&deletion.outcome);
            json!({"id": deletion.id.as_str(), "result": result, "reason": reason})
        });
        document["deletions"] = rows.collect();
    }
    document
}

fn words(outcome: &Outcome) -> (&'static str, Option<String>) {
    match outcome {
        Outcome::Deleted => ("deleted", None),
        Outcome::Refused(reason) => ("refused", Some(reason.clone())),
        Outcome::Failed(error) => ("failed", Some(error.clone())),
    }
}

fn instances(finding: &Finding) -> Vec<&str> {
    finding.instances.iter().map(InstanceId::as_str).collect()
}

fn new_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

fn trimmed(table: &Table) -> String {
    let text = table.to_string();
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "-".to_owned())
}

/// The largest unit, as kubectl prints ages.
fn short(age: Duration) -> String {
    let seconds = age.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..DAY => format!("{}h", seconds / 3600),
        DAY.. => format!("{}d", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_printed_in_their_largest_unit() {
        for (seconds, text) in [(59, "59s"), (60, "1m"), (7199, "1h"), (DAY, "1d"), (90 * DAY, "90d")] {
            assert_eq!(short(Duration::from_secs(seconds)), text);
        }
    }
}
