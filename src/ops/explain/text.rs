//! The explanation as text.

use super::report::{Candidate, DiskChange, Explained, Explanation, Outcome};
use crate::model::ZoneId;
use crate::ops::text_table;

/// The explanation for a person.
pub(super) fn render(explanation: &Explanation) -> String {
    let objects = explanation.objects.iter().map(object);
    objects.collect::<Vec<_>>().join("\n\n")
}

fn object(object: &Explained) -> String {
    let result = match object.result {
        Outcome::Accepted => "accepted".to_owned(),
        Outcome::Rejected => "REJECTED".to_owned(),
        Outcome::Skipped => format!("skipped, {}", object.skipped.as_deref().unwrap_or_default()),
    };
    let mut lines = vec![format!("{} {}: {result}", object.kind, object.name)];
    lines.extend(object.problems.iter().map(|one| format!("  problem: {}", one.message)));
    lines.extend(candidates(&object.candidates, object.result));
    lines.extend(object.excluded.iter().map(|text| format!("  not tried: {text}")));
    if !object.changes.is_empty() {
        let rows = object.changes.iter().map(change);
        lines.push("  Disks of these categories:".to_owned());
        lines.push(indented(&text_table(["category", "size", "becomes"], rows)));
    }
    lines.extend(object.notes.iter().map(|text| format!("  note: {text}")));
    lines.join("\n")
}

fn candidates(candidates: &[Candidate], result: Outcome) -> Option<String> {
    let condition = match result {
        Outcome::Rejected => "Without the rejected fields, ",
        Outcome::Accepted | Outcome::Skipped => "",
    };
    let has_zones = candidates.iter().any(|of| of.zone.is_some());
    let header = ["#", "zone", "category", "size", "sizes (GiB)", "IOPS", "MB/s", "stock"];
    let rows = candidates.iter().enumerate().map(|(n, candidate)| {
        let mut cells = cells(n, candidate);
        if !has_zones {
            cells[1].clear();
        }
        cells
    });
    let table = || indented(&text_table(header, rows));
    (!candidates.is_empty()).then(|| format!("  {condition}CreateVolume tries, in this order:\n{}", table()))
}

fn cells(n: usize, candidate: &Candidate) -> [String; 8] {
    let category = match candidate.level {
        Some(level) => format!("{} {level}", candidate.category),
        None => candidate.category.to_string(),
    };
    let (iops, throughput) = match &candidate.performance {
        None => ("unknown".to_owned(), "unknown".to_owned()),
        Some(of) => (
            pair(of.read_iops, of.write_iops),
            pair(f64::from(of.read), f64::from(of.write)),
        ),
    };
    [
        (n + 1).to_string(),
        candidate.zone.as_ref().map_or("region", ZoneId::as_str).to_owned(),
        category,
        candidate.size.to_string(),
        format!("{} to {}", candidate.min_size.0, candidate.max_size.0),
        iops,
        throughput,
        match candidate.in_stock {
            Some(true) => "in stock".to_owned(),
            Some(false) => "out of stock".to_owned(),
            None => String::new(),
        },
    ]
}

fn pair<T: Copy + PartialEq + std::fmt::Display>(read: T, write: T) -> String {
    match read == write {
        true => read.to_string(),
        false => format!("{read} read, {write} write"),
    }
}

fn change(change: &DiskChange) -> [String; 3] {
    let rejection = change.rejection.as_deref().unwrap_or_default();
    let becomes = change
        .becomes
        .clone()
        .unwrap_or_else(|| format!("rejected: {rejection}"));
    [change.category.clone(), format!("{} GiB", change.size_gib), becomes]
}

fn indented(table: &str) -> String {
    let lines: Vec<_> = table.lines().map(|line| format!(" {line}")).collect();
    lines.join("\n")
}
