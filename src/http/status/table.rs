//! A table with a caption.

use std::fmt::{Display, Formatter, Result};

use jiff::Timestamp;

use super::escape::Escaped;

/// Rows of a table before its summary is opened; the style has this number, too.
pub(super) const SHOWN: usize = 20;

#[derive(Debug)]
pub(super) struct Cell {
    text: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Text,
    Prose,
    Strong,
    Number,
    Time,
    /// The address, already percent-encoded.
    Link(String),
}

impl Cell {
    fn new(text: impl Into<String>, kind: Kind) -> Self {
        let text = text.into();
        Self { text, kind }
    }

    /// A name or a few words, which stay on one line. It is cut if a peer sent a very long name.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::new(text, Kind::Text)
    }

    /// A message, which wraps.
    pub(super) fn prose(text: impl Into<String>) -> Self {
        Self::new(text, Kind::Prose)
    }

    /// A state that needs attention.
    pub(super) fn strong(text: &str) -> Self {
        Self::new(text, Kind::Strong)
    }

    pub(super) fn number(number: &impl ToString) -> Self {
        Self::new(number.to_string(), Kind::Number)
    }

    pub(super) fn time(time: Timestamp) -> Self {
        Self::new(format!("{time:.0}"), Kind::Time)
    }

    pub(super) fn link(text: impl Into<String>, address: &str) -> Self {
        Self::new(text, Kind::Link(address.to_owned()))
    }
}

impl Display for Cell {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let text = Escaped(&self.text);
        match &self.kind {
            Kind::Text => write!(f, "<td>{text}</td>"),
            Kind::Prose => write!(f, "<td class=\"prose\">{text}</td>"),
            Kind::Strong => write!(f, "<td><strong>{text}</strong></td>"),
            Kind::Number => write!(f, "<td class=\"number\">{text}</td>"),
            Kind::Time => write!(f, "<td><time datetime=\"{text}\">{text}</time></td>"),
            Kind::Link(address) => {
                let address = Escaped(address);
                write!(f, "<td><a href=\"{address}\">{text}</a></td>")
            }
        }
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
        let cells = row.map(|cell| cell.to_string()).concat();
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
