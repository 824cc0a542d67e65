//! The page explains each capability of the driver that Kubernetes' storage suite is not configured for, and each group
//! of specs that is left out. `make e2e-upstream` checks that the page lists all skipped specs.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::page::read;
use crate::report;

const PAGE: &str = "docs/reference/upstream-suite.md";

fn yaml(name: &str) -> Value {
    let text = read(format!("tests/e2e/upstream/{name}"));
    serde_saphyr::from_str(&text).unwrap()
}

#[test]
fn every_capability_that_is_left_out_has_its_reason() {
    let driver = yaml("driver.yaml");
    let capabilities = driver["DriverInfo"]["Capabilities"].as_object().unwrap();
    let left_out = capabilities.iter().filter(|(_, has)| **has == false);
    let left_out: BTreeSet<&str> = left_out.map(|(name, _)| name.as_str()).collect();
    let page = read(PAGE);
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `"));
    let rows: BTreeSet<&str> = rows.map(|row| row.split_once('`').unwrap().0).collect();
    assert_eq!(rows, left_out, "{PAGE}");
}

#[test]
fn every_group_of_specs_that_is_left_out_has_its_reason() {
    let run = yaml("run.yaml");
    let page = read(PAGE);
    let left_out = run["leftOut"].as_array().unwrap().iter();
    let headings = left_out.map(|one| {
        let text = |key: &str| one[key].as_str().unwrap();
        format!("### Left out \"{}\": {} (", text("specs"), text("because"))
    });
    report(headings.filter(|heading| !page.contains(heading)));
}
