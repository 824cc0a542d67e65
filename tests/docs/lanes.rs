//! `make test-all` runs tests in parallel lanes: every test is in one of them.

use std::path::PathBuf;

use crate::page::{files_below, read};

/// Modules that the lane `host` skips, and the folders whose tests the lane `machines` runs.
const OTHER_LANE: [(&str, &[&str]); 2] = [
    ("hotplug", &["tests/guest/"]),
    ("on_a_cluster", &["tests/cluster/", "tests/e2e/"]),
];

#[test]
fn a_lane_runs_every_test_that_the_other_one_skips() {
    let makefile = read("Makefile");
    let files = ["src", "tests", "crates"]
        .map(|folder| files_below(folder, "rs"))
        .concat();
    for (name, folders) in OTHER_LANE {
        assert!(makefile.contains(&format!("--skip {name}::")));
        let is_of = |path: &&PathBuf| read(path).lines().any(|line| is_module(line, name));
        let found: Vec<_> = files.iter().filter(is_of).collect();
        assert!(!found.is_empty(), "no module has the name {name}");
        for path in found {
            let is_run = folders.iter().any(|folder| path.starts_with(folder));
            assert!(is_run, "{}: no lane runs the tests of {name}", path.display());
        }
    }
}

/// Whether the line declares a module with this name, or the path of the tests of a suite.
fn is_module(line: &str, name: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let module = words.windows(2).any(|pair| pair[0] == "mod" && pair[1].contains(name));
    module || line.contains(&format!("\"{name}::"))
}
