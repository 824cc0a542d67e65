//! Where values end.

use std::ops::Range;

use super::MASK;
use super::field::is_harmless;
use super::line::{Lines, backslashes, content, escaped_end};

/// How a value without quotation marks ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// With the line.
    Line,
    /// With the line and the following ones that are indented by more than this column, as in YAML.
    Lines(usize),
    /// With the line, or before the next field in it.
    Phrase,
    /// With the next blank.
    Word,
    /// A number or keyword of JSON.
    Scalar,
}

/// Where the value is in the text behind the separator. `before` is the line up to the value.
pub(super) fn extent(text: &str, before: &str, form: Form, lines: Lines) -> Range<usize> {
    // The line is found only where it becomes the value, or lines with many values would be read as often.
    if let Some(quote) = opening_quote(text) {
        let Some(end) = closing_quote(text, quote) else {
            return quote..lines.first(text).len().max(quote);
        };
        let behind = end + quote;
        let last = rest(text, behind, form, lines);
        return match last > behind {
            true => 0..last,
            false => quote..end,
        };
    }
    if let Form::Lines(column) = form {
        let first = lines.first(text);
        let from = first.len();
        return match is_harmless(first) {
            true => 0..from,
            false => 0..lines.block(text, from, column, false),
        };
    }
    if form == Form::Line {
        return 0..lines.first(text).len();
    }
    if form == Form::Scalar {
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
        if end > 0 && text[end..].trim_start().starts_with([',', '}', ']']) {
            return 0..end;
        }
    }
    if form != Form::Phrase
        && let Some(behind) = text.strip_prefix(MASK)
        && !behind.starts_with(|c: char| c.is_ascii_alphanumeric())
    {
        return 0..rest(text, MASK.len(), form, lines);
    }
    let word = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let opens = word.filter(|at| text[*at..].starts_with(['(', '[', '{']));
    if let Some(open) = opens
        && !text.starts_with(MASK)
    {
        let Some(end) = closing_bracket(text, open, lines) else {
            return 0..lines.first(text).len();
        };
        return 0..rest(text, end, form, lines);
    }
    match form {
        Form::Phrase => 0..phrase(text, lines),
        _ => 0..self::word(text, before, lines),
    }
}

/// Where a value ends whose lines follow that of its name: a block of YAML, or a scalar below its name.
pub(super) fn block(text: &str, column: usize, is_quoted: bool, lines: Lines) -> Option<usize> {
    let header = text
        .strip_prefix(['|', '>'])
        .map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit() || "+-".contains(c)));
    let after = header.unwrap_or(text).trim_start_matches([' ', '\t', '\r']);
    let after = match after.starts_with('#') {
        true => &after[lines.first(after).len()..],
        false => after,
    };
    // A carriage return inside a JSON string.
    let escaped = after.trim_start_matches('\\').strip_prefix('r');
    let after = escaped
        .filter(|rest| escaped_end(rest).is_some())
        .unwrap_or(after);
    let lines = match escaped_end(after) {
        Some(length) => Lines {
            backslashes: length - 1,
        },
        None if after.starts_with('\n') => lines,
        None => return None,
    };
    let from = text.len() - after.len();
    let next = lines.end(after).map_or("", |end| &after[end.end..]);
    let next = content(lines.first(next));
    // In JSON, the value may be on the next line.
    if header.is_none() && (is_quoted || is_mapping(next)) {
        return None;
    }
    let end = lines.block(text, from, column, header.is_none());
    (end > from).then_some(end)
}

/// Whether a line of YAML begins with a key.
fn is_mapping(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '\t', '-']);
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-./\"'".contains(c);
    let key = line.trim_start_matches(is_part);
    key.len() < line.len()
        && key
            .strip_prefix(':')
            .is_some_and(|value| value.is_empty() || value.starts_with([' ', '\t', '\r']))
}

/// Where the value ends whose bracket or quotation mark closes at `from`: `ab(c)` can be the beginning of a value.
fn rest(text: &str, from: usize, form: Form, lines: Lines) -> usize {
    let line = &text[from..];
    let word = line.find(|c: char| c.is_whitespace() || c == '&');
    let word = lines.first(&line[..word.unwrap_or(line.len())]);
    let closed = word.trim_start_matches([')', ']', '}', '>']);
    let next = closed.trim_start_matches([',', ';', ':', '.']);
    let is_separated = next.len() < closed.len();
    let opens = opening_quote(next).is_some() || (is_separated && next.starts_with(['{', '[']));
    let ends = next.is_empty() || opens || (is_separated && begins_field(next));
    let end = if ends { 0 } else { word.len() };
    let has_more = form == Form::Phrase && word.is_empty() && {
        let next = line.trim_start_matches([' ', '\t']);
        next.starts_with(|c: char| c.is_alphanumeric()) && !begins_field(next)
    };
    match has_more {
        true => from + phrase(line, lines),
        false => from + end,
    }
}

/// Whether the text begins with a name and a separator.
fn begins_field(text: &str) -> bool {
    after_name(text).is_some_and(|rest| rest.starts_with(['=', ':']))
}

/// The text behind the name that it begins with.
fn after_name(text: &str) -> Option<&str> {
    let is_named = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let is_part = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    is_named.then(|| text.trim_start_matches(is_part))
}

/// The length of a value of several words: up to `, `, `; ` or the next `key=value`.
fn phrase(text: &str, lines: Lines) -> usize {
    let ends = text.char_indices().find(|(at, c)| {
        let next = &text[at + c.len_utf8()..];
        let is_last = next.is_empty() || next.starts_with(char::is_whitespace);
        match c {
            '\n' => true,
            ',' | ';' => is_last,
            c if c.is_whitespace() => {
                let value = after_name(next).and_then(|rest| rest.strip_prefix('='));
                // Padding of base64 is not a separator.
                value.is_some_and(|value| {
                    !value.starts_with(|c: char| c.is_whitespace() || c == '=')
                })
            }
            _ => false,
        }
    });
    lines
        .first(&text[..ends.map_or(text.len(), |(at, _)| at)])
        .len()
}

/// The length of a value without blanks. A quotation mark ends it only if it can close one in the line before.
fn word(text: &str, before: &str, lines: Lines) -> usize {
    let ends = text.char_indices().find(|(at, c)| {
        let next = text[at + c.len_utf8()..].chars().next();
        match c {
            '&' => true,
            '"' | '\'' => before.contains(*c) && next.is_none_or(|next| !next.is_alphanumeric()),
            c => c.is_whitespace(),
        }
    });
    let value = lines.first(&text[..ends.map_or(text.len(), |(at, _)| at)]);
    match ends {
        Some((_, '"' | '\'')) => value.trim_end_matches('\\').len(),
        _ => value.len(),
    }
}

/// The length of a quotation mark with the backslashes before it.
pub(super) fn opening_quote(text: &str) -> Option<usize> {
    let backslashes = backslashes(text);
    text[backslashes..]
        .starts_with(['"', '\''])
        .then_some(backslashes + 1)
}

/// The index of what closes the string that opens with `quote` bytes: a string inside a string has its backslashes doubled.
fn closing_quote(text: &str, quote: usize) -> Option<usize> {
    let mark = char::from(text.as_bytes()[quote - 1]);
    let outer = quote - 1;
    let mut from = quote;
    loop {
        let mark_at = from + text[from..].find(mark)?;
        let inside = &text[quote..mark_at];
        let backslashes = inside.len() - inside.trim_end_matches('\\').len();
        from = mark_at + 1;
        // In YAML, a single quotation mark is written as two.
        if mark == '\'' && outer == 0 && mark_at > quote && text[from..].starts_with(mark) {
            from += 1;
            continue;
        }
        if backslashes % (2 * (outer + 1)) == outer {
            return Some(mark_at - outer);
        }
    }
}

/// The index behind the bracket that closes the one at `open` in the same line, without those in strings.
fn closing_bracket(text: &str, open: usize, lines: Lines) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, open);
    while at < text.len() {
        let rest = &text[at..];
        if let Some(quote) = opening_quote(rest) {
            at += closing_quote(rest, quote)? + quote;
            continue;
        }
        let next = rest.chars().next()?;
        match next {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            '\n' => return None,
            '\\' if lines
                .end(&rest[..rest.len().min(lines.backslashes + 1)])
                .is_some() =>
            {
                return None;
            }
            _ => {}
        }
        at += next.len_utf8();
        if depth == 0 {
            return Some(at);
        }
    }
    None
}
