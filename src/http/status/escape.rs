//! Text in HTML. Names and messages come from peers.

use std::fmt::{Display, Formatter, Result, Write};

/// Characters of a text. Messages are shorter; a name from a peer can be longer.
const MAX_TEXT: usize = 2048;

/// A text as content of an element or as a quoted value of an attribute. A long text is shortened.
#[derive(Debug)]
pub(super) struct Escaped<T>(pub(super) T);

impl<T: AsRef<str>> Display for Escaped<T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        for (count, c) in self.0.as_ref().chars().enumerate() {
            if count == MAX_TEXT {
                return f.write_char('…');
            }
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                // Not allowed in HTML, or invisible: they can reverse the text that follows.
                c if is_hidden(c) => f.write_char(char::REPLACEMENT_CHARACTER)?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// Control characters except white space, and those that change the direction of the text.
fn is_hidden(c: char) -> bool {
    let is_control = c.is_control() && !matches!(c, '\n' | '\t');
    is_control || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_text() {
        for (text, html) in [
            ("d-1", "d-1"),
            ("", ""),
            ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
            (r#"" onload="x"#, "&quot; onload=&quot;x"),
            ("' onload='x", "&#39; onload=&#39;x"),
            ("&lt;", "&amp;lt;"),
            ("größe 磁盘", "größe 磁盘"),
        ] {
            assert_eq!(Escaped(text).to_string(), html);
        }
    }

    #[test]
    fn hidden_characters_are_replaced() {
        assert_eq!(Escaped("a\0b\u{202e}c\n").to_string(), "a\u{fffd}b\u{fffd}c\n");
    }

    #[test]
    fn a_long_text_is_shortened_between_characters() {
        let shown = Escaped("é<".repeat(MAX_TEXT)).to_string();
        assert!(shown.ends_with("é&lt;…"), "{shown}");
        assert_eq!(shown.matches('é').count(), MAX_TEXT / 2);
        let shown = Escaped("a".repeat(MAX_TEXT)).to_string();
        assert_eq!(shown.len(), MAX_TEXT);
    }
}
