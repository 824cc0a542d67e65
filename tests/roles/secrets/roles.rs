//! The OIDC token of a role and its credentials never appear in output.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::common::fake::{Fake, KEY, NODES};
use crate::common::oidc::{ROLE, write_token};
use crate::common::process::Start;
use crate::common::recording_proxy::RecordingProxy;
use crate::running::Running;
use crate::secrets::calls::{make_calls, output_of, verbose};
use crate::secrets::hidden::{Hidden, ODD, signatures};
use crate::text::assert_has;

const DEADLINE: Duration = Duration::from_millis(1500);

/// Finds words in the format of keys, tokens and secrets of the fake Security Token Service.
fn find_issued(text: &str) -> Option<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    words.into_iter().find(|word| {
        let is_key = word.starts_with("STS.") && word.len() > 20;
        let is_token = word.starts_with("CAIS") && word.len() > 40;
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_secret = word.len() == 44 && word.chars().all(is_word);
        is_key || is_token || is_secret
    })
}

fn assert_no_secret_in(text: &str, token: &str, sent: &str) {
    for part in token.split('.') {
        let line = text.lines().find(|line| line.contains(part));
        assert!(line.is_none(), "a part of the token is in: {line:?}");
    }
    assert_eq!(find_issued(text), None);
    let hidden = Hidden {
        key: "unused-access-key",
        ..ODD
    };
    hidden.absent_from(text, sent);
}

/// Calls a driver with this role and verbose logs, and revokes its credentials in between.
async fn with_role(
    role: impl FnOnce(Start, &Path, &str) -> Start,
    flags: &[&str],
    refusal: serde_json::Value,
) -> String {
    let fake = Fake::start_verbose(&[r#"--config={"sts": {"lifetime": "3s"}}"#]).await;
    let server: SocketAddr = fake.url.trim_start_matches("http://").parse().unwrap();
    let (proxy, dir) = (RecordingProxy::to(server).await, tempfile::tempdir().unwrap());
    let file = dir.path().join("token");
    let token = write_token(&file, 600);
    let driver = Running::of(|socket| {
        let start = verbose(&proxy.url, socket, &ODD, flags).keys();
        role(start, &file, &proxy.url).args([format!("--sts-endpoint={}", proxy.url)])
    });
    let driver = driver.await;
    let channel = driver.channel.clone();
    let mut errors = make_calls(&channel, &ODD, DEADLINE).await.0;
    fake.configure(json!({"sts": {"error": refusal}})).await;
    // Until its credentials have expired.
    tokio::time::sleep(Duration::from_secs(4)).await;
    errors += &make_calls(&channel, &ODD, DEADLINE).await.0;
    fake.configure(json!({"sts": {"unreachable": true}})).await;
    errors += &make_calls(&channel, &ODD, DEADLINE).await.0;
    let output = output_of(driver).await;
    let sent = proxy.sent();
    assert!(signatures(&sent).len() > 3, "too few signatures: {sent}");
    let stdout = fake.process.stdout().replace(KEY, "");
    for text in [&errors, &output, &stdout, &fake.process.stderr()] {
        assert_no_secret_in(text, &token, &sent);
    }
    errors
}

#[tokio::test]
async fn the_oidc_token_and_its_credentials_are_not_printed() {
    let refusal = json!({"status": 401, "code": "AuthenticationFail.OIDCToken.Expired"});
    let role = |start: Start, file: &Path, _: &str| start.service_account(file).args(["--credentials=oidc"]);
    let errors = with_role(role, &["--log-format=json"], refusal).await;
    assert_has(&errors, &["OIDCToken.Expired"]);
}

#[tokio::test]
async fn credentials_of_assumed_and_instance_roles_are_not_printed() {
    let refusal = || json!({"status": 403, "code": "NoPermission"});
    let assumed = with_role(
        |start, _, _| start.args([format!("--assume-role-arn={ROLE}")]),
        &["--signature=v3"],
        refusal(),
    );
    let instance = with_role(
        |start, _, url| {
            start.args([
                "--credentials=instance-role".to_owned(),
                format!("--metadata-endpoint={url}/imds/{}", NODES[0]),
            ])
        },
        &["--log-format=text"],
        refusal(),
    );
    let (assumed, _) = tokio::join!(assumed, instance);
    assert_has(&assumed, &["NoPermission"]);
}

#[test]
fn issued_credentials_are_found() {
    let secret = "0123456789abcdefghijklmnopqrstuvwxyz01234567";
    for word in [
        format!("STS.{}", &secret[..24]),
        format!("CAIS{secret}{secret}"),
        secret.to_owned(),
    ] {
        assert!(find_issued(&format!("key={word}, and so on")).is_some());
    }
    assert_eq!(find_issued("STS. CAIS cn-beijing 0123456789"), None);
}
