//! A table with a caption.

use jiff::Timestamp;

use super::escape::Escaped;

/// Rows of a table before its summary is opened; the style has this number, too.
pub(super) const SHOWN: usize = 20;

/// A cell as HTML.
#[derive(Debug)]
pub(super) struct Cell(String);

impl Cell {
    /// A name or a few words, which stay on one line. It is cut if a peer sent a very long name.
    pub(super) fn text(text: impl AsRef<str>) -> Self {
        Self(format!("<td>{}</td>", Escaped(text)))
    }

    /// A message, which wraps.
    pub(super) fn prose(text: impl AsRef<str>) -> Self {
        Self(format!("<td class=\"prose\">{}</td>", Escaped(text)))
    }

    /// A state that needs attention.
    pub(super) fn strong(text: &str) -> Self {
        Self(format!("<td><strong>{}</strong></td>", Escaped(text)))
    }

    pub(super) fn number(number: &impl ToString) -> Self {
        Self(format!("<td class=\"number\">{}</td>", Escaped(number.to_string())))
    }

    pub(super) fn time(time: Timestamp) -> Self {
        Self(format!("<td><time datetime=\"{time:.0}\">{time:.0}</time></td>"))
    }

    /// `address` is already percent-encoded.
    pub(super) fn link(text: impl AsRef<str>, address: &str) -> Self {
        let (text, address) = (Escaped(text), Escaped(address));
        Self(format!("<td><a href=\"{address}\">{text}</a></td>"))
    }
}

/// Begins the heading of a column of numbers, which is right-aligned as they are.
const NUMBERS: &str = "#";

/// A section with the table, or with the text `empty` instead of a table without rows.
pub(super) fn table<const COLUMNS: usize>(
    title: &str,
    columns: &[&str; COLUMNS],
    rows: impl IntoIterator<Item = [Cell; COLUMNS]>,
    empty: &str,
) -> String {
    let (mut body, mut count) = (String::new(), 0_usize);
    for row in rows {
        let cells = row.map(|cell| cell.0).concat();
        body += &format!("<tr>{cells}</tr>\n");
        count += 1;
    }
    let title = Escaped(title);
    if count == 0 {
        let empty = Escaped(empty);
        return format!("<section>\n<h2>{title}</h2>\n<p class=\"empty\">{empty}</p>\n</section>\n");
    }
    let heads = columns.map(|column| match column.strip_prefix(NUMBERS) {
        Some(column) => format!("<th scope=\"col\" class=\"number\">{}</th>", Escaped(column)),
        None => format!("<th scope=\"col\">{}</th>", Escaped(column)),
    });
    let heads = heads.concat();
    let all = match count > SHOWN {
        true => format!("<details><summary>All {count} rows</summary></details>\n"),
        false => String::new(),
    };
    format!(
        "<section>\n<h2>{title}</h2>\n{all}<div class=\"box\" role=\"region\" aria-label=\"{title}\" tabindex=\"0\">\n\
         <table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody>\n</table>\n</div>\n</section>\n"
    )
}
