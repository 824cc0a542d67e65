//! Every test that the table of known defects names is there, and every defect has its row.

use std::collections::BTreeSet;

use crate::fidelity::functions;
use crate::page::{read, root};
use crate::report;

#[test]
fn every_known_defect_names_tests_that_are_there_or_why_there_is_none() {
    let mut known = BTreeSet::new();
    functions(&root().join("src"), &mut known);
    functions(&root().join("tests"), &mut known);
    let text = read("tests/controller/defects.rs");
    let rows = text.lines().filter_map(|line| {
        let cells: Vec<&str> = line.strip_prefix("//! | ")?.split(" | ").collect();
        let number: u32 = cells.first()?.trim().parse().ok()?;
        let tests = cells.get(2).copied().unwrap_or_default();
        let names = tests.split('`').skip(1).step_by(2).map(str::to_owned);
        let names: Vec<String> = names.collect();
        Some((number, tests.starts_with("node: "), names))
    });
    let rows: Vec<_> = rows.collect();
    let numbers: Vec<u32> = rows.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (1..=39).collect::<Vec<_>>(), "each has one row");
    report(rows.iter().flat_map(|(number, elsewhere, names)| {
        let untested = (!elsewhere && names.is_empty())
            .then(|| format!("defect {number}: no test shows that we do not have it"));
        let missing = names.iter().filter(|name| !known.contains(*name));
        let missing = missing.map(move |name| format!("defect {number}: there is no test {name}"));
        untested.into_iter().chain(missing).collect::<Vec<_>>()
    }));
}
