//! Single texts: what is removed, and what stays.

use serde_json::json;

use super::*;

mod property;

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
        "tests passed: 5, bypass: yes, pass-through=on PWD=/root",
        "--credentials-dir=/etc/x --credentials=chain credential-provider=x",
        "cannot obtain credentials: the RAM role is missing",
        "run --token -v --password --x",
        "volumes:\n- name: a\n  secret:\n    secretName: x\n    items:\n    - key: a",
        "imagePullSecrets:\n- name: registry",
        "- apiGroups: [\"\"]\n  resources: [\"secrets\", \"configmaps\"]\n  verbs: [\"get\"]",
        "rules:\n- resources:\n  - tokenreviews\n  - secrets\n  verbs:\n  - create",
        r#"{"resources":["secrets","pods"],"more":["serviceaccounts/token","nodes"]}"#,
        r#"{"value":"shown","name":"MODE"}"#,
        "- value: shown\n  name: MODE",
        "User \"x\" cannot list resource \"secrets\" in API group \"\" at the cluster scope",
        "diskplugin_token_reviews_total{result=\"ok\"} 5",
        r#"{"encryptionKeyId": "k-1", "encrypted": "true"}"#,
    ] {
        assert_eq!(redacted(text), text);
    }
}

#[test]
fn values_on_the_lines_after_a_name_are_removed() {
    for (text, expected) in [
        (
            "password: |\n  hunter2\n\n  more\nuser: x",
            "password: [redacted]\nuser: x",
        ),
        (
            "a:\n- password: >-\n    hunter2\n  user: x",
            "a:\n- password: [redacted]\n  user: x",
        ),
        (
            "password: |2+ # as it is\r\n  hunter2\r\nx: y",
            "password: [redacted]\nx: y",
        ),
        (
            "password: |\n  hunter\\n2\nx: y",
            "password: [redacted]\nx: y",
        ),
        (
            "password:\n  hunter2\nuser: x",
            "password:[redacted]\nuser: x",
        ),
        (
            "password: two\n  hunter2\nuser: x",
            "password: [redacted]\nuser: x",
        ),
        (
            "password: !!str |\n  hunter2\nuser: x",
            "password: [redacted]\nuser: x",
        ),
        ("tokens:\n- hunter2\n- b\nx: y", "tokens:[redacted]\nx: y"),
        (
            "'password': |\n  hunter2\nx: y",
            "'password': [redacted]\nx: y",
        ),
        (
            r#"{"a":"password: |\n  hunter2\nuser: x","b":1}"#,
            r#"{"a":"password: [redacted]\nuser: x","b":1}"#,
        ),
        (
            r#"{"a":"x: y\npassword: >-\r\n  hunter2\r\n","b":1}"#,
            r#"{"a":"x: y\npassword: [redacted]\n","b":1}"#,
        ),
        (
            r#"{"a":"{\"b\":\"x: 1\\npassword: |\\n  hunter2\\nuser: x\"}","c":1}"#,
            r#"{"a":"{\"b\":\"x: 1\\npassword: [redacted]\\nuser: x\"}","c":1}"#,
        ),
        (
            r#"{"a":"password:\n  hunter2","b":1}"#,
            r#"{"a":"password:[redacted]","b":1}"#,
        ),
        (
            r#"{"a":"password: two words\nuser: x","b":1}"#,
            r#"{"a":"password: [redacted]\nuser: x","b":1}"#,
        ),
        (
            "2026-01-01T00:00:00.5Z password: |\n2026-01-01T00:00:00.5Z   hunter2\n2026-01-01T00:00:00.5Z end",
            "2026-01-01T00:00:00.5Z password: [redacted]\n2026-01-01T00:00:00.5Z end",
        ),
        (
            r#"{"a":"password: |\n  hunter2 and a lo"#,
            r#"{"a":"password: [redacted]"#,
        ),
    ] {
        assert_eq!(redacted(text), expected, "{text}");
        assert_eq!(redacted(expected), expected, "it changes again");
    }
}

#[test]
fn a_block_in_a_string_without_known_quotation_marks_is_removed() {
    let text = "msg='password: |\\n  hunter2\\nuser: x'";
    assert_eq!(redacted(text), "msg='password: [redacted]\\nuser: x'");
}

#[test]
fn values_end_with_their_last_word() {
    for (text, expected) in [
        ("password=ab(c)hunter2 x", "password=[redacted] x"),
        ("password=Ab{x}hunter2&x", "password=[redacted]&x"),
        ("password=ab(c),hunter2 x", "password=[redacted] x"),
        ("password=ab'hunter2 x", "password=[redacted] x"),
        ("password=ab\"hunter2 x", "password=[redacted] x"),
        (
            "sent 'password=ab'hunter2' x",
            "sent 'password=[redacted]' x",
        ),
        ("sent \"password=ab\", x", "sent \"password=[redacted]\", x"),
        ("password=\"ab\"hunter2 x", "password=[redacted] x"),
        ("password: 'ab''hunter2'\nx", "password: '[redacted]'\nx"),
        (
            r#"{"m":"password=ab\"hunter2 x","n":1}"#,
            r#"{"m":"password=[redacted] x","n":1}"#,
        ),
        (
            r#"{"token":[1,2],"x":"y"} {"token":12345,"x":"y"}"#,
            r#"{"token":[redacted],"x":"y"} {"token":[redacted],"x":"y"}"#,
        ),
        ("info password: two hunter2", "info password: [redacted]"),
        (
            "info password: two hunter2, next; x",
            "info password: [redacted], next; x",
        ),
        (
            "info password: two hunter2 user=x",
            "info password: [redacted] user=x",
        ),
        (
            "info password: ab(c) hunter2 pad== x",
            "info password: [redacted]",
        ),
        (
            r#"{"m":"info password: two hunter2","x":1}"#,
            r#"{"m":"info password: [redacted]","x":1}"#,
        ),
        (
            r#"level=info msg="password: two hunter2" x=1"#,
            r#"level=info msg="password: [redacted]" x=1"#,
        ),
        (
            "5\" disk, password: two \"b hunter2",
            "5\" disk, password: [redacted]",
        ),
        ("> Cookie: a=b; c=hunter2", "> Cookie: [redacted]"),
        ("--token -hunter2 -v", "--token [redacted] -v"),
        ("pwd=hunter2", "pwd=[redacted]"),
        ("db_pass=hunter2 x", "db_pass=[redacted] x"),
        ("dbPass: hunter2", "dbPass: [redacted]"),
        ("credential: hunter2", "credential: [redacted]"),
        ("the access key: hunter2 x", "the access key: [redacted] x"),
        ("encryptionKey=hunter2 x", "encryptionKey=[redacted] x"),
        (
            r#"{"value":"hunter2","name":"DB_PASSWORD"}"#,
            r#"{"value":"[redacted]","name":"DB_PASSWORD"}"#,
        ),
        (
            r#"{"env":"{\"value\":\"hunter2\",\"name\":\"DB_PASSWORD\"}"}"#,
            r#"{"env":"{\"value\":\"[redacted]\",\"name\":\"DB_PASSWORD\"}"}"#,
        ),
        (
            "- value: two words\n  name: DB_PASSWORD",
            "- value: [redacted]\n  name: DB_PASSWORD",
        ),
        (
            "- name: DB_PASSWORD\n  value: |\n    hunter2\n- x",
            "- name: DB_PASSWORD\n  value: [redacted]\n- x",
        ),
        (
            r#"{"a":"- name: DB_PASSWORD\n  value: two words\n- x"}"#,
            r#"{"a":"- name: DB_PASSWORD\n  value: [redacted]\n- x"}"#,
        ),
    ] {
        assert_eq!(redacted(text), expected, "{text}");
        assert_eq!(redacted(expected), expected, "it changes again");
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
    redactor.hide_fields(&json!({"exec": {
        "env": [{"name": "DB_PASSWORD", "value": "of-variable"}, {"name": "MODE", "value": "mode"}],
        "args": ["--token", "of-flag", "--password=of-pair", "-c", "get --secret of-command", "mode"],
    }}));
    for value in ["of-variable", "of-flag", "of-pair", "of-command"] {
        assert_eq!(
            redactor.text(&format!("x {value} mode")),
            format!("x {MASK} mode")
        );
    }
    let text = r#"s3c"r/t+ s3c\"r/t+ s3c%22r%2Ft%2B czNjInIvdCs= kube-value shown"#;
    let expected = format!("{MASK} {MASK} {MASK} {MASK} {MASK} shown");
    assert_eq!(redactor.text(text), expected);
    assert!(!format!("{redactor:?}").contains("kube-value"));
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
