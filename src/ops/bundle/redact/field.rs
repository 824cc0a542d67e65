//! Finds the values of fields with the names of secrets: in JSON, also inside strings, YAML, headers, queries of URLs,
//! command lines, and the texts of log lines.

use std::ops::Range;

use super::MASK;
use super::extent::{Form, block, extent, opening_quote};
use super::line::{self, Strings, escaped_end};
use super::name::{is_header, is_phrase, is_resource, is_sensitive, spaced};

/// Values that are not secrets, whatever the name of their field: none, and versions of signatures.
const HARMLESS: [&str; 9] = ["", "null", "true", "false", "None", "v1", "v3", "[", "{"];

pub(super) fn is_harmless(value: &str) -> bool {
    HARMLESS.contains(&value.trim().trim_end_matches([',', ']', '}', ')']))
}

pub(super) fn redact(text: &str) -> String {
    let (mut out, mut copied) = (String::with_capacity(text.len()), 0);
    for value in find(text) {
        out.push_str(&text[copied..value.start]);
        out.push_str(MASK);
        copied = value.end;
    }
    out.push_str(&text[copied..]);
    out
}

/// The values of fields that are named like secrets, in their order.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 0);
    let mut strings = Strings::new(text);
    while let Some(name) = next_name(text, at) {
        at = name.end;
        let value = match &text[name.clone()] {
            "value" => value_before_name(text, &name, &mut strings),
            named if is_sensitive(named) => value_of(text, name, &mut strings),
            _ => None,
        };
        if let Some(value) = value.filter(|value| !is_harmless(&text[value.clone()])) {
            at = value.end.max(at);
            found.push(value);
        }
    }
    found
}

fn next_name(text: &str, from: usize) -> Option<Range<usize>> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.".contains(byte);
    let bytes = text.as_bytes().get(from..)?;
    let mut start = from + bytes.iter().position(is_part)?;
    let rest = &text.as_bytes()[start..];
    let length = rest.iter().position(|byte| !is_part(byte));
    let end = start + length.unwrap_or(rest.len());
    // The letter of an escaped line end or tab, unless the name is one only with it.
    let is_escaped = text[..start].ends_with('\\') && text[start..].starts_with(['n', 'r', 't']);
    let is_whole = is_sensitive(&text[start..end]) && !is_sensitive(&text[start + 1..end]);
    if is_escaped && !is_whole {
        start += 1;
    }
    let start = spaced(&text[..end]).map_or(start, |length| end - length);
    Some(start..end)
}

/// Where the value of this field is, if it is one.
fn value_of(text: &str, name: Range<usize>, strings: &mut Strings<'_>) -> Option<Range<usize>> {
    let (before, after) = (&text[..name.start], &text[name.end..]);
    // Modules of Rust.
    if before.ends_with("::") || after.starts_with("::") {
        return None;
    }
    if let Some(value) = value_after_name(text, name.end, strings) {
        return Some(value);
    }
    let named = &text[name.clone()];
    let quoted = opening_quote(after).unwrap_or(0);
    let gap = blank(&after[quoted..], quoted > 0);
    let rest = &after[quoted + gap..];
    let is_string = quoted > 0 && before.ends_with(['"', '\'']) && !is_resource(named);
    let value = match separator(rest, is_string) {
        Some(length) => &rest[length..],
        None if named.starts_with("--") && gap > 0 && !begins_flag(rest) => rest,
        None => return None,
    };
    let is_colon = rest.starts_with(':');
    let begins_line = (quoted == 0 && is_colon).then(|| line::column(before));
    let column = begins_line.flatten();
    let form = match column {
        Some(column) => Form::Lines(column),
        None if is_header(named) => Form::Line,
        None if quoted > 0 => Form::Scalar,
        None if is_colon && is_phrase(named) && value.starts_with(' ') => Form::Phrase,
        None => Form::Word,
    };
    let start = text.len() - value.len();
    value_at(text, start, form, quoted > 0, strings)
}

/// The value at or behind `start`, in the string that it is in. `is_quoted` is that of its name.
fn value_at(
    text: &str,
    start: usize,
    form: Form,
    is_quoted: bool,
    strings: &mut Strings<'_>,
) -> Option<Range<usize>> {
    let column = match form {
        Form::Lines(column) => column,
        _ => line::indentation(line::content(strings.line_before(start))),
    };
    let first = start + blank(&text[start..], false);
    let (end, lines) = strings.region(first);
    let region = text.get(first..end)?;
    if let Some(length) = block(region, column, is_quoted, lines) {
        return Some(first..first + length);
    }
    let start = start + blank(&text[start..end.max(start)], is_quoted);
    let (end, lines) = strings.region(start);
    let before = strings.line_before(start);
    let value = extent(text.get(start..end)?, before, form, lines);
    Some(start + value.start..start + value.end)
}

/// Where the value of the pair is whose name ends here, such as an environment variable in a manifest:
/// `"name":"NAME","value":"VALUE"`, or `name: NAME` and `value: VALUE` on the next line.
fn value_after_name(text: &str, name: usize, strings: &mut Strings<'_>) -> Option<Range<usize>> {
    let key = next_key(&text[name..])?;
    let rest = key.strip_prefix("value")?;
    let start = text.len() - rest.len();
    value_of_key(text, start - "value".len()..start, strings)
}

/// As [`value_after_name`], for the other order: where the value of this key is, if a name like that of a secret follows.
fn value_before_name(
    text: &str,
    key: &Range<usize>,
    strings: &mut Strings<'_>,
) -> Option<Range<usize>> {
    let value = value_of_key(text, key.clone(), strings)?;
    let next = next_key(&text[value.end..])?;
    let rest = next.strip_prefix("name").or(next.strip_prefix("key"))?;
    let rest = rest
        .trim_start_matches(['\\', '"', '\''])
        .strip_prefix(':')?;
    let rest = rest.trim_start_matches([' ', '\t', '\\', '"', '\'']);
    let name = next_name(rest, 0).filter(|name| name.start == 0)?;
    is_sensitive(&rest[name]).then_some(value)
}

/// The value of the key of a pair.
fn value_of_key(text: &str, key: Range<usize>, strings: &mut Strings<'_>) -> Option<Range<usize>> {
    let after = &text[key.end..];
    let quoted = opening_quote(after).unwrap_or(0);
    let rest = after[quoted..].strip_prefix(':')?;
    let form = match quoted > 0 {
        true => Form::Scalar,
        false => line::column(&text[..key.start]).map_or(Form::Line, Form::Lines),
    };
    value_at(text, text.len() - rest.len(), form, quoted > 0, strings)
}

/// The text from the next key of the same object on, behind the end of a value.
fn next_key(text: &str) -> Option<&str> {
    let (mut rest, mut is_separated) = (text, false);
    loop {
        let before = rest;
        is_separated |= rest.starts_with([',', '\n']);
        if let Some(length) = escaped_end(rest) {
            is_separated = true;
            rest = &rest[length..];
        } else {
            let next = |c: char| c.is_whitespace() || "\\\"',".contains(c);
            rest = rest.strip_prefix(next).unwrap_or(rest);
        }
        if rest.len() == before.len() {
            return is_separated.then_some(rest);
        }
    }
}

/// The length of blanks; also of line ends, between the tokens of a document.
fn blank(text: &str, with_lines: bool) -> usize {
    let is_blank = |c: char| c == ' ' || c == '\t' || (with_lines && "\r\n".contains(c));
    text.len() - text.trim_start_matches(is_blank).len()
}

fn separator(text: &str, is_string: bool) -> Option<usize> {
    let mut known = ["%3D", "%3d", "%3A", "%3a", "=>", ":=", "=", ":"].iter();
    let found = known.find(|one| text.starts_with(**one));
    let length = found.map(|one| one.len());
    // A flag and its value in a list, or a header as a pair.
    length.or_else(|| (is_string && text.starts_with(',')).then_some(1))
}

/// Whether the text begins with a flag: `--flag`, or a short one such as `-v`. A secret can begin with a dash.
fn begins_flag(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('-') else {
        return false;
    };
    let rest = rest.trim_start_matches('\\');
    let letter = rest.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let is_short = rest.len() - letter.len() <= 1;
    rest.starts_with('-')
        || (is_short && (letter.is_empty() || letter.starts_with([' ', '\n', '='])))
}
