//! What a cluster meets at its installation: a wrong region, key, clock or Secret, and no metadata service. The sidecar,
//! `/readyz` and the log are told by name what it is, and what to do; nothing ends that a restart would not mend.

use std::time::Duration;

use diskplugin::csi::proto::controller_client::ControllerClient;
use serde_json::{Value, json};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};

use super::health::{address, ask};
use crate::common::csi::{create, endpoint, socket, volume};
use crate::common::fake::{Fake, KEY, SECRET};
use crate::common::process::diskplugin;

const REGION: &str = "cn-beijing";

/// What is wrong, and what is said of it.
#[derive(Debug)]
struct Trouble {
    what: &'static str,
    region: &'static str,
    /// In the place of the fake cloud's.
    endpoint: Option<&'static str>,
    /// What the cloud is told to do.
    cloud: Value,
    code: Code,
    name: &'static str,
    todo: &'static str,
    /// What else is named: which value it is about.
    names: &'static str,
    /// The checks of `/readyz` that are not well then, if it is no matter of one call.
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
async fn each_is_told_to_the_sidecar_to_readyz_and_in_the_log_with_what_to_do() {
    let troubles = [
        Trouble {
            what: "a region that the cloud does not know",
            region: "cn-nowhere",
            endpoint: None,
            cloud: json!({}),
            code: Code::FailedPrecondition,
            name: "WRONG_REGION",
            todo: "correct --region",
            names: "cn-nowhere",
            checks: &["cloud"],
        },
        Trouble {
            what: "a key that is switched off",
            region: REGION,
            endpoint: None,
            cloud: json!({"inactive_keys": [KEY]}),
            code: Code::PermissionDenied,
            name: "KEY_SWITCHED_OFF",
            todo: "switch it on",
            names: "the credentials came from the environment",
            checks: &["credentials"],
        },
        Trouble {
            what: "a key that was deleted",
            region: REGION,
            endpoint: None,
            cloud: answers(404, "InvalidAccessKeyId.NotFound"),
            code: Code::PermissionDenied,
            name: "KEY_UNKNOWN",
            todo: "check the access key in the Secret",
            names: "the credentials came from the environment",
            checks: &["credentials"],
        },
        Trouble {
            what: "a clock that is wrong",
            region: REGION,
            endpoint: None,
            cloud: answers(400, "InvalidTimeStamp.Expired"),
            code: Code::PermissionDenied,
            name: "CLOCK_WRONG",
            todo: "correct the clock",
            names: "InvalidTimeStamp.Expired",
            checks: &["credentials"],
        },
        Trouble {
            what: "a key without rights",
            region: REGION,
            endpoint: None,
            cloud: json!({"denied": ["CreateDisk"]}),
            code: Code::PermissionDenied,
            name: "CREDENTIALS_DENIED",
            todo: "RAM policy",
            names: "CreateDisk",
            checks: &[],
        },
        Trouble {
            what: "nobody at the endpoint",
            region: REGION,
            endpoint: Some("http://127.0.0.1:9"),
            cloud: json!({}),
            code: Code::Unavailable,
            name: "CLOUD_UNREACHABLE",
            todo: "check --region and --ecs-endpoint",
            names: "http://127.0.0.1:9",
            checks: &[],
        },
    ];
    for trouble in troubles {
        told(&trouble).await;
    }
}

async fn told(trouble: &Trouble) {
    let what = trouble.what;
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let socket = socket(&dir);
    fake.configure(trouble.cloud.clone()).await;
    let url = trouble.endpoint.unwrap_or(&fake.url);
    let start = diskplugin([
        "controller",
        "--cluster-id=c-test",
        "--zone=cn-beijing-b",
        "--http-address=127.0.0.1:0",
        &format!("--region={}", trouble.region),
        &format!("--ecs-endpoint={url}"),
        &endpoint(&socket),
    ]);
    let (controller, channel) = start.keys().ready(&socket).await;
    let refused = refused(&channel).await;
    assert_eq!(refused.code(), trouble.code, "{what}: {refused:?}");
    for said in [refused.message(), &controller.stderr()] {
        for part in [trouble.name, trouble.todo, trouble.names] {
            assert!(said.contains(part), "{what}: no {part:?} in: {said}");
        }
    }
    let ready = ask(&address(&controller).await, "/readyz").await;
    let bad = ["credentials", "cloud"].into_iter();
    let bad: Vec<&str> = bad
        .filter(|check| ready.is_ok(check) == Some(false))
        .collect();
    assert_eq!(bad, trouble.checks, "{what}: {ready:?}");
    assert_eq!(
        ready.status,
        if bad.is_empty() { 200 } else { 503 },
        "{what}"
    );
    if !bad.is_empty() {
        assert!(ready.text.contains(trouble.todo), "{what}: {ready:?}");
    }
    // A restart would mend nothing, and so none is asked for.
    let alive = ask(&address(&controller).await, "/healthz").await;
    assert_eq!(alive.status, 200, "{what}: {alive:?}");
}

/// The answer of a call that is waited for as long as a person would; a sidecar waits for longer.
async fn refused(channel: &Channel) -> Status {
    let mut request = Request::new(volume("pvc-1"));
    request.set_timeout(Duration::from_secs(8));
    let mut client = ControllerClient::new(channel.clone());
    client.create_volume(request).await.unwrap_err()
}

#[tokio::test]
async fn a_secret_that_is_not_there_or_has_half_a_key_is_named_and_counts_once_it_is_whole() {
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
        assert_eq!(refused.code(), Code::Unauthenticated, "{refused:?}");
        let ready = ask(&http, "/readyz").await;
        assert_eq!(ready.is_ok("credentials"), Some(false), "{ready:?}");
        for said in [refused.message(), &ready.text, &controller.stderr()] {
            for part in [missing, &secret.display().to_string()] {
                assert!(said.contains(part), "no {part:?} in: {said}");
            }
        }
    }
    std::fs::write(secret.join("access-key-secret"), SECRET).unwrap();
    create(&channel, "pvc-1").await.unwrap();
    assert_eq!(ask(&http, "/readyz").await.status, 200);
}

/// What ends at its start ends with the reason and what to do in the last line, as text and as JSON: that is what
/// `kubectl describe pod` shows of a container that has ended.
#[tokio::test]
async fn what_does_not_start_says_why_in_its_last_line() {
    // Nobody listens there.
    const NO_METADATA: &str = "--metadata-endpoint=http://127.0.0.1:9";
    let lines: [(&'static [&str], &'static [&str]); 8] = [
        (
            &["controller", "--cluster-id=c", NO_METADATA],
            &["--region is not set", "http://127.0.0.1:9", "set it, or"],
        ),
        (
            &["node", "--node-id=i-1", NO_METADATA],
            &["--zone is not set", "http://127.0.0.1:9", "set it, or"],
        ),
        (
            &["controller", "--region=cn-beijing", NO_METADATA],
            &["--cluster-id is not set: name this cluster"],
        ),
        (
            &["controller", "--region=CN BEIJING"],
            &["--region", "is no region id: letters"],
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
    // Who asks for its metadata does so for seconds: all of them together.
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
        let last = ended.stderr.lines().last().expect("it says why");
        if format == "json" {
            let objects = ended.stderr.lines().map(serde_json::from_str::<Value>);
            assert!(
                objects.into_iter().all(|one| one.is_ok()),
                "{}",
                ended.stderr
            );
        }
        for part in parts {
            assert!(last.contains(part), "{line:?}: no {part:?} in: {last}");
        }
    }
}
