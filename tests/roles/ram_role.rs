//! Credentials of a RAM role: renewed during calls, even while the Security Token Service is unavailable.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, interval};
use tonic::Code;
use tonic::transport::Channel;

use crate::common::csi::{create, list, publish, socket};
use crate::common::fake::{Fake, KEY, NODES, SECRET};
use crate::common::oidc::{PROVIDER, ROLE, write_token};
use crate::common::process::{Ended, diskplugin};
use crate::common::wait::until;

/// Longer than any renewal on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

const RENEWAL_FAILED: &str = "cannot renew credentials; the current ones are still valid";

/// Makes calls until the condition is true; each call must succeed.
async fn calls_until(event: &str, channel: &Channel, mut condition: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + TIMEOUT;
    let mut tick = interval(Duration::from_millis(50));
    while !condition().await {
        assert!(Instant::now() < end, "not within {TIMEOUT:?}: {event}");
        list(channel).await.unwrap();
        tick.tick().await;
    }
}

#[tokio::test]
async fn short_lived_credentials_of_an_oidc_role_are_renewed_without_failed_calls() {
    let fake = Fake::start(&[r#"--config={"sts": {"lifetime": "6s"}}"#]).await;
    let dir = tempfile::tempdir().unwrap();
    let (socket, token_file) = (socket(&dir), dir.path().join("token"));
    write_token(&token_file, 600);
    let start = fake
        .controller(&socket)
        .service_account(&token_file)
        .args([format!("--sts-endpoint={}", fake.url)]);
    let (controller, channel) = start.ready(&socket).await;
    let volume = create(&channel, "pvc-1").await.unwrap();
    publish(&channel, &volume, NODES[0]).await.unwrap();
    let asked = async || fake.count("AssumeRoleWithOIDC").await;
    calls_until("three renewals", &channel, async || asked().await > 3).await;

    // The service fails when a renewal is due, and recovers before the credentials expire.
    fake.configure(json!({"sts": {"lifetime": "18s"}})).await;
    let before = asked().await;
    calls_until("credentials with a longer validity", &channel, async || {
        asked().await > before
    })
    .await;
    fake.configure(json!({"sts": {"unreachable": true}})).await;
    calls_until("the warning", &channel, async || {
        controller.stderr().contains(RENEWAL_FAILED)
    })
    .await;
    let before = asked().await;
    fake.configure(json!({"sts": {"unreachable": false}})).await;
    calls_until("a renewal after the recovery", &channel, async || {
        asked().await > before
    })
    .await;
    calls_until("the log line about the recovery", &channel, async || {
        controller.stderr().contains("credential renewal succeeds again")
    })
    .await;
    let log = controller.stderr();
    assert_eq!(log.matches(RENEWAL_FAILED).count(), 1, "{log}");
    let source = format!("credentials=\"the OIDC role {ROLE}\"");
    assert!(log.contains(&source), "{log}");
    // No call was rejected because of its credentials.
    for call in fake.calls().await {
        let code = call["code"].as_str().unwrap_or_default();
        assert!(!code.contains("SecurityToken"), "{call}");
    }
}

#[tokio::test]
async fn the_role_of_the_instance_is_the_default() {
    let fake = Fake::start(&["--metadata-token-required"]).await;
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let start = fake.controller(&socket).args([fake.metadata(NODES[0])]);
    let (controller, channel) = start.ready(&socket).await;
    create(&channel, "pvc-1").await.unwrap();
    let log = controller.stderr();
    assert!(log.contains("credentials=\"the instance's role\""), "{log}");
}

#[tokio::test]
async fn a_role_is_assumed_with_a_key_and_settings_from_the_environment() {
    let config = r#"--config={"sts": {"external_id": "wanted"}}"#;
    let (fake, dir) = (Fake::start(&[config]).await, tempfile::tempdir().unwrap());
    let socket = socket(&dir);
    let start = [
        ("CREDENTIALS", "environment"),
        ("ASSUME_ROLE_ARN", ROLE),
        ("ASSUME_ROLE_EXTERNAL_ID", "wanted"),
        ("ROLE_SESSION_NAME", "by-test"),
        ("ROLE_DURATION", "30m"),
        ("STS_ENDPOINT", &fake.url),
        ("METADATA_TOKEN_ONLY", "true"),
    ]
    .into_iter()
    .fold(fake.controller(&socket).keys(), |start, (name, value)| {
        start.env(&format!("DISKPLUGIN_{name}"), value)
    });
    let (_controller, channel) = start.ready(&socket).await;
    create(&channel, "pvc-1").await.unwrap();
    let calls = fake.calls().await;
    let assumed = calls.iter().find(|call| call["action"] == "AssumeRole");
    let params = &assumed.unwrap()["params"];
    assert_eq!(params["RoleSessionName"], "by-test", "{params}");
    assert_eq!(params["DurationSeconds"], "1800", "{params}");
}

#[tokio::test]
async fn an_unavailable_token_service_does_not_delay_the_start() {
    let fake = Fake::start(&[r#"--config={"sts": {"unreachable": true}}"#]).await;
    let dir = tempfile::tempdir().unwrap();
    let (socket, token_file) = (socket(&dir), dir.path().join("token"));
    write_token(&token_file, 600);
    let start = fake
        .controller(&socket)
        .service_account(&token_file)
        .args([format!("--sts-endpoint={}", fake.url)]);
    let (_controller, channel) = start.ready(&socket).await;
    let mut request = tonic::Request::new(crate::common::csi::volume("pvc-1"));
    request.set_timeout(Duration::from_secs(2));
    let mut controller = diskplugin::csi::proto::controller_client::ControllerClient::new(channel.clone());
    let refused = controller.create_volume(request).await.unwrap_err();
    let retriable = [Code::Unavailable, Code::DeadlineExceeded, Code::Cancelled];
    assert!(retriable.contains(&refused.code()), "{refused:?}");
    fake.configure(json!({"sts": {"unreachable": false}})).await;
    until("calls succeed", TIMEOUT, async || create(&channel, "pvc-1").await.ok()).await;
}

#[tokio::test]
async fn incomplete_credential_settings_are_rejected_at_startup() {
    let file = "--oidc-token-file=/var/run/token";
    let provider = format!("--oidc-provider-arn={PROVIDER}");
    for (flags, reason) in [
        (vec![file], "--oidc-role-arn and --oidc-provider-arn"),
        (vec![file, &provider], "also requires --oidc-role-arn"),
        (vec!["--credentials=directory"], "--credentials-dir"),
        (vec!["--credentials=nonsense"], "instance-role"),
        (vec!["--assume-role-arn=x"], "acs:ram::UID:role/NAME"),
        (vec!["--role-duration=1m"], "15m to 12h"),
        (vec!["--assume-role-external-id=x"], "--assume-role-arn"),
    ] {
        let common = ["controller", "--region=cn-beijing", "--cluster-id=c", "--zone=z-a"];
        let ended: Ended = diskplugin(common).args(&flags).ended().await;
        assert_eq!(ended.code, Some(64), "{flags:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(reason), "{flags:?}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn keys_in_the_environment_take_precedence_over_roles() {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let socket = socket(&dir);
    let start = fake
        .controller(&socket)
        .env("ACCESS_KEY_ID", KEY)
        .env("ACCESS_KEY_SECRET", SECRET)
        .service_account(&dir.path().join("not-there"));
    let (_controller, channel) = start.ready(&socket).await;
    create(&channel, "pvc-1").await.unwrap();
    assert_eq!(fake.count("AssumeRoleWithOIDC").await, 0);
}
