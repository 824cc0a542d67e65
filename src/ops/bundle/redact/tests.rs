use std::io::Read;

use flate2::read::GzDecoder;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::ops::bundle::Archive;

fn redacted(text: &str) -> String {
    Redactor::default().text(text)
}

#[test]
fn values_of_fields_named_like_secrets_are_removed() {
    for (text, expected) in [
        ("password=hunter2 next=1", "password=[redacted] next=1"),
        ("accessKeySecret: two words", "accessKeySecret: [redacted]"),
        ("at 1 token: abc; done", "at 1 token: [redacted] done"),
        (
            r#"{"token":"a\"b","x":"y"}"#,
            r#"{"token":"[redacted]","x":"y"}"#,
        ),
        (
            r#"{"token":"a\\","x":"y"}"#,
            r#"{"token":"[redacted]","x":"y"}"#,
        ),
        (
            r#"{"message":"{\"secret\":\"a\\\"b\",\"x\":1}"}"#,
            r#"{"message":"{\"secret\":\"[redacted]\",\"x\":1}"}"#,
        ),
        (
            "GET /?Action=X&Signature=ab%3D&Version=1",
            "GET /?Action=X&Signature=[redacted]&Version=1",
        ),
        (r#"secret: Some("a)b"), x: 1"#, "secret: [redacted]"),
        (
            r#"S { secret: Some("a)b"), x: 1 }"#,
            "S { secret: [redacted], x: 1 }",
        ),
        (r#"["--token","abc"]"#, r#"["--token","[redacted]"]"#),
        ("run --password abc --x", "run --password [redacted] --x"),
        (
            "> Authorization: ACS3-HMAC-SHA256 Credential=a,Signature=b",
            "> Authorization: [redacted]",
        ),
        (
            r#"("authorization", "x y")"#,
            r#"("authorization", "[redacted]")"#,
        ),
        ("client-key-data: aGVsbG8=", "client-key-data: [redacted]"),
        (
            r#"{"name":"DB_PASSWORD","value":"hunter2"}"#,
            r#"{"name":"DB_PASSWORD","value":"[redacted]"}"#,
        ),
        (
            r#"{"env":"{\"name\":\"DB_TOKEN\",\"value\":\"a\"}"}"#,
            r#"{"env":"{\"name\":\"DB_TOKEN\",\"value\":\"[redacted]\"}"}"#,
        ),
        (
            "- name: DB_PASSWORD\n  value: two words\n  x: y",
            "- name: DB_PASSWORD\n  value: [redacted]\n  x: y",
        ),
    ] {
        assert_eq!(redacted(text), expected);
        assert_eq!(redacted(expected), expected, "it changes again");
    }
}

#[test]
fn secrets_are_recognized_by_their_form() {
    for (text, expected) in [
        ("id LTAI5tAbCdEf0123 is", "id [redacted] is"),
        ("id STS.NUabcDEF123456", "id [redacted]"),
        ("auth Bearer abc.def-ghi123, x", "auth Bearer [redacted], x"),
        ("basic dXNlcjpwYXNz", "basic [redacted]"),
        ("got eyJhbGciOiJS.eyJpc3M.c2ln end", "got [redacted] end"),
        ("https://u:p@host/x", "https://[redacted]@host/x"),
        (
            "a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b",
            "a [redacted] b",
        ),
        ("a -----BEGIN PRIVATE KEY-----\nMII", "a [redacted]"),
    ] {
        assert_eq!(redacted(text), expected);
    }
}

#[test]
fn what_is_not_a_secret_stays() {
    for text in [
        "--http-authorization=token-review --signature=v3 --credentials=chain",
        "--oidc-token-file=/var/run/token --metadata-token-only=true",
        "csi.storage.k8s.io/provisioner-secret-name: disk",
        "diskplugin::cluster::token_review: the bearer token is not valid",
        "diskplugin_cloud_calls_total{action=\"AttachDisk\"} 5",
        "RequestId 4C467B38-3910-447D-87BC-AC049166F216",
        "{\"token\": null, \"automountServiceAccountToken\": false}",
    ] {
        assert_eq!(redacted(text), text);
    }
}

#[test]
fn a_json_document_stays_valid() {
    let document = json!({
        "token": 12345, "secrets": ["a", {"b": "c"}], "tokenRequests": [], "password": null,
        "args": ["--access-key-secret", "hunter2", "--zone=a"],
        "env": {"DISKPLUGIN_ZONE": "a", "DISKPLUGIN_X_TOKEN": "hunter2"},
        "text": "password=hunter2",
    });
    let text = Redactor::default().document(&document.to_string());
    let value: Value = serde_json::from_str(&text).unwrap();
    let expected = json!({
        "token": MASK, "secrets": [MASK, {"b": MASK}], "tokenRequests": [], "password": null,
        "args": ["--access-key-secret", MASK, "--zone=a"],
        "env": {"DISKPLUGIN_ZONE": "a", "DISKPLUGIN_X_TOKEN": MASK},
        "text": format!("password={MASK}"),
    });
    assert_eq!(value, expected);
}

#[test]
fn known_values_are_removed_in_each_encoding() {
    let mut redactor = Redactor::default();
    redactor.hide("s3c\"r/t+");
    redactor.hide_fields(&json!({"users": [{"user": {"token": "kube-value", "name": "shown"}}]}));
    let text = r#"s3c"r/t+ s3c\"r/t+ s3c%22r%2Ft%2B czNjInIvdCs= kube-value shown"#;
    let expected = format!("{MASK} {MASK} {MASK} {MASK} {MASK} shown");
    assert_eq!(redactor.text(text), expected);
    assert!(!format!("{redactor:?}").contains("kube-value"));
}

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
    ]);
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
    prop_oneof![quoted, word, key, token, bearer, header]
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

#[test]
fn value_of_a_pair_with_a_sensitive_name_is_removed_from_a_document() {
    let document = json!({"env": [
        {"name": "DB_PASSWORD", "value": "hunter2"},
        {"name": "MODE", "value": "shown"},
    ]});
    let text = Redactor::default().document(&document.to_string());
    assert!(
        !text.contains("hunter2") && text.contains("shown"),
        "{text}"
    );
}
