//! No secret survives in an archive, whatever its text is.

use std::io::Read;

use flate2::read::GzDecoder;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::super::*;
use crate::ops::bundle::Archive;

/// A secret, and a text with it in a form that the redactor knows.
fn planted() -> impl Strategy<Value = (String, String)> {
    let name = prop::sample::select(vec![
        "secret",
        "accessKeySecret",
        "ACCESS_KEY_ID",
        "X-Security-Token",
        "db.password",
        "Signature",
        "client-key-data",
        "userPwd",
        "db-pass",
        "encryptionKey",
    ]);
    let block = (name.clone(), "[ -~]{6,40}", 0..6_usize).prop_map(|(name, value, form)| {
        // A line with a colon can be a field, and is not a value.
        let value = match form {
            4 => value.replace(':', "."),
            _ => value,
        };
        let yaml = format!("a: b\n- {name}: |-\n    {value}\n  c: d");
        let next = format!("{name}:\n  x{value}\nc: d");
        let text = match form {
            0 => yaml,
            1 => json!({"message": yaml}).to_string(),
            2 => json!({"message": json!({"a": yaml}).to_string()}).to_string(),
            3 => json!({"message": format!("- name: {name}\n  value: x{value}")}).to_string(),
            4 => json!({"message": next}).to_string(),
            _ => json!([{"value": value.clone(), "name": name}]).to_string(),
        };
        (value, text)
    });
    let quoted = (name.clone(), "[ -~]{6,40}", 0..4_usize).prop_map(|(name, value, form)| {
        let json = Value::from(value.clone()).to_string();
        let text = match form {
            0 => format!("{{\"{name}\":{json},\"x\":1}}"),
            1 => format!("{{\"a\":[\"{name}\", {json}]}} and more"),
            2 => format!("level=info S {{ {name}: Some({value:?}), x: 1 }}"),
            _ => json!({"message": json!({name: value}).to_string()}).to_string(),
        };
        (value, text)
    });
    let word = (name, "[A-Za-z0-9+/=_.~!-]{6,40}", 0..4_usize).prop_map(|(name, value, form)| {
        let text = match form {
            0 => format!("1 INFO {name}={value} x=1"),
            1 => format!("{name}: {value}"),
            2 => format!("GET /?a=b&{name}={value}&c=d"),
            _ => format!("exec tool --{name} {value}"),
        };
        (value, text)
    });
    let key = ("(LTAI|STS\\.)[A-Za-z0-9]{12,26}", "[a-z \"]{0,9}")
        .prop_map(|(key, around)| (key.clone(), format!("{around}{key}\"{around}")));
    let token = "eyJ[A-Za-z0-9_-]{10,40}\\.eyJ[A-Za-z0-9_-]{5,40}\\.[A-Za-z0-9_-]{20}"
        .prop_map(|token| (token.clone(), format!("the token <{token}> is invalid")));
    let bearer = "[A-Za-z0-9._~+/-]{8,50}"
        .prop_map(|token| (token.clone(), format!("sent 'Bearer {token}' to it")));
    let header = "[A-Za-z0-9=, -]{8,50}"
        .prop_map(|value| (value.clone(), format!("> Authorization: {value}\nnext")));
    prop_oneof![quoted, block, word, key, token, bearer, header]
        .prop_filter("it occurs once", |(secret, text)| {
            let secret = secret.trim();
            // What is removed must not be a word of its surroundings.
            secret.len() >= 6 && !is_harmless_word(secret) && text.len() > secret.len()
        })
        .prop_map(|(secret, text)| (secret.trim().to_owned(), text))
}

fn is_harmless_word(secret: &str) -> bool {
    // A value that begins like a flag is the next flag.
    secret.starts_with('-') || secret.contains(MASK)
}

proptest! {
    #[test]
    fn no_secret_survives_in_any_member(
        planted in prop::collection::vec(planted(), 1..8),
        literal in "[!-~]{8,30}",
    ) {
        let mut redactor = Redactor::default();
        redactor.hide(&literal);
        let mut archive = Archive::new(Vec::new(), redactor, Timestamp::UNIX_EPOCH);
        for (index, (_, text)) in planted.iter().enumerate() {
            archive.add(&format!("{index}"), "test", text).unwrap();
            archive.add_missing("test", text);
        }
        let all: Vec<&str> = planted.iter().map(|(_, text)| text.as_str()).collect();
        archive.add("all", "test", &all.join("\n")).unwrap();
        archive.add("literal", "test", &format!("x{literal}y {{\"a\":{}}}", json!(literal))).unwrap();
        let bytes = archive.finish().unwrap();
        let mut archive = tar::Archive::new(GzDecoder::new(bytes.as_slice()));
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            for (secret, _) in &planted {
                let escaped = json!(secret).to_string();
                prop_assert!(!text.contains(secret.as_str()), "{secret} is in\n{text}");
                prop_assert!(!text.contains(escaped.trim_matches('"')), "{secret} is in\n{text}");
            }
            prop_assert!(!text.contains(&literal), "{literal} is in\n{text}");
        }
    }
}
