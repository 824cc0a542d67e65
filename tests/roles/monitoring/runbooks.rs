//! Each alert has a section in the guide, and each section an alert.

use std::collections::BTreeMap;

use crate::monitoring::files::{alerts, read, text};
use crate::monitoring::report;

const PAGE: &str = "docs/guides/alerts.md";

/// The sections of the page by their headings.
fn sections() -> BTreeMap<String, String> {
    let page = read(PAGE);
    let mut sections = BTreeMap::new();
    for part in page.split("\n### ").skip(1) {
        let (heading, rest) = part.split_once('\n').unwrap();
        let body = rest.split("\n## ").next().unwrap();
        let earlier = sections.insert(heading.trim().to_owned(), body.to_owned());
        assert!(earlier.is_none(), "{heading} occurs twice");
    }
    sections
}

#[test]
fn every_alert_has_a_section_and_every_section_an_alert() {
    let sections = sections();
    let alerts: Vec<_> = alerts().into_iter().map(|alert| alert.name).collect();
    let missing = alerts.iter().filter(|name| !sections.contains_key(*name));
    let missing = missing.map(|name| format!("{PAGE} has no section {name}"));
    let obsolete = sections.keys().filter(|name| !alerts.contains(name));
    let obsolete = obsolete.map(|name| format!("{PAGE} has a section of an alert that does not exist: {name}"));
    report(missing.chain(obsolete));
}

#[test]
fn every_section_has_meaning_cause_a_command_and_an_action() {
    report(sections().into_iter().flat_map(|(name, body)| {
        let parts = ["Meaning", "Cause", "Confirm", "Action"];
        parts
            .into_iter()
            .filter(move |part| !body.contains(&format!("* {part}:")))
            .map(move |part| format!("{PAGE}: {name} has no {part}"))
    }));
}

#[test]
fn every_alert_has_a_severity_a_text_and_its_runbook() {
    report(alerts().into_iter().flat_map(|alert| {
        let mut wrong = Vec::new();
        let severity = text(&alert.body["labels"], "severity");
        if !["critical", "warning", "info"].contains(&severity) {
            wrong.push(format!("{}: severity {severity}", alert.name));
        }
        let annotations = &alert.body["annotations"];
        for key in ["summary", "description"] {
            if text(annotations, key).len() < 20 {
                wrong.push(format!("{}: no {key}", alert.name));
            }
        }
        let expected = format!("{PAGE}#{}", alert.name.to_lowercase());
        if text(annotations, "runbook_url") != expected {
            wrong.push(format!("{}: runbook_url is not {expected}", alert.name));
        }
        if !alert.name.starts_with("DiskPlugin") {
            wrong.push(format!("{}: no prefix DiskPlugin", alert.name));
        }
        wrong
    }));
}
