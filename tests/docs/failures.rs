//! The table of failures of volumes in use: the tests that create a failure compare its row with the driver.

use std::collections::BTreeSet;

use crate::failure_table::rows;
use crate::page::{files_below, read};
use crate::report;

/// How a test reads the row that it compares.
const CALL: &str = concat!("FailureRow", "::of(");

#[test]
fn every_failure_in_the_table_has_a_test_that_compares_its_row() {
    let texts = files_below("tests", "rs").into_iter().map(read);
    let tested: BTreeSet<String> = texts.flat_map(|text| failures(&text)).collect();
    let documented: BTreeSet<String> = rows().into_iter().map(|cells| cells[0].clone()).collect();
    assert!(documented.len() > 5, "{documented:?}");
    let different = documented.symmetric_difference(&tested);
    report(different.map(|failure| format!("{failure} is only in the table, or only in a test")));
}

fn failures(text: &str) -> Vec<String> {
    let calls = text.split(CALL).skip(1);
    let names = calls.filter_map(|rest| rest.strip_prefix('"')?.split_once('"'));
    names.map(|(failure, _)| failure.to_owned()).collect()
}
