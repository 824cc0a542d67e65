//! A table with a caption.

use std::fmt::{Display, Formatter, Result, Write};

use jiff::Timestamp;

use super::escape::Escaped;

#[derive(Debug)]
pub(super) struct Cell {
    text: String,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Text,
    Strong,
    Number,
    Time,
    /// The address, already percent-encoded.
    Link(String),
}

impl Cell {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            kind: Kind::Text,
        }
    }

    /// A state that needs attention.
    pub(super) fn strong(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            kind: Kind::Strong,
        }
    }

    pub(super) fn number(number: &impl ToString) -> Self {
        Self {
            text: number.to_string(),
            kind: Kind::Number,
        }
    }

    pub(super) fn time(time: Timestamp) -> Self {
        Self {
            text: format!("{time:.0}"),
            kind: Kind::Time,
        }
    }

    pub(super) fn link(text: impl Into<String>, address: &str) -> Self {
        Self {
            text: text.into(),
            kind: Kind::Link(address.to_owned()),
        }
    }
}

impl Display for Cell {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let text = Escaped(&self.text);
        match &self.kind {
            Kind::Text => write!(f, "<td>{text}</td>"),
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

/// A section with the table. Without rows, it shows `empty`.
pub(super) fn table<const COLUMNS: usize>(
    caption: &str,
    columns: &[&str; COLUMNS],
    rows: impl IntoIterator<Item = [Cell; COLUMNS]>,
    empty: &str,
) -> String {
    let mut body = String::new();
    for row in rows {
        body.push_str("<tr>");
        for cell in row {
            write!(body, "{cell}").expect("writing into memory does not fail");
        }
        body.push_str("</tr>\n");
    }
    if body.is_empty() {
        let empty = Escaped(empty);
        body = format!("<tr><td colspan=\"{COLUMNS}\">{empty}</td></tr>\n");
    }
    let heads: String = columns
        .iter()
        .map(|column| format!("<th scope=\"col\">{}</th>", Escaped(column)))
        .collect();
    let caption = Escaped(caption);
    format!(
        "<section>\n<table>\n<caption>{caption}</caption>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}</tbody>\n\
         </table>\n</section>\n"
    )
}
