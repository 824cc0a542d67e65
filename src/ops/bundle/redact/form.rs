//! Finds secrets by their form.

use std::ops::Range;

use super::MASK;

/// Finds the places of secrets of one form.
type Step = fn(&str) -> Vec<Range<usize>>;

pub(super) fn redact(text: &str) -> String {
    let steps: [Step; 5] = [
        private_keys,
        access_keys,
        web_tokens,
        authorizations,
        user_infos,
    ];
    steps.iter().fold(text.to_owned(), |text, find| {
        let found = find(&text);
        mask(&text, &found)
    })
}

fn mask(text: &str, found: &[Range<usize>]) -> String {
    let (mut out, mut copied) = (String::with_capacity(text.len()), 0);
    for range in found {
        if range.start >= copied {
            out.push_str(&text[copied..range.start]);
            out.push_str(MASK);
            copied = range.end;
        }
    }
    out.push_str(&text[copied..]);
    out
}

/// The length of what belongs to a token at the beginning of the text.
fn run(text: &str, more: &[u8]) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || more.contains(byte);
    let bytes = text.as_bytes();
    bytes
        .iter()
        .position(|byte| !is_part(byte))
        .unwrap_or(bytes.len())
}

/// IDs of access keys (LTAI…, STS.…) and security tokens (CAIS…).
fn access_keys(text: &str) -> Vec<Range<usize>> {
    let forms: [(&str, &[u8], usize); 3] = [
        ("LTAI", b"", 12),
        ("STS.", b"._-", 12),
        ("CAIS", b"+/=_-%", 24),
    ];
    let mut found: Vec<_> = forms
        .iter()
        .flat_map(|(start, more, least)| {
            text.match_indices(start).filter_map(|(at, _)| {
                let length = run(&text[at..], more);
                (length >= *least).then_some(at..at + length)
            })
        })
        .collect();
    found.sort_by_key(|range| range.start);
    found
}

/// JSON Web Tokens: base64url of `{"`, a dot, and more.
fn web_tokens(text: &str) -> Vec<Range<usize>> {
    let starts = text.match_indices("eyJ");
    starts
        .filter_map(|(at, _)| {
            let length = run(&text[at..], b"._-=");
            let token = &text[at..at + length];
            (length >= 16 && token.contains('.')).then_some(at..at + length)
        })
        .collect()
}

/// Credentials behind a scheme of HTTP.
fn authorizations(text: &str) -> Vec<Range<usize>> {
    let lower = text.to_ascii_lowercase();
    let mut found = Vec::new();
    for scheme in ["bearer", "basic"] {
        for (at, _) in lower.match_indices(scheme) {
            let rest = &text[at + scheme.len()..];
            let value = rest.trim_start_matches([' ', '\t']);
            let value = value.strip_prefix("%20").unwrap_or(value);
            let gap = rest.len() - value.len();
            let length = run(value, b"._~+/=-%");
            // In a query, + is a blank.
            if (gap > 0 || value.starts_with('+')) && length >= 8 {
                let start = at + scheme.len() + gap;
                found.push(start..start + length);
            }
        }
    }
    found.sort_by_key(|range| range.start);
    found
}

/// User and password in a URL.
fn user_infos(text: &str) -> Vec<Range<usize>> {
    let starts = text.match_indices("://");
    starts
        .filter_map(|(at, mark)| {
            let start = at + mark.len();
            let end = text[start..].find(|c: char| c.is_whitespace() || "/?#\"'<>".contains(c));
            let authority = &text[start..end.map_or(text.len(), |end| start + end)];
            let length = authority.rfind('@').filter(|length| *length > 0)?;
            Some(start..start + length)
        })
        .collect()
}

/// Private keys in PEM, up to the end of the text if it was cut.
fn private_keys(text: &str) -> Vec<Range<usize>> {
    let starts = text.match_indices("-----BEGIN ");
    starts
        .filter_map(|(at, _)| {
            let header = text[at..].find("PRIVATE KEY-----")?;
            if text[at + 11..at + header].contains("-----") {
                return None;
            }
            let end = text[at..].find("-----END ").map(|end| at + end + 9);
            let end = end.and_then(|end| Some(end + text[end..].find("-----")? + 5));
            Some(at..end.unwrap_or(text.len()))
        })
        .collect()
}
