//! Nothing of a role's credentials is told: neither the OIDC token that gets them, nor they.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::common::csi::socket;
use crate::common::fake::{Fake, NODES};
use crate::common::oidc::{ROLE, write_token};
use crate::common::process::Start;
use crate::common::tee::Tee;
use crate::hidden::{Hidden, ODD, signatures};
use crate::talk::{all_of, loud, talk};

const DEADLINE: Duration = Duration::from_millis(1500);

/// Words that look like what the fake gives out: keys, tokens, secrets.
fn given_out(text: &str) -> Option<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '.');
    words.into_iter().find(|word| {
        let is_key = word.starts_with("STS.") && word.len() > 20;
        let is_token = word.starts_with("CAIS") && word.len() > 40;
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        let is_secret = word.len() == 44 && word.chars().all(is_word);
        is_key || is_token || is_secret
    })
}

fn nothing_of_it_in(text: &str, token: &str, sent: &str) {
    for part in token.split('.') {
        let line = text.lines().find(|line| line.contains(part));
        assert!(line.is_none(), "a part of the token is in: {line:?}");
    }
    assert_eq!(given_out(text), None);
    let hidden = Hidden {
        key: "nothing-of-this-is-used",
        ..ODD
    };
    hidden.absent_from(text, sent);
}

/// Talks to a driver with this role, tells all that it can, and takes its credentials away meanwhile.
async fn with_role(
    role: impl FnOnce(Start, &Path, &str) -> Start,
    flags: &[&str],
    refusal: serde_json::Value,
) -> String {
    let fake = Fake::start_loud(&[r#"--config={"sts": {"life": "3s"}}"#]).await;
    let server: SocketAddr = fake.url.trim_start_matches("http://").parse().unwrap();
    let (tee, dir) = (Tee::to(server).await, tempfile::tempdir().unwrap());
    let (socket, file) = (socket(&dir), dir.path().join("token"));
    let token = write_token(&file, 600);
    let start = loud(&tee.url, &socket, &ODD, flags)
        .env("ACCESS_KEY_ID", crate::common::fake::KEY)
        .env("ACCESS_KEY_SECRET", crate::common::fake::SECRET);
    let start = role(start, &file, &tee.url).args([format!("--sts-endpoint={}", tee.url)]);
    let (driver, channel) = start.ready(&socket).await;
    let mut heard = talk(&channel, &ODD, DEADLINE).await.0;
    fake.configure(json!({"sts": {"refusal": refusal}})).await;
    // Beyond the end of what it has.
    tokio::time::sleep(Duration::from_secs(4)).await;
    heard += &talk(&channel, &ODD, DEADLINE).await.0;
    fake.configure(json!({"sts": {"unreachable": true}})).await;
    heard += &talk(&channel, &ODD, DEADLINE).await.0;
    let told = all_of(driver).await;
    let sent = tee.sent();
    assert!(signatures(&sent).len() > 3, "too few signatures: {sent}");
    for text in [
        &heard,
        &told,
        &fake.process.stdout().replace(crate::common::fake::KEY, ""),
        &fake.process.stderr(),
    ] {
        nothing_of_it_in(text, &token, &sent);
    }
    heard
}

#[tokio::test]
async fn the_token_and_what_it_gets_are_not_told() {
    let refusal = json!({"status": 401, "code": "AuthenticationFail.OIDCToken.Expired"});
    let heard = with_role(
        |start, file, _| start.service_account(file).args(["--credentials=oidc"]),
        &["--log-format=json"],
        refusal,
    );
    let heard = heard.await;
    assert!(heard.contains("OIDCToken.Expired"), "{heard}");
}

#[tokio::test]
async fn an_assumed_role_and_an_instances_role_are_not_told() {
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
    assert!(assumed.contains("NoPermission"), "{assumed}");
}

#[test]
fn what_is_given_out_is_found() {
    let secret = "0123456789abcdefghijklmnopqrstuvwxyz01234567";
    for word in [
        format!("STS.{}", &secret[..24]),
        format!("CAIS{secret}{secret}"),
        secret.to_owned(),
    ] {
        assert!(given_out(&format!("key={word}, and so on")).is_some());
    }
    assert_eq!(given_out("STS. CAIS cn-beijing 0123456789"), None);
}
