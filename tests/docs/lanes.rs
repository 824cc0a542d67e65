//! `make test-all` runs tests in lanes beside each other: every test is in one of them.

use std::path::{Path, PathBuf};

use crate::page::{read, root};

/// Where tests live that the other lane runs, and how the paths of all of them begin.
const OTHER_LANE: [(&str, &[&str]); 2] = [
    ("hotplug", &["tests/guest/"]),
    ("on_a_cluster", &["tests/cluster/", "tests/e2e/"]),
];

#[test]
fn nothing_is_left_out_of_one_lane_that_the_other_does_not_run() {
    let makefile = read("Makefile");
    for (name, places) in OTHER_LANE {
        assert!(makefile.contains(&format!("--skip {name}::")));
        let (mut files, mut found) = (sources("src"), 0);
        files.extend(sources("tests"));
        files.extend(sources("crates"));
        for path in files {
            let text = read(&path);
            if !text.lines().any(|line| is_module(line, name)) {
                continue;
            }
            found += 1;
            let is_there = places.iter().any(|place| path.starts_with(place));
            assert!(is_there, "{}: no lane runs the tests of {name}", path.display());
        }
        assert!(found > 0, "nothing is called {name} any more");
    }
}

/// Whether the line is of a module, or of what gives all tests of a suite their path, of such a name.
fn is_module(line: &str, name: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let module = words.windows(2).any(|pair| pair[0] == "mod" && pair[1].contains(name));
    module || line.contains(&format!("\"{name}::"))
}

/// The Rust files below a folder, from the root of the repository.
fn sources(folder: impl AsRef<Path>) -> Vec<PathBuf> {
    let folder = folder.as_ref();
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join(folder)).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        if root().join(&path).is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            found.push(path);
        }
    }
    found
}
