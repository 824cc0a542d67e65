//! The explanation as text.

use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};

use super::report::{Candidate, DiskChange, Explained, Explanation, Outcome};

/// Width of lines: a terminal may not be attached.
const WIDTH: u16 = 120;

/// The explanation for a person.
pub(super) fn render(explanation: &Explanation) -> String {
    let objects = explanation.objects.iter().map(object);
    objects.collect::<Vec<_>>().join("\n").trim_end().to_owned()
}

fn object(object: &Explained) -> String {
    let (kind, name) = (&object.kind, &object.name);
    let mut text = match object.result {
        Outcome::Accepted => format!("{kind} {name}: accepted\n"),
        Outcome::Rejected => format!("{kind} {name}: REJECTED\n"),
        Outcome::Skipped => {
            let why = object.skipped.as_deref().unwrap_or_default();
            return format!("{kind} {name}: skipped, {why}\n");
        }
    };
    for problem in &object.problems {
        text += &wrapped("  problem: ", &problem.message);
    }
    text += &candidates(&object.candidates, object.result);
    for excluded in &object.excluded {
        text += &wrapped("  not tried: ", excluded);
    }
    text += &changes(&object.changes);
    for note in &object.notes {
        text += &wrapped("  note: ", note);
    }
    text
}

/// The text after a prefix, wrapped at spaces; words that are too long for a line are not split.
fn wrapped(prefix: &str, text: &str) -> String {
    let (mut lines, mut line) = (String::new(), prefix.to_owned());
    for word in text.split(' ') {
        let is_first = line.trim_end().len() <= prefix.trim_end().len() && line.ends_with(' ');
        if !is_first && line.chars().count() + 1 + word.chars().count() > WIDTH.into() {
            lines += &format!("{}\n", line.trim_end());
            line = " ".repeat(prefix.chars().count());
        } else if !is_first {
            line.push(' ');
        }
        line += word;
    }
    lines + &format!("{}\n", line.trim_end())
}

fn candidates(candidates: &[Candidate], result: Outcome) -> String {
    if candidates.is_empty() {
        return String::new();
    }
    let mut table = plain();
    table.set_header(["#", "zone", "category", "size", "sizes (GiB)", "IOPS", "MB/s", "stock"]);
    table.add_rows(candidates.iter().enumerate().map(cells));
    for (column, is_shown) in [
        (1, candidates.iter().any(|of| of.zone.is_some())),
        (7, candidates.iter().any(|of| of.in_stock.is_some())),
    ] {
        if let Some(column) = table.column_mut(column).filter(|_| !is_shown) {
            column.set_constraint(ColumnConstraint::Hidden);
        }
    }
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let condition = match result {
        Outcome::Rejected => "Without the rejected fields, ",
        Outcome::Accepted | Outcome::Skipped => "",
    };
    format!("  {condition}CreateVolume tries, in this order:\n{}", indented(&table))
}

fn cells((n, candidate): (usize, &Candidate)) -> [String; 8] {
    let category = match candidate.level {
        Some(level) => format!("{} {level}", candidate.category),
        None => candidate.category.clone(),
    };
    let (iops, throughput) = match &candidate.performance {
        None => ("unknown".to_owned(), "unknown".to_owned()),
        Some(of) => (pair(of.read_iops, of.write_iops), pair(of.read_mbps, of.write_mbps)),
    };
    let stock = match candidate.in_stock {
        Some(true) => "in stock",
        Some(false) => "out of stock",
        None => "unknown",
    };
    [
        (n + 1).to_string(),
        candidate.zone.clone().unwrap_or_else(|| "region".to_owned()),
        category,
        format!("{} GiB", candidate.size_gib),
        format!("{} to {}", candidate.min_size_gib, candidate.max_size_gib),
        iops,
        throughput,
        stock.to_owned(),
    ]
}

fn pair<T: Copy + PartialEq + std::fmt::Display>(read: T, write: T) -> String {
    match read == write {
        true => read.to_string(),
        false => format!("{read} read, {write} write"),
    }
}

fn changes(changes: &[DiskChange]) -> String {
    if changes.is_empty() {
        return String::new();
    }
    let mut table = plain();
    table.set_header(["category", "size", "becomes"]);
    for change in changes {
        let outcome = match (&change.becomes, &change.rejection) {
            (Some(becomes), _) => becomes.clone(),
            (None, rejection) => format!("rejected: {}", rejection.as_deref().unwrap_or("")),
        };
        let size = format!("{} GiB", change.size_gib);
        table.add_row([change.category.clone(), size, outcome]);
    }
    format!("  Disks of these categories:\n{}", indented(&table))
}

fn plain() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(WIDTH);
    table
}

fn indented(table: &Table) -> String {
    let lines = table.lines().map(|line| format!(" {}\n", line.trim_end()));
    lines.collect()
}
