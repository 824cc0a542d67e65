//! Lines of texts, also of texts inside JSON strings, where the end of a line is written as `\n`.

use std::ops::Range;

/// The strings in double quotation marks that are open at a place, which only moves forward.
#[derive(Debug)]
pub(super) struct Strings<'a> {
    text: &'a str,
    at: usize,
    line_start: usize,
    /// The innermost is last.
    open: Vec<Open>,
}

#[derive(Debug)]
struct Open {
    /// Backslashes before the quotation marks of the string. A string inside a string has more.
    backslashes: usize,
    end: Option<usize>,
}

impl Open {
    fn closes(&self, backslashes: usize) -> bool {
        backslashes % (2 * (self.backslashes + 1)) == self.backslashes
    }
}

impl<'a> Strings<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            line_start: 0,
            open: Vec::new(),
        }
    }

    /// Where the innermost string or, outside of strings, the text ends, and how lines end there.
    pub(super) fn region(&mut self, at: usize) -> (usize, Lines) {
        self.advance(at);
        let (text, from) = (self.text, self.at);
        let Some(open) = self.open.last_mut() else {
            return (text.len(), Lines { backslashes: 0 });
        };
        let lines = Lines {
            backslashes: open.backslashes + 1,
        };
        let end = match open.end {
            Some(end) if end >= at => end,
            _ => end_of_string(text, from, open),
        };
        open.end = Some(end);
        (end, lines)
    }

    /// The line of `at` up to it.
    pub(super) fn line_before(&mut self, at: usize) -> &'a str {
        self.advance(at);
        self.text.get(self.line_start..at).unwrap_or_default()
    }

    fn advance(&mut self, to: usize) {
        let bytes = self.text.as_bytes();
        while self.at < to {
            let rest = &bytes[self.at..to];
            let Some(found) = rest.iter().position(|byte| b"\\\"\n".contains(byte)) else {
                self.at = to;
                return;
            };
            let start = self.at + found;
            let backslashes = backslashes(&self.text[start..]);
            let mark = start + backslashes;
            self.at = mark.max(start + 1);
            match bytes.get(mark) {
                Some(b'"') => {
                    self.at = mark + 1;
                    self.quote(backslashes);
                }
                // Strings of JSON and fields of log lines do not span lines.
                Some(b'\n') => {
                    self.at = mark + 1;
                    self.line_start = self.at;
                    self.open.clear();
                }
                _ => {}
            }
        }
    }

    fn quote(&mut self, backslashes: usize) {
        let closed = self.open.iter().rposition(|open| open.closes(backslashes));
        match closed {
            Some(closed) => self.open.truncate(closed),
            None => self.open.push(Open {
                backslashes,
                end: None,
            }),
        }
    }
}

/// A quotation mark that is followed by a letter is one inside the text.
fn end_of_string(text: &str, from: usize, open: &Open) -> usize {
    let marks = text[from..].match_indices(['"', '\n']);
    let mut ends = marks.filter_map(|(index, mark)| {
        let at = from + index;
        if mark == "\n" {
            return Some(at);
        }
        let before = &text[from..at];
        let backslashes = before.len() - before.trim_end_matches('\\').len();
        let next = text[at + 1..].chars().next();
        let is_last = next.is_none_or(|next| !next.is_alphanumeric());
        (is_last && open.closes(backslashes)).then(|| at - open.backslashes)
    });
    ends.next().unwrap_or(text.len())
}

/// More than the bytes of a time in a log of Kubernetes.
const LONGEST_TIME: usize = 48;

/// How lines end, besides by a newline.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines {
    /// Backslashes before an `n`; 0 if only a newline ends a line.
    pub(super) backslashes: usize,
}

impl Lines {
    /// The first line end.
    pub(super) fn end(self, text: &str) -> Option<Range<usize>> {
        if self.backslashes == 0 {
            let newline = text.find('\n')?;
            return Some(newline..newline + 1);
        }
        let mut at = 0;
        loop {
            let found = text[at..].find(['\n', '\\'])?;
            let start = at + found;
            let backslashes = backslashes(&text[start..]);
            if backslashes == 0 {
                return Some(start..start + 1);
            }
            at = start + backslashes;
            if backslashes == self.backslashes && text[at..].starts_with('n') {
                return Some(start..at + 1);
            }
        }
    }

    pub(super) fn first(self, text: &str) -> &str {
        &text[..self.end(text).map_or(text.len(), |end| end.start)]
    }

    /// Where the lines behind that of `from` end that are indented by more than `column`. A list may begin in that column.
    pub(super) fn block(self, text: &str, from: usize, column: usize, with_list: bool) -> usize {
        let (mut end, mut at) = (from, from);
        while let Some(next) = self.end(&text[at..]) {
            at += next.end;
            let line = self.first(&text[at..]);
            let content = content(line);
            if is_blank(content) {
                continue;
            }
            let own = indentation(content);
            let is_item = with_list && own == column && content[own..].starts_with("- ");
            if own <= column && !is_item {
                break;
            }
            end = at + line.len();
        }
        end
    }
}

pub(super) fn backslashes(text: &str) -> usize {
    text.len() - text.trim_start_matches('\\').len()
}

/// The length of an escaped line end, with its backslashes.
pub(super) fn escaped_end(text: &str) -> Option<usize> {
    let backslashes = backslashes(text);
    let escaped = text[backslashes..].starts_with('n');
    (backslashes > 0 && escaped).then_some(backslashes + 1)
}

/// The line without the time that logs of Kubernetes begin lines with.
pub(super) fn content(line: &str) -> &str {
    let is_time = |part: &str| {
        let bytes = part.as_bytes();
        let is_part = |byte: &u8| byte.is_ascii_digit() || b"-+:.TZ".contains(byte);
        bytes.len() >= "2006-01-02T15:04:05Z".len()
            && bytes[0].is_ascii_digit()
            && bytes[10] == b'T'
            && bytes.iter().all(is_part)
    };
    match line.split_once(' ') {
        Some((time, rest)) if is_time(time) => rest,
        _ => line,
    }
}

pub(super) fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

fn is_blank(line: &str) -> bool {
    let line = line.trim();
    line.trim_start_matches('\\').is_empty() || line.trim_start_matches('\\') == "r"
}

/// The column of the name that ends a line that has only blanks and dashes before it; none otherwise.
pub(super) fn column(before: &str) -> Option<usize> {
    let base = before.trim_end_matches([' ', '\t', '-']);
    let column = before.len() - base.len();
    let unescaped = base.strip_suffix('n');
    if base.is_empty()
        || base.ends_with(['\n', '"'])
        || unescaped.is_some_and(|base| base.ends_with('\\'))
    {
        return Some(column);
    }
    let mut end = base.bytes().rev().take(LONGEST_TIME);
    let line = match end.position(|byte| byte == b'\n') {
        Some(length) => base.len() - length,
        None if base.len() <= LONGEST_TIME => 0,
        None => return None,
    };
    let line = &before[line..];
    let content = content(line);
    (content.len() < line.len() && content.len() <= column).then_some(content.len())
}
