//! The report as tables. docs/guides/orphans.md describes them.

use super::finding::{Deletion, Finding, Report};
use crate::model::InstanceId;
use crate::ops::{text_table, value_name};

/// The report with one line per finding, and its notes; or the results of deletions.
pub(super) fn table(report: &Report) -> String {
    if let Some(deletions) = &report.deletions {
        let row = |one: &Deletion| [one.id.clone(), value_name(&one.result), or_dash(one.reason.clone())];
        return text_table(["ID", "RESULT", "REASON"], deletions.iter().map(row));
    }
    let mut lines = vec![match report.findings.is_empty() {
        true => format!("No orphans of cluster ID {}.", report.cluster_id),
        false => findings(report),
    }];
    if report.younger > 0 {
        lines.push(format!(
            "{} unreferenced resources are younger than --min-age and may still get their object.",
            report.younger
        ));
    }
    lines.extend(report.notes.iter().map(|note| format!("Note: {note}.")));
    lines.join("\n")
}

fn findings(report: &Report) -> String {
    let header = [
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
    ];
    let row = |finding: &Finding| {
        let instances: Vec<_> = finding.instances.iter().map(InstanceId::as_str).collect();
        [
            value_name(&finding.kind),
            finding.id.clone(),
            value_name(&finding.class),
            or_dash(finding.object.clone()),
            or_dash(finding.claim.clone()),
            or_dash(finding.age_seconds.map(short)),
            or_dash(finding.size),
            or_dash(finding.zone.clone()),
            or_dash(Some(instances.join(" ")).filter(|text| !text.is_empty())),
            or_dash(finding.detail.clone()),
        ]
    };
    text_table(header, report.findings.iter().map(row))
}

fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// The largest unit, as kubectl prints ages.
fn short(seconds: u64) -> String {
    const DAY: u64 = 24 * 3600;
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
        const DAY: u64 = 24 * 3600;
        for (seconds, text) in [(59, "59s"), (60, "1m"), (7199, "1h"), (DAY, "1d"), (90 * DAY, "90d")] {
            assert_eq!(short(seconds), text);
        }
    }
}
