//! Every test that the table of the fake cloud's fidelity names is there.

use std::collections::BTreeSet;
use std::path::Path;

use crate::page::{read, root};
use crate::report;

/// The rows of the table: number, whether a test must be there, and the names of its tests.
fn rows() -> Vec<(u32, bool, Vec<String>)> {
    let page = read("docs/reference/fake-cloud.md");
    let fidelity = page.split_once("\n## Fidelity\n").expect("it is there").1;
    let fidelity = fidelity.split("\n## ").next().unwrap_or_default();
    let rows = fidelity.lines().filter_map(|line| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let number = cells.first()?.trim().parse().ok()?;
        let owed = cells.get(1)?.trim() == "must" && !cells.get(2)?.starts_with("not yet");
        let names = cells.last()?.split('`').skip(1).step_by(2);
        Some((number, owed, names.map(str::to_owned).collect()))
    });
    rows.collect()
}

/// The names of all functions below these folders, in Rust and Python.
pub(crate) fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            functions(&path, names);
            continue;
        }
        let word = match path.extension().and_then(|end| end.to_str()) {
            Some("rs") => "fn ",
            Some("py") => "def ",
            _ => continue,
        };
        let text = std::fs::read_to_string(&path).unwrap();
        let found = text.split(word).skip(1).filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_')?;
            rest.get(..end).map(str::to_owned)
        });
        names.extend(found);
    }
}

#[test]
fn every_item_of_the_table_of_fidelity_names_tests_that_are_there() {
    let mut known = BTreeSet::new();
    functions(&root().join("src/sim"), &mut known);
    functions(&root().join("tests"), &mut known);
    let rows = rows();
    let numbers: BTreeSet<u32> = rows.iter().map(|(number, ..)| *number).collect();
    assert_eq!(
        numbers,
        (1..=32).collect(),
        "items without a row, or unknown"
    );
    report(rows.iter().flat_map(|(number, owed, names)| {
        let untested = (*owed && names.is_empty())
            .then(|| format!("item {number} must be there, and no test shows that it is"));
        let missing = names.iter().filter(|name| !known.contains(*name));
        let missing = missing.map(move |name| format!("item {number}: there is no test {name}"));
        untested.into_iter().chain(missing).collect::<Vec<_>>()
    }));
}
