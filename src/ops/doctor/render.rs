//! The report as text for people and as JSON for programs. docs/guides/doctor.md describes both.

use serde_json::{Value, json};

use super::check::{Check, Status};
use crate::ops::{text_table, value_name};

const ALL: [Status; 4] = [Status::Ok, Status::Warning, Status::Failed, Status::Skipped];

/// One line per check, then what to do about each that has advice.
pub(super) fn table(checks: &[Check]) -> String {
    let row = |check: &Check| [value_name(&check.status), check.name.clone(), check.found.clone()];
    let mut lines = vec![text_table(["STATUS", "CHECK", "FOUND"], checks.iter().map(row))];
    let advised: Vec<_> = checks.iter().filter(|check| !check.advice.is_empty()).collect();
    if !advised.is_empty() {
        lines.extend([String::new(), "What to do:".to_owned()]);
        lines.extend(
            advised
                .iter()
                .map(|check| format!("* {}: {}", check.name, check.advice)),
        );
    }
    let counts = ALL.map(|status| format!("{} {}", count(checks, status), value_name(&status)));
    lines.extend([String::new(), counts.join(", ")]);
    lines.join("\n")
}

/// The stable JSON document.
pub(super) fn json(checks: &[Check]) -> Value {
    let counts = ALL.map(|status| (value_name(&status), json!(count(checks, status))));
    let counts: serde_json::Map<_, _> = counts.into_iter().collect();
    json!({"checks": checks, "counts": counts, "failed": count(checks, Status::Failed) > 0})
}

/// The number of checks with this status.
pub(super) fn count(checks: &[Check], status: Status) -> usize {
    checks.iter().filter(|check| check.status == status).count()
}
