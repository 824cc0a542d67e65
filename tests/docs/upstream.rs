//! What Kubernetes' own storage suite is not told of the driver, and what of it is not run, has its reason in the page.
//! That the page names all that is skipped, `make e2e-upstream` sees to.

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
fn a_capability_has_its_reason_where_it_is_left_out_and_only_there() {
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
fn what_is_not_run_is_named_with_its_reason() {
    let run = yaml("run.yaml");
    let page = read(PAGE);
    let left_out = run["leftOut"].as_array().unwrap().iter();
    let headings = left_out.map(|one| {
        let text = |key: &str| one[key].as_str().unwrap();
        format!("### Left out \"{}\": {} (", text("specs"), text("because"))
    });
    report(headings.filter(|heading| !page.contains(heading)));
}
