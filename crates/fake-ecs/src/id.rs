//! Valid IDs of instances and zones.

const MAX_LENGTH: usize = 64;

/// `i-` and letters or digits.
pub(crate) fn is_instance(text: &str) -> bool {
    text.len() <= MAX_LENGTH
        && text
            .strip_prefix("i-")
            .is_some_and(|body| !body.is_empty() && body.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Letters, digits, `-`, `_` and `.`, such as `cn-beijing-a`.
pub(crate) fn is_zone(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !text.is_empty() && text.len() <= MAX_LENGTH && text.bytes().all(is_plain) && !text.starts_with('.')
}
