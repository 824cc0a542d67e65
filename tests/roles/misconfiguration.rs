//! Common installation errors: a wrong region, key, clock or Secret, and no metadata service. The sidecar, `/readyz`
//! and the log get the name of the failure and advice; the process keeps running unless a restart would help.

use std::time::Duration;

use diskplugin::csi::proto::controller_client::ControllerClient;
use serde_json::{Value, json};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use crate::common::csi::{create, endpoint, socket, volume};
use crate::common::fake::{Fake, KEY, SECRET};
use crate::common::process::diskplugin;
use crate::http_client::{address, get};

const REGION: &str = "cn-beijing";

/// An installation error and its report.
#[derive(Debug)]
struct Misconfiguration {
    what: &'static str,
    region: &'static str,
    /// Instead of the endpoint of the fake cloud.
    endpoint: Option<&'static str>,
    /// Configuration of the fake cloud.
    cloud: Value,
    name: &'static str,
    todo: &'static str,
    /// The value that the message names.
    value: &'static str,
    /// The failing checks of `/readyz`; none if the error concerns a single call.
    checks: &'static [&'static str],
}

fn answers(status: u16, code: &str) -> Value {
    json!({"faults": [{
        "action": "*",
        "times": 1000,
        "kind": {"code": {"status": status, "code": code}},
    }]})
}

#[tokio::test]
async fn installation_errors_are_reported_to_sidecar_readyz_and_log_with_advice() {
    let cases = [
        Misconfiguration {
            what: "a region that the cloud does not know",
            region: "cn-nowhere",
            endpoint: None,
            cloud: json!({}),
            name: "UNKNOWN_REGION",
            todo: "correct --region",
            value: "cn-nowhere",
            checks: &["cloud"],
        },
        Misconfiguration {
            what: "an inactive key",
            region: REGION,
            endpoint: None,
            cloud: json!({"inactive_keys": [KEY]}),
            name: "ACCESS_KEY_INACTIVE",
            todo: "enable it",
            value: "the credentials came from the environment",
            checks: &["credentials"],
        },
        Misconfiguration {
            what: "a key that was deleted",
            region: REGION,
            endpoint: None,
            cloud: answers(404, "InvalidAccessKeyId.NotFound"),
            name: "ACCESS_KEY_NOT_FOUND",
            todo: "check the access key in the Secret",
            value: "the credentials came from the environment",
            checks: &["credentials"],
        },
        Misconfiguration {
            what: "a clock that is wrong",
            region: REGION,
            endpoint: None,
            cloud: answers(400, "InvalidTimeStamp.Expired"),
            name: "CLOCK_SKEW",
            todo: "correct the clock",
            value: "InvalidTimeStamp.Expired",
            checks: &["credentials"],
        },
        Misconfiguration {
            what: "a key without rights",
            region: REGION,
            endpoint: None,
            cloud: json!({"denied": ["CreateDisk"]}),
            name: "ACCESS_DENIED",
            todo: "RAM policy",
            value: "CreateDisk",
            checks: &[],
        },
        Misconfiguration {
            what: "no server at the endpoint",
            region: REGION,
            endpoint: Some("http://127.0.0.1:9"),
            cloud: json!({}),
            name: "CLOUD_UNREACHABLE",
            todo: "check --region and --ecs-endpoint",
            value: "http://127.0.0.1:9",
            checks: &[],
        },
    ];
    for case in cases {
        check(&case).await;
    }
}

async fn check(case: &Misconfiguration) {
    let what = case.what;
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let socket = socket(&dir);
    fake.configure(case.cloud.clone()).await;
    let url = case.endpoint.unwrap_or(&fake.url);
    let start = diskplugin([
        "controller",
        "--cluster-id=c-test",
        "--zone=cn-beijing-b",
        "--http-address=127.0.0.1:0",
        &format!("--region={}", case.region),
        &format!("--ecs-endpoint={url}"),
        &endpoint(&socket),
    ]);
    let (controller, channel) = start.keys().ready(&socket).await;
    let refused = refused(&channel).await;
    // An answer to an earlier process may be lost, so no refusal is final.
    assert_eq!(refused.code(), Code::Unavailable, "{what}: {refused:?}");
    for text in [refused.message(), &controller.stderr()] {
        for part in [case.name, case.todo, case.value] {
            assert!(text.contains(part), "{what}: no {part:?} in: {text}");
        }
    }
    let ready = get(&address(&controller).await, "/readyz").await;
    let bad = ["credentials", "cloud"].into_iter();
    let bad: Vec<&str> = bad.filter(|check| ready.is_ok(check) == Some(false)).collect();
    assert_eq!(bad, case.checks, "{what}: {ready:?}");
    assert_eq!(ready.status, if bad.is_empty() { 200 } else { 503 }, "{what}");
    if !bad.is_empty() {
        assert!(ready.text.contains(case.todo), "{what}: {ready:?}");
    }
    // A restart would not help, so the liveness check succeeds.
    let alive = get(&address(&controller).await, "/healthz").await;
    assert_eq!(alive.status, 200, "{what}: {alive:?}");
}

/// The error of a call with a short timeout; sidecars wait longer.
async fn refused(channel: &Channel) -> Status {
    let mut request = Request::new(volume("pvc-1"));
    request.set_timeout(Duration::from_secs(8));
    let mut client = ControllerClient::new(channel.clone());
    client.create_volume(request).await.unwrap_err()
}

#[tokio::test]
async fn a_missing_or_incomplete_secret_is_named_and_used_once_complete() {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let (socket, secret) = (socket(&dir), dir.path().join("secret"));
    let start = fake.controller(&socket).args([
        "--http-address=127.0.0.1:0",
        "--credentials=directory",
        &format!("--credentials-dir={}", secret.display()),
    ]);
    let (controller, channel) = start.ready(&socket).await;
    let http = address(&controller).await;
    let half = secret.join("access-key-id");
    for (made, missing) in [
        (None, "has neither access-key-id and access-key-secret"),
        (Some(&half), "has access-key-id but not access-key-secret"),
    ] {
        if let Some(file) = made {
            std::fs::create_dir_all(&secret).unwrap();
            std::fs::write(file, KEY).unwrap();
        }
        let refused = refused(&channel).await;
        assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
        let ready = get(&http, "/readyz").await;
        assert_eq!(ready.is_ok("credentials"), Some(false), "{ready:?}");
        for text in [refused.message(), &ready.text, &controller.stderr()] {
            for part in [missing, &secret.display().to_string()] {
                assert!(text.contains(part), "no {part:?} in: {text}");
            }
        }
    }
    std::fs::write(secret.join("access-key-secret"), SECRET).unwrap();
    create(&channel, "pvc-1").await.unwrap();
    assert_eq!(get(&http, "/readyz").await.status, 200);
}

/// A process that fails to start prints reason and advice in its last line, as text or JSON: `kubectl describe pod`
/// shows this line of a terminated container.
#[tokio::test]
async fn the_last_line_of_a_failed_start_has_the_reason() {
    // No server listens there.
    const NO_METADATA: &str = "--metadata-endpoint=http://127.0.0.1:9";
    let lines: [(&'static [&str], &'static [&str]); 8] = [
        (
            &["controller", "--cluster-id=c", NO_METADATA],
            &["--region is not set", "http://127.0.0.1:9", "set it, or"],
        ),
        (
            &[
                "all-in-one",
                "--cluster-id=c",
                "--node-id=i-1",
                "--region=cn-beijing",
                NO_METADATA,
            ],
            &["--zone is not set", "http://127.0.0.1:9", "set it, or"],
        ),
        (
            &["controller", "--region=cn-beijing", NO_METADATA],
            &["--cluster-id is not set: set an ID that is unique"],
        ),
        (
            &["controller", "--region=CN BEIJING"],
            &["--region", "is not a valid region ID; expected: letters"],
        ),
        (&["controller", "--no-such-flag"], &["'--no-such-flag'"]),
        (
            &["controller", "--network=moon"],
            &["'moon'", "--network", "public, vpc"],
        ),
        (
            &[
                "controller",
                "--region=cn-beijing",
                "--cluster-id=c",
                "--credentials=oidc",
                NO_METADATA,
            ],
            &["--oidc-role-arn"],
        ),
        (
            &[
                "node",
                "--zone=z",
                "--node-id=i-1",
                "--require-shared-mounts",
                "--kubelet-dir=/does/not/exist",
            ],
            &["/does/not/exist", "--kubelet-dir"],
        ),
    ];
    // Started together, because each waits several seconds for its metadata.
    let start = |(line, parts): (&'static [&str], &'static [&str])| {
        ["text", "json"].map(|format| {
            let start = diskplugin(line).env("DISKPLUGIN_LOG_FORMAT", format);
            (line, parts, format, start.spawn())
        })
    };
    let started: Vec<_> = lines.into_iter().flat_map(start).collect();
    for (line, parts, format, process) in started {
        let ended = process.ended().await;
        assert_eq!(ended.code, Some(64), "{line:?}: {}", ended.stderr);
        let last = ended.stderr.lines().last().expect("there is a reason");
        if format == "json" {
            let objects = ended.stderr.lines().map(serde_json::from_str::<Value>);
            assert!(objects.into_iter().all(|object| object.is_ok()), "{}", ended.stderr);
        }
        for part in parts {
            assert!(last.contains(part), "{line:?}: no {part:?} in: {last}");
        }
    }
}
