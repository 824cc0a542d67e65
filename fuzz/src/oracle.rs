//! The signatures of the ECS API, written from its documentation, with another implementation of the hashes than the
//! client's.

use aws_lc_rs::{digest, hmac};

/// Percent-encoding of RFC 3986.
pub fn encode(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// The query with its parameters in the order of their encoded names.
pub fn query(params: &[(String, String)]) -> String {
    let mut encoded: Vec<_> = params
        .iter()
        .map(|(name, value)| [encode(name), encode(value)])
        .collect();
    encoded.sort();
    let pairs: Vec<_> = encoded.iter().map(|pair| pair.join("=")).collect();
    pairs.join("&")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = chunk.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - chunk.len()));
        for digit in 0..4 {
            let is_padding = digit > chunk.len();
            let index = bits >> (18 - 6 * digit) & 63;
            text.push(if is_padding { '=' } else { char::from(DIGITS[index]) });
        }
    }
    text
}

/// Base64 of the HMAC-SHA1 of method, path and query under the secret followed by `&`.
pub fn v1(method: &str, query: &str, secret: &str) -> String {
    let text = format!("{method}&%2F&{}", encode(query));
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, format!("{secret}&").as_bytes());
    base64(hmac::sign(&key, text.as_bytes()).as_ref())
}

/// The `Authorization` of a request without a body. The names of the headers are sorted.
pub fn v3(method: &str, query: &str, headers: &[(&str, &str)], id: &str, secret: &str) -> String {
    let hash = |text: &str| hex(digest::digest(&digest::SHA256, text.as_bytes()).as_ref());
    let mut request = format!("{method}\n/\n{query}\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}:{}\n", value.trim()));
    }
    let names: Vec<_> = headers.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    request.push_str(&format!("\n{names}\n{}", hash("")));
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let text = format!("ACS3-HMAC-SHA256\n{}", hash(&request));
    let signature = hex(hmac::sign(&key, text.as_bytes()).as_ref());
    format!("ACS3-HMAC-SHA256 Credential={id},SignedHeaders={names},Signature={signature}")
}
