//! The canonical query, which both signatures cover.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Everything except `A-Za-z0-9-_.~`, upper-case hex; a space is `%20`, never `+`.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Percent-encodes one name or value.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// Encoded `name=value` pairs, sorted by the bytes of the encoded names, joined by `&`, including empty values.
pub fn query(params: &BTreeMap<String, String>) -> String {
    let mut pairs: Vec<_> = params
        .iter()
        .map(|(name, value)| (encode(name), encode(value)))
        .collect();
    pairs.sort();
    pairs
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect::<Vec<_>>()
        .join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_sort_by_byte_and_empty_values_stay() {
        let params = ["Tag.2.Key", "Tag.10.Key", "Tag.1.Key"]
            .into_iter()
            .map(|name| (name.to_owned(), String::new()))
            .collect();
        assert_eq!(query(&params), "Tag.1.Key=&Tag.10.Key=&Tag.2.Key=");
    }

    #[test]
    fn reserved_characters_are_upper_case_hex() {
        assert_eq!(encode("a b*c+d/e~f"), "a%20b%2Ac%2Bd%2Fe~f");
    }
}
