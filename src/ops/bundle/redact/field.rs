//! Finds the values of fields with the names of secrets: in JSON, also inside strings, YAML, headers, queries of URLs,
//! command lines, and the texts of log lines.

use std::ops::Range;

use super::MASK;
use super::name::{is_header, is_sensitive};

/// Values that are not secrets, whatever the name of their field: none, and versions of signatures.
const HARMLESS: [&str; 9] = ["", "null", "true", "false", "None", "v1", "v3", "[", "{"];

pub(super) fn is_harmless(value: &str) -> bool {
    HARMLESS.contains(&value.trim().trim_end_matches([',', ']', '}', ')']))
}

pub(super) fn redact(text: &str) -> String {
    let (mut out, mut copied, mut at) = (String::with_capacity(text.len()), 0, 0);
    while let Some(name) = next_name(text, at) {
        at = name.end;
        if !is_sensitive(&text[name.clone()]) {
            continue;
        }
        let Some(value) = value_of(text, name) else {
            continue;
        };
        if is_harmless(&text[value.clone()]) {
            continue;
        }
        out.push_str(&text[copied..value.start]);
        out.push_str(MASK);
        (copied, at) = (value.end, value.end);
    }
    out.push_str(&text[copied..]);
    out
}

fn next_name(text: &str, from: usize) -> Option<Range<usize>> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let bytes = text.as_bytes().get(from..)?;
    let start = from + bytes.iter().position(is_part)?;
    let rest = &text.as_bytes()[start..];
    let length = rest.iter().position(|byte| !is_part(byte));
    Some(start..start + length.unwrap_or(rest.len()))
}

/// Where the value of this field is, if it is one.
fn value_of(text: &str, name: Range<usize>) -> Option<Range<usize>> {
    let (before, after) = (&text[..name.start], &text[name.end..]);
    // Modules of Rust.
    if before.ends_with("::") || after.starts_with("::") {
        return None;
    }
    if let Some(value) = value_of_pair(text, name.end) {
        return Some(value);
    }
    let quoted = opening_quote(after).unwrap_or(0);
    let gap = blank(&after[quoted..], quoted > 0);
    let at = quoted + gap;
    let is_flag = text[name.clone()].starts_with("--");
    let separator = separator(&after[at..], quoted > 0);
    let at = match separator {
        Some(length) => at + length + blank(&after[at + length..], quoted > 0),
        None if is_flag && gap > 0 && !after[at..].starts_with('-') => at,
        None => return None,
    };
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let begins_line = before[line_start..]
        .bytes()
        .all(|byte| b" \t-".contains(&byte));
    let is_colon = separator.is_some() && after[quoted + gap..].starts_with(':');
    let is_line = is_header(&text[name.clone()]) || (begins_line && is_colon);
    let start = name.end + at;
    let value = extent(&text[start..], is_line);
    Some(start + value.start..start + value.end)
}

/// Where the value of the pair is whose name ends here, such as an environment variable in a manifest:
/// `"name":"NAME","value":"VALUE"`, or `name: NAME` and `value: VALUE` on the next line.
fn value_of_pair(text: &str, name: usize) -> Option<Range<usize>> {
    let after = &text[name..];
    let key = after.trim_start_matches(|c: char| c.is_whitespace() || "\\\"',".contains(c));
    let is_separated = after[..after.len() - key.len()].contains([',', '\n']);
    let rest = key.strip_prefix("value").filter(|_| is_separated)?;
    let rest = rest
        .trim_start_matches(['\\', '"', '\''])
        .strip_prefix(':')?;
    let value = &rest[blank(rest, false)..];
    let start = text.len() - value.len();
    let value = extent(value, true);
    Some(start + value.start..start + value.end)
}

/// The length of blanks; also of line ends, between the tokens of a document.
fn blank(text: &str, with_lines: bool) -> usize {
    let is_blank = |c: char| c == ' ' || c == '\t' || (with_lines && "\r\n".contains(c));
    text.len() - text.trim_start_matches(is_blank).len()
}

fn separator(text: &str, is_quoted: bool) -> Option<usize> {
    let mut known = ["%3D", "%3d", "%3A", "%3a", "=>", ":=", "=", ":"].iter();
    let found = known.find(|one| text.starts_with(**one));
    let length = found.map(|one| one.len());
    // A flag and its value in a list, or a header as a pair.
    length.or_else(|| (is_quoted && text.starts_with(',')).then_some(1))
}

/// The length of a quotation mark with the backslashes before it.
fn opening_quote(text: &str) -> Option<usize> {
    let backslashes = text.len() - text.trim_start_matches('\\').len();
    text[backslashes..]
        .starts_with(['"', '\''])
        .then_some(backslashes + 1)
}

/// Where the value is in the text behind the separator.
fn extent(text: &str, is_line: bool) -> Range<usize> {
    let line = text.find('\n').unwrap_or(text.len());
    if let Some(quote) = opening_quote(text) {
        let end = closing_quote(text, quote).unwrap_or(line);
        return quote..end.max(quote);
    }
    if is_line {
        return 0..line;
    }
    if let Some(rest) = text.strip_prefix(MASK)
        && !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
    {
        return 0..MASK.len();
    }
    let word = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let opens = word.filter(|at| text[*at..].starts_with(['(', '[', '{']));
    if let Some(open) = opens
        && open < line
        && !text.starts_with(MASK)
    {
        return 0..closing_bracket(text, open).unwrap_or(line);
    }
    let ends = |c: char| c.is_whitespace() || "\"'&".contains(c);
    let value = &text[..text.find(ends).unwrap_or(text.len())];
    0..value.trim_end_matches('\\').len()
}

/// The index of what closes the string that opens with `quote` bytes: a string inside a string has its backslashes doubled.
fn closing_quote(text: &str, quote: usize) -> Option<usize> {
    let mark = char::from(text.as_bytes()[quote - 1]);
    let outer = quote - 1;
    let mut candidates = text[quote..].match_indices(mark);
    candidates.find_map(|(index, _)| {
        let inside = &text[quote..quote + index];
        let backslashes = inside.len() - inside.trim_end_matches('\\').len();
        let closes = backslashes % (2 * (outer + 1)) == outer;
        closes.then(|| quote + index - outer)
    })
}

/// The index behind the bracket that closes the one at `open`, without those in strings.
fn closing_bracket(text: &str, open: usize) -> Option<usize> {
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
            _ => {}
        }
        at += next.len_utf8();
        if depth == 0 {
            return Some(at);
        }
    }
    None
}
