//! Parsers of values.

use std::path::{Component, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use crate::model::driver::{is_domain, is_label};
use crate::model::{Bytes, Category, InvalidId};

/// The text if it fits.
///
/// # Errors
/// The allowed values.
pub(super) fn accept(text: &str, fits: bool, allowed: &str) -> Result<String, String> {
    fits.then(|| text.to_owned())
        .ok_or_else(|| format!("allowed: {allowed}"))
}

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
    let mut known = Category::KNOWN.iter().cloned();
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
    match duration(text) {
        Ok(Duration::ZERO) => Ok(Interval(None)),
        Ok(interval) if interval >= Duration::from_secs(10) => Ok(Interval(Some(interval))),
        _ => Err("allowed: a duration such as 5m, at least 10s, or 0s for never".to_owned()),
    }
}

/// Whole numbers of at most nine digits, each with its unit. Other units of the library are ambiguous: `1M` is a month.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let is_unit = |unit: &str| ["ms", "s", "m", "h", "d"].contains(&unit);
    let mut units = text.split(|c: char| c.is_ascii_digit()).filter(|unit| !unit.is_empty());
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    let fits = units.all(is_unit) && numbers.all(|number| number.len() <= 9);
    let parsed = fits.then(|| humantime::parse_duration(text).ok()).flatten();
    let with_unit = parsed.filter(|_| text.ends_with(|c: char| c.is_ascii_alphabetic()));
    with_unit.ok_or_else(|| "allowed: a duration such as 500ms, 25s, 2m, 1h30m or 7d".to_owned())
}

/// The ID of a region or zone, which is a part of host names and the value of labels.
pub(crate) fn place<T: FromStr<Err = InvalidId>>(text: &str) -> Result<T, String> {
    let fits = text.len() <= 63 && is_label(text);
    let id = fits.then(|| text.parse().ok()).flatten();
    id.ok_or_else(|| {
        "allowed: lower-case letters, digits and -, at most 63, with a letter or digit at both ends".to_owned()
    })
}

/// An object name: a DNS subdomain (RFC 1123).
pub(crate) fn object_name(text: &str) -> Result<String, String> {
    let allowed = "lower-case letters, digits, - and ., at most 253, with a letter or digit at both ends of each part";
    accept(text, is_domain(text, 253), allowed)
}

/// A taint key: a name of up to 63 letters, digits, `-`, `_` and `.`, optionally after a domain prefix and `/`.
pub(crate) fn taint_key(text: &str) -> Result<String, String> {
    let (domain, own) = match text.split_once('/') {
        Some((domain, own)) => (Some(domain), own),
        None => (None, text),
    };
    let is_end = |c: char| c.is_ascii_alphanumeric();
    let fits = own.len() <= 63
        && own.chars().all(|c| is_end(c) || "-_.".contains(c))
        && own.starts_with(is_end)
        && own.ends_with(is_end)
        && domain.is_none_or(|domain| is_domain(domain, 253));
    let allowed = "the key of a taint, such as diskplugin.csi.example/agent-not-ready, without value and effect";
    accept(text, fits, allowed)
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
        for bad in ["", "A", "a_b", "-a", "a.", "a..b", "a/b", &"a".repeat(254)] {
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
