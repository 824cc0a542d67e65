//! Credentials of a RAM role: renewed while calls go on, whatever becomes of who gives them out.

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

/// Longer than any renewal takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

const RENEWED_NOT: &str = "credentials cannot be renewed; the old ones are still valid and in use";

/// Makes calls until there is something to see; each must succeed.
async fn calls_until(what: &str, channel: &Channel, mut look: impl AsyncFnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    let mut tick = interval(Duration::from_millis(50));
    while !look().await {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        list(channel).await.unwrap();
        tick.tick().await;
    }
}

#[tokio::test]
async fn an_oidc_roles_credentials_end_every_few_seconds_and_no_call_fails() {
    let fake = Fake::start(&[r#"--config={"sts": {"life": "6s"}}"#]).await;
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

    // The service goes down with a renewal's time to spare, and comes back before the end.
    fake.configure(json!({"sts": {"life": "18s"}})).await;
    let before = asked().await;
    calls_until("the long ones", &channel, async || asked().await > before).await;
    fake.configure(json!({"sts": {"unreachable": true}})).await;
    calls_until("the warning", &channel, async || {
        controller.stderr().contains(RENEWED_NOT)
    })
    .await;
    let before = asked().await;
    fake.configure(json!({"sts": {"unreachable": false}})).await;
    calls_until("it is back", &channel, async || asked().await > before).await;
    calls_until("that it is told", &channel, async || {
        controller
            .stderr()
            .contains("credentials are renewed again")
    })
    .await;
    let told = controller.stderr();
    assert_eq!(told.matches(RENEWED_NOT).count(), 1, "{told}");
    let source = format!("credentials=\"the OIDC role {ROLE}\"");
    assert!(told.contains(&source), "{told}");
    // No call was refused for its credentials, let alone failed.
    for call in fake.calls().await {
        let code = call["code"].as_str().unwrap_or_default();
        assert!(!code.contains("SecurityToken"), "{call}");
    }
}

#[tokio::test]
async fn the_instances_role_signs_where_nothing_else_is_configured() {
    let fake = Fake::start(&["--metadata-token-required"]).await;
    let dir = tempfile::tempdir().unwrap();
    let socket = socket(&dir);
    let start = fake.controller(&socket).args([fake.metadata(NODES[0])]);
    let (controller, channel) = start.ready(&socket).await;
    create(&channel, "pvc-1").await.unwrap();
    let told = controller.stderr();
    assert!(
        told.contains("credentials=\"the instance's role\""),
        "{told}"
    );
}

#[tokio::test]
async fn a_role_is_assumed_on_top_of_a_key_and_its_settings_may_come_from_the_environment() {
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
async fn a_service_that_does_not_answer_delays_no_start_and_calls_are_to_be_repeated() {
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
    let mut controller =
        diskplugin::csi::proto::controller_client::ControllerClient::new(channel.clone());
    let refused = controller.create_volume(request).await.unwrap_err();
    let passing = [Code::Unavailable, Code::DeadlineExceeded, Code::Cancelled];
    assert!(passing.contains(&refused.code()), "{refused:?}");
    fake.configure(json!({"sts": {"unreachable": false}})).await;
    until("calls succeed", PATIENCE, async || {
        create(&channel, "pvc-1").await.ok()
    })
    .await;
}

#[tokio::test]
async fn half_of_a_role_and_a_source_without_its_setting_are_refused_at_the_start() {
    let file = "--oidc-token-file=/var/run/token";
    let provider = format!("--oidc-provider-arn={PROVIDER}");
    for (flags, told) in [
        (vec![file], "--oidc-role-arn and --oidc-provider-arn"),
        (vec![file, &provider], "needs --oidc-role-arn too"),
        (vec!["--credentials=directory"], "--credentials-dir"),
        (vec!["--credentials=nonsense"], "instance-role"),
        (vec!["--assume-role-arn=x"], "acs:ram::UID:role/NAME"),
        (vec!["--role-duration=1m"], "15m to 12h"),
        (vec!["--assume-role-external-id=x"], "--assume-role-arn"),
    ] {
        let common = [
            "controller",
            "--region=cn-beijing",
            "--cluster-id=c",
            "--zone=z-a",
        ];
        let ended: Ended = diskplugin(common).args(&flags).ended().await;
        assert_eq!(ended.code, Some(64), "{flags:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{flags:?}: {}", ended.stderr);
    }
}

#[tokio::test]
async fn keys_in_the_environment_come_before_roles() {
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
