//! Credentials of a RAM role: renewed during calls, even while the Security Token Service is unavailable.

use std::path::Path;
use std::time::Duration;

use diskplugin::csi::proto::controller_client::ControllerClient;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::{Instant, interval};
use tonic::Code;
use tonic::transport::Channel;

use crate::common::csi::{create, list, publish, volume, within};
use crate::common::fake::{Fake, NODES};
use crate::common::oidc::{ROLE, write_token};
use crate::common::wait::until;
use crate::running::{Running, SOON};
use crate::settings::with_variables;
use crate::text::{assert_has, assert_lacks};

const RENEWAL_FAILED: &str = "cannot renew credentials; the current ones are still valid";

/// Makes calls until the condition is true; each call must succeed.
async fn calls_until(event: &str, channel: &Channel, mut condition: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + SOON;
    let mut tick = interval(Duration::from_millis(50));
    while !condition().await {
        assert!(Instant::now() < end, "not within {SOON:?}: {event}");
        list(channel).await.unwrap();
        tick.tick().await;
    }
}

/// A controller with the OIDC role, for whose token `dir` is.
async fn with_oidc_role(fake: &Fake, dir: &TempDir) -> Running {
    let token_file = dir.path().join("token");
    write_token(&token_file, 600);
    let controller = Running::of(|socket| {
        let start = fake.controller(socket).service_account(&token_file);
        start.args([format!("--sts-endpoint={}", fake.url)])
    });
    controller.await
}

#[tokio::test]
async fn short_lived_credentials_of_an_oidc_role_are_renewed_without_failed_calls() {
    let fake = Fake::start(&[r#"--config={"sts": {"lifetime": "6s"}}"#]).await;
    let dir = tempfile::tempdir().unwrap();
    let controller = with_oidc_role(&fake, &dir).await;
    let (channel, log) = (&controller.channel, || controller.process.stderr());
    let volume = create(channel, "pvc-1").await.unwrap();
    publish(channel, &volume, NODES[0]).await.unwrap();
    let renewals = async || fake.count("AssumeRoleWithOIDC").await;
    calls_until("three renewals", channel, async || renewals().await > 3).await;

    // The service fails when a renewal is due, and recovers before the credentials expire.
    fake.configure(json!({"sts": {"lifetime": "18s"}})).await;
    let before = renewals().await;
    calls_until("a longer validity", channel, async || renewals().await > before).await;
    fake.configure(json!({"sts": {"unreachable": true}})).await;
    calls_until("the warning", channel, async || log().contains(RENEWAL_FAILED)).await;
    let before = renewals().await;
    fake.configure(json!({"sts": {"unreachable": false}})).await;
    calls_until("the recovery", channel, async || renewals().await > before).await;
    let recovered = "credential renewal succeeds again";
    calls_until("its log line", channel, async || log().contains(recovered)).await;
    let log = log();
    assert_eq!(log.matches(RENEWAL_FAILED).count(), 1, "{log}");
    assert_has(&log, &[&format!("credentials=\"the OIDC role {ROLE}\"")]);
    // No call was rejected because of its credentials.
    for call in fake.calls().await {
        assert_lacks(call["code"].as_str().unwrap_or_default(), &["SecurityToken"]);
    }
}

#[tokio::test]
async fn the_role_of_the_instance_is_the_default() {
    let fake = Fake::start(&["--metadata-token-required"]).await;
    let controller = Running::of(|socket| fake.controller(socket).args([fake.metadata(NODES[0])])).await;
    create(&controller.channel, "pvc-1").await.unwrap();
    assert_has(&controller.process.stderr(), &["credentials=\"the instance's role\""]);
}

#[tokio::test]
async fn a_role_is_assumed_with_a_key_and_settings_from_the_environment() {
    let fake = Fake::start(&[r#"--config={"sts": {"external_id": "wanted"}}"#]).await;
    let controller = Running::of(|socket| {
        let variables = [
            ("CREDENTIALS", "environment"),
            ("ASSUME_ROLE_ARN", ROLE),
            ("ASSUME_ROLE_EXTERNAL_ID", "wanted"),
            ("ROLE_SESSION_NAME", "by-test"),
            ("ROLE_DURATION", "30m"),
            ("STS_ENDPOINT", &fake.url),
            ("METADATA_TOKEN_ONLY", "true"),
        ];
        with_variables(fake.controller(socket).keys(), &variables)
    });
    create(&controller.await.channel, "pvc-1").await.unwrap();
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
    let controller = with_oidc_role(&fake, &dir).await;
    let channel = &controller.channel;
    let request = within(Duration::from_secs(2), volume("pvc-1"));
    let refused = ControllerClient::new(channel.clone()).create_volume(request).await;
    let code = refused.unwrap_err().code();
    let retriable = [Code::Unavailable, Code::DeadlineExceeded, Code::Cancelled];
    assert!(retriable.contains(&code), "{code:?}");
    fake.configure(json!({"sts": {"unreachable": false}})).await;
    until("calls succeed", SOON, async || create(channel, "pvc-1").await.ok()).await;
}

#[tokio::test]
async fn keys_in_the_environment_take_precedence_over_roles() {
    let fake = Fake::start(&[]).await;
    let token_file = Path::new("/does/not/exist");
    let controller = Running::of(|socket| fake.controller(socket).keys().service_account(token_file));
    create(&controller.await.channel, "pvc-1").await.unwrap();
    assert_eq!(fake.count("AssumeRoleWithOIDC").await, 0);
}
