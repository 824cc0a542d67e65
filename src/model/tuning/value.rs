//! Values of filesystem parameters.

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key:?} has value {value:?}; allowed: {allowed}")]
pub struct InvalidTuning {
    pub key: &'static str,
    pub value: String,
    pub allowed: String,
}

impl InvalidTuning {
    pub(super) fn new(key: &'static str, value: &str, allowed: &str) -> Self {
        Self {
            key,
            value: value.to_owned(),
            allowed: allowed.to_owned(),
        }
    }
}

/// A power of two of bytes within bounds, with an optional suffix k, m or g; none if empty.
///
/// # Errors
/// The allowed values.
pub(super) fn power(text: &str, least: u64, most: u64) -> Result<Option<u64>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    size(text)
        .filter(|n| n.is_power_of_two() && (least..=most).contains(n))
        .map(Some)
        .ok_or_else(|| format!("a power of two from {least} to {most}, in bytes; k and m are allowed"))
}

/// A number of digits only, without sign and spaces.
pub(super) fn number(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

fn size(text: &str) -> Option<u64> {
    let unit = match text.bytes().last()?.to_ascii_lowercase() {
        b'k' => 1 << 10,
        b'm' => 1 << 20,
        b'g' => 1 << 30,
        _ => return number(text),
    };
    number(text.get(..text.len() - 1)?)?.checked_mul(unit)
}

pub(super) fn label(text: &str) -> Result<Option<String>, &'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    // Otherwise the value could be parsed as an option.
    if text.starts_with('-') || !text.chars().all(fits) || text.len() > 255 {
        return Err("letters, digits, dot, dash and underscore, not beginning with a dash");
    }
    Ok(Some(text.to_owned()).filter(|text| !text.is_empty()))
}
