//! Names of disks and snapshots (ECS API, common name rules).

use super::api_error::ApiError;

/// Checks a name. An absent name is valid.
pub(crate) fn check(name: &str, code: &str) -> Result<(), ApiError> {
    let length = name.chars().count();
    let starts_well = name.chars().next().is_some_and(char::is_alphabetic);
    let plain = name
        .chars()
        .all(|c| c.is_alphanumeric() || matches!(c, ':' | '_' | '.' | '-'));
    let linking = name.starts_with("http://") || name.starts_with("https://");
    if name.is_empty() || (2..=128).contains(&length) && starts_well && plain && !linking {
        Ok(())
    } else {
        Err(ApiError::new(400, code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_starts_with_a_letter_and_has_no_special_characters() {
        for name in ["", "pvc-2f1b7c1e", "数据:a_b.c"] {
            assert_eq!(check(name, "X"), Ok(()), "{name}");
        }
        let long = "n".repeat(129);
        for name in ["a", "1abc", "a b", "https://x", long.as_str()] {
            assert_eq!(check(name, "X").unwrap_err().code, "X", "{name}");
        }
    }
}
