//! Encoding of parameters in a query or form, and their canonical form.

use std::collections::BTreeMap;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Everything but letters, digits and `-_.~` is encoded.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

/// The pairs of a query or form. Names without a value have an empty one.
pub(super) fn decode(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let plain = |text: &str| {
        let text = text.replace('+', " ");
        percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (plain(name), plain(value)))
        .collect()
}

/// All pairs but `Signature`, encoded, in byte order of their names.
pub(super) fn canonical(params: &BTreeMap<String, String>) -> String {
    let pairs = params.iter().filter(|(name, _)| *name != "Signature");
    let pairs = pairs.map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    pairs.collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_reverses_encoding() {
        let text = "a&b=c ~*+/测试";
        let pairs = decode(&format!("{}={}", encode("n~"), encode(text)));
        assert_eq!(pairs["n~"], text);
        assert_eq!(encode(" *+/~"), "%20%2A%2B%2F~");
    }

    #[test]
    fn empty_values_are_kept_and_names_are_in_byte_order() {
        let pairs = decode("Tag.2.Key=b&Tag.10.Key=c&Tag.1.Key=a&SignatureType=&Signature=x");
        assert_eq!(canonical(&pairs), "SignatureType=&Tag.1.Key=a&Tag.10.Key=c&Tag.2.Key=b");
    }
}
