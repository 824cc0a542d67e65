//! Parsers of values.

use std::path::{Component, PathBuf};
use std::time::Duration;

use crate::model::{Bytes, Category};

/// An absolute path without `..`, and not the root.
pub(crate) fn directory(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let ascends = path.components().any(|part| part == Component::ParentDir);
    if !path.is_absolute() || ascends || path.file_name().is_none() {
        return Err("allowed: an absolute path without \"..\", and not the root".to_owned());
    }
    Ok(path.components().collect())
}

pub(crate) fn category(text: &str) -> Result<Category, String> {
    let name = text.trim().to_ascii_lowercase();
    let mut known = Category::KNOWN.into_iter();
    known.find(|category| category.as_str() == name).ok_or_else(|| {
        let names: Vec<_> = Category::KNOWN.iter().map(Category::as_str).collect();
        format!("allowed: {}", names.join(", "))
    })
}

pub(crate) fn memory(text: &str) -> Result<Bytes, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" => Some(1),
        "Ki" => Some(1 << 10),
        "Mi" => Some(1 << 20),
        "Gi" => Some(1 << 30),
        _ => None,
    };
    let number: Option<u64> = digits.parse().ok();
    unit.zip(number)
        .and_then(|(unit, number)| number.checked_mul(unit))
        .filter(|&bytes| bytes >= 16 << 20)
        .map(Bytes)
        .ok_or_else(|| "allowed: a whole number with Ki, Mi or Gi, at least 16Mi".to_owned())
}

/// The time between two repetitions; none if there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval(pub Option<Duration>);

pub(crate) fn interval(text: &str) -> Result<Interval, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Ok(Interval(None)),
        Ok(interval) if interval >= Duration::from_secs(10) => Ok(Interval(Some(interval))),
        _ => Err("allowed: a duration such as 5m, at least 10s, or 0s for never".to_owned()),
    }
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let parsed = humantime::parse_duration(text);
    parsed.map_err(|_| "allowed: a duration such as 500ms, 25s, 2m or 1h".to_owned())
}

/// Whether a name has these characters at both ends, and between them also those of `inner`.
fn is_name(text: &str, longest: usize, is_end: fn(char) -> bool, inner: &str) -> bool {
    let fits = |c: char| is_end(c) || inner.contains(c);
    text.len() <= longest && text.chars().all(fits) && text.starts_with(is_end) && text.ends_with(is_end)
}

/// An object name: a DNS subdomain (RFC 1123).
pub(crate) fn object_name(text: &str) -> Result<String, String> {
    let fits = is_name(text, 253, |c| c.is_ascii_lowercase() || c.is_ascii_digit(), "-.");
    match fits {
        true => Ok(text.to_owned()),
        false => Err(
            "allowed: lower-case letters, digits, - and ., at most 253, with a letter or digit at both ends".to_owned(),
        ),
    }
}

/// A taint key: a name of up to 63 letters, digits, `-`, `_` and `.`, optionally after a domain prefix and `/`.
pub(crate) fn taint_key(text: &str) -> Result<String, String> {
    let (domain, own) = match text.split_once('/') {
        Some((domain, own)) => (Some(domain), own),
        None => (None, text),
    };
    let fits = is_name(own, 63, |c| c.is_ascii_alphanumeric(), "-_.")
        && domain.is_none_or(|domain| object_name(domain).is_ok());
    match fits {
        true => Ok(text.to_owned()),
        false => Err(
            "allowed: the key of a taint, such as diskplugin.csi.example/agent-not-ready, without value and effect"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_a_number_with_a_unit_and_a_minimum() {
        assert_eq!(memory("256Mi"), Ok(Bytes(256 << 20)));
        assert_eq!(memory("33554432"), Ok(Bytes(32 << 20)));
        for text in ["", "Mi", "1Mi", "256M", "-1Gi", "99999999999Gi"] {
            assert!(memory(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_directory_is_absolute_and_not_the_root() {
        for text in ["", "kubelet", "/", "/var/../etc"] {
            assert!(directory(text).is_err(), "{text}");
        }
        let path = directory("/var/lib//kubelet/").unwrap();
        assert_eq!(path.to_str(), Some("/var/lib/kubelet"));
    }

    #[test]
    fn names_and_taint_keys_follow_the_rules_of_kubernetes() {
        for good in ["a", "disks-instance-types", "a.b-1"] {
            assert!(object_name(good).is_ok(), "{good}");
        }
        for bad in ["", "A", "a_b", "-a", "a.", "a/b", &"a".repeat(254)] {
            assert!(object_name(bad).is_err(), "{bad}");
        }
        for good in ["not-ready", "diskplugin.csi.example/agent-not-ready", "A_b.c"] {
            assert!(taint_key(good).is_ok(), "{good}");
        }
        for bad in ["", "/a", "a/", "x/y/z", "a:NoExecute", "a=b", "é", &"a".repeat(64)] {
            assert!(taint_key(bad).is_err(), "{bad}");
        }
    }
}
