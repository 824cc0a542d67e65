//! The table of failures of volumes in use: the tests that create a failure compare its row with the driver.

use std::collections::BTreeSet;
use std::path::Path;

use crate::failure_table::rows;
use crate::page::root;
use crate::report;

/// How a test reads the row that it compares.
const CALL: &str = concat!("FailureRow", "::of(");

#[test]
fn every_failure_in_the_table_has_a_test_that_compares_its_row() {
    let mut tested = BTreeSet::new();
    gather_failures(&root().join("tests"), &mut tested);
    let documented: BTreeSet<String> = rows().into_iter().map(|cells| cells[0].clone()).collect();
    assert!(documented.len() > 5, "{documented:?}");
    report(
        documented
            .symmetric_difference(&tested)
            .map(|failure| format!("{failure} is only in the table, or only in a test")),
    );
}

fn gather_failures(folder: &Path, failures: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            gather_failures(&path, failures);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let calls = text.split(CALL).skip(1);
            failures.extend(
                calls
                    .filter_map(|rest| rest.strip_prefix('"'))
                    .filter_map(|rest| rest.split_once('"'))
                    .map(|(failure, _)| failure.to_owned()),
            );
        }
    }
}
