//! Environment variables of the vendor's SDKs.

/// An environment variable; an empty value is `None`. A value that is not UTF-8 has U+FFFD, which no setting accepts.
pub fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?;
    Some(value.to_string_lossy().trim().to_owned()).filter(|value| !value.is_empty())
}

/// Whether a switch of the vendor's SDKs is on: they accept only `true`.
pub fn is_on(value: Option<String>) -> bool {
    value.is_some_and(|value| value.eq_ignore_ascii_case("true") || value == "1")
}
