//! Common installation errors: a wrong region, key, clock or Secret, and no metadata service. The sidecar, `/readyz`
//! and the log get the name of the failure and advice; the process keeps running unless a restart would help.

use std::time::Duration;

use diskplugin::csi::proto::controller_client::ControllerClient;
use serde_json::{Value, json};
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::common::csi::{create, endpoint, volume, within};
use crate::common::fake::{Fake, KEY, SECRET};
use crate::common::process::diskplugin;
use crate::running::{HTTP, Running};
use crate::text::{assert_has, assert_lacks};

fn responds(status: u16, code: &str) -> Value {
    let fault = json!({"action": "*", "times": 1000, "kind": {"code": {"status": status, "code": code}}});
    json!({"faults": [fault]})
}

#[tokio::test]
async fn installation_errors_are_reported_to_sidecar_readyz_and_log_with_advice() {
    let environment = "the credentials came from the environment";
    let correct = ("cn-beijing", None);
    let unreachable = ("cn-beijing", Some("http://127.0.0.1:9"));
    // The cloud's state, the name of the failure, the advice, the value that the message names, and the failing check
    // of `/readyz`; none if the error concerns a single call.
    for ((region, ecs_endpoint), cloud, parts, check) in [
        (
            ("cn-nowhere", None),
            json!({}),
            ["UNKNOWN_REGION", "correct --region", "cn-nowhere"],
            Some("cloud"),
        ),
        (
            correct,
            json!({"inactive_keys": [KEY]}),
            ["ACCESS_KEY_INACTIVE", "enable it", environment],
            Some("credentials"),
        ),
        (
            correct,
            responds(404, "InvalidAccessKeyId.NotFound"),
            [
                "ACCESS_KEY_NOT_FOUND",
                "check the access key in the Secret",
                environment,
            ],
            Some("credentials"),
        ),
        (
            correct,
            responds(400, "InvalidTimeStamp.Expired"),
            ["CLOCK_SKEW", "correct the clock", "InvalidTimeStamp.Expired"],
            Some("credentials"),
        ),
        (
            correct,
            json!({"denied": ["CreateDisk"]}),
            ["ACCESS_DENIED", "RAM policy", "CreateDisk"],
            None,
        ),
        (
            unreachable,
            json!({}),
            [
                "CLOUD_UNREACHABLE",
                "check --region and --ecs-endpoint",
                "http://127.0.0.1:9",
            ],
            None,
        ),
    ] {
        println!("{}", parts[0]);
        let fake = Fake::start(&[]).await;
        fake.configure(cloud).await;
        let flags = [
            HTTP.to_owned(),
            format!("--region={region}"),
            format!("--ecs-endpoint={}", ecs_endpoint.unwrap_or(&fake.url)),
        ];
        let controller = Running::of(|socket| {
            let start = diskplugin(["controller", "--cluster-id=c-test", "--zone=cn-beijing-b"]);
            start.args([endpoint(socket)]).args(flags).keys()
        });
        let controller = controller.await;
        let refused = refused(&controller.channel).await;
        // A response to an earlier process may be lost, so no refusal is final.
        assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
        assert_has(refused.message(), &parts);
        assert_has(&controller.process.stderr(), &parts);
        let ready = controller.get("/readyz").await;
        let failing = ["credentials", "cloud"].into_iter();
        let failing: Vec<&str> = failing.filter(|check| ready.is_ok(check) == Some(false)).collect();
        assert_eq!(failing, Vec::from_iter(check), "{ready:?}");
        assert_eq!(ready.status, if failing.is_empty() { 200 } else { 503 });
        if !failing.is_empty() {
            assert_has(&ready.text, &[parts[1]]);
        }
        // A restart would not help, so the liveness check succeeds.
        assert_eq!(controller.get("/healthz").await.status, 200);
    }
}

/// The error of a call with a short timeout; sidecars wait longer.
async fn refused(channel: &Channel) -> Status {
    let request = within(Duration::from_secs(8), volume("pvc-1"));
    let mut client = ControllerClient::new(channel.clone());
    client.create_volume(request).await.unwrap_err()
}

#[tokio::test]
async fn a_missing_incomplete_or_malformed_secret_is_named_and_used_once_complete() {
    let (fake, dir) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    let secret = dir.path().join("secret");
    let flag = format!("--credentials-dir={}", secret.display());
    let flags = [HTTP, "--credentials=directory", &flag];
    let controller = Running::of(|socket| fake.controller(socket).args(flags)).await;
    let write = |file: &str, content: &str| std::fs::write(secret.join(file), content).unwrap();
    let hidden = format!("{SECRET}\u{200b}");
    for (file, content, missing) in [
        (None, "", "has neither access-key-id and access-key-secret"),
        (
            Some("access-key-id"),
            KEY,
            "has access-key-id, but access-key-secret is missing or empty",
        ),
        (
            Some("access-key-secret"),
            "\u{feff} \r\n",
            "but access-key-secret is missing or empty",
        ),
        (
            Some("access-key-secret"),
            &hidden,
            "access-key-secret in the Secret directory",
        ),
        (
            None,
            "",
            "has U+200B at position 18; allowed are ASCII letters, digits and -_.+/=",
        ),
    ] {
        if let Some(file) = file {
            std::fs::create_dir_all(&secret).unwrap();
            write(file, content);
        }
        let refused = refused(&controller.channel).await;
        assert_eq!(refused.code(), Code::Unavailable, "{refused:?}");
        let ready = controller.get("/readyz").await;
        assert_eq!(ready.is_ok("credentials"), Some(false), "{ready:?}");
        for text in [refused.message(), &ready.text, &controller.process.stderr()] {
            assert_has(text, &[missing, secret.to_str().unwrap()]);
            assert_lacks(text, &[SECRET]);
        }
    }
    assert_eq!(
        fake.count("DescribeDisks").await,
        0,
        "the cloud was called with such a key"
    );
    write("access-key-id", &format!("\u{feff}{KEY}\r\n"));
    write("access-key-secret", &format!("\u{feff}{SECRET} \n"));
    create(&controller.channel, "pvc-1").await.unwrap();
    assert_eq!(controller.get("/readyz").await.status, 200);
}
