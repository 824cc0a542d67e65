//! Tables of the documentation that are generated from the chart.

use crate::render::{read, root};

/// Asserts that the text between two marks of a page is the expected one, or writes it if UPDATE is set.
pub(crate) fn assert_generated(page: &str, (begin, end): (&str, &str), expected: &str) {
    let text = read(page);
    let (head, rest) = text.split_once(begin).expect("the page has the begin mark");
    let (found, tail) = rest.split_once(end).expect("the page has the end mark");
    if std::env::var_os("UPDATE").is_some() {
        let text = format!("{head}{begin}{expected}{end}{tail}");
        std::fs::write(root().join(page), text).unwrap();
        return;
    }
    assert!(
        found == expected,
        "{page} differs from the chart; UPDATE=1 cargo test --test helm updates it\n\n{expected}\n"
    );
}
