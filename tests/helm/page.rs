//! Tables of the docs that are made from the chart.

use crate::render::{read, root};

/// Holds that what stands between two marks of a page is this. With UPDATE set it is written there.
pub(crate) fn hold(page: &str, (begin, end): (&str, &str), wanted: &str) {
    let text = read(page);
    let (head, rest) = text.split_once(begin).expect("the page has the mark");
    let (found, tail) = rest
        .split_once(end)
        .expect("the page has the mark of the end");
    if std::env::var_os("UPDATE").is_some() {
        let text = format!("{head}{begin}{wanted}{end}{tail}");
        std::fs::write(root().join(page), text).unwrap();
        return;
    }
    assert!(
        found == wanted,
        "{page} is not as the chart; UPDATE=1 cargo test --test helm makes the table\n\n{wanted}\n"
    );
}
