//! Settings by flag or environment; all missing and invalid settings are reported together.

use crate::common::csi::{create, info};
use crate::common::fake::{Fake, KEY, SECRET};
use crate::common::process::{Process, Start, diskplugin};
use crate::running::{HTTP, NO_METADATA, Running, node};
use crate::text::{assert_failed, assert_has};

/// Environment, command line, and parts of the output.
const REJECTED: &str = r#"
controller NO_METADATA | --region | --cluster-id
all-in-one NO_METADATA | --region | --zone | --node-id | --cluster-id
MAX_VOLUMES_PERNODE=0 node NO_METADATA | MAX_VOLUMES_PERNODE is "0"
MAX_VOLUMES_PERNODE=0 all-in-one NO_METADATA | MAX_VOLUMES_PERNODE is "0" | --zone | --node-id
 | Usage
no-such-role | no-such-role
controller --no-such-flag | --no-such-flag
controller --signature=v2 | v1, v3
controller --ecs-endpoint=nonsense | http://HOST
node --max-volumes-per-node=0 | --max-volumes-per-node
node --endpoint=tcp://127.0.0.1:1 | unix:///absolute/path
node --metadata-endpoint=ftp://h | http://HOST
node --zone=z-a --node-id=i-1 --http-address=:9808 | --http-address
node --zone=z-a --node-id=i-1 --http-address=9808 | --http-address
node --zone=z-a --node-id=i-1 --registration-dir=registry | an absolute path
node --zone=z-a --node-id=i-1 --registration-dir=/tmp --kubelet-socket=csi.sock | an absolute path
node --zone=z-a --node-id=i-1 --registration-dir=/tmp --driver-name=No/Name | lower-case letters
controller CLUSTER --oidc-token-file=/var/run/token | --oidc-role-arn and --oidc-provider-arn
controller CLUSTER --oidc-token-file=/t --oidc-provider-arn=acs:ram::1:oidc-provider/p | also requires --oidc-role-arn
controller CLUSTER --credentials=directory | --credentials-dir
controller CLUSTER --credentials=nonsense | instance-role
controller CLUSTER --assume-role-arn=x | acs:ram::UID:role/NAME
controller CLUSTER --role-duration=1m | 15m to 12h
controller CLUSTER --assume-role-external-id=x | --assume-role-arn
ACCESS_KEY_ID=a ACCESS_KEY_SECRET=b controller CLUSTER --events | --events: requires the API server | set --kubeconfig
doctor --scope=cloud --region=r NO_METADATA --rate-limits=CreateDisk=1,CreateDisk=2 | --rate-limits has several limits of CreateDisk
timeline default/data --url=http://127.0.0.1:9 |
timeline d-1 --url=127.0.0.1:9 | allowed: http://HOST:PORT
"#;

/// The same, where the reason and the advice are in the last line, as text and as JSON: `kubectl describe pod` shows
/// this line of a terminated container.
const LAST_LINES: &str = "
controller --cluster-id=c NO_METADATA | --region is not set | http://127.0.0.1:9 | set it, or
all-in-one --cluster-id=c --node-id=i-1 --region=r NO_METADATA | --zone is not set | http://127.0.0.1:9 | set it, or
controller --region=cn-beijing NO_METADATA | --cluster-id is not set: set an ID that is unique
controller --region=CN/BEIJING | --region | allowed: lower-case letters, digits and -
controller --no-such-flag | '--no-such-flag'
controller --network=moon | 'moon' | --network | public, vpc
controller CLUSTER --credentials=oidc NO_METADATA | --oidc-role-arn
node --zone=z --node-id=i-1 --require-shared-mounts --kubelet-dir=/does/not/exist | /does/not/exist | --kubelet-dir
";

/// Starts the commands of a table together, because some wait several seconds for their metadata.
fn start<'a>(table: &'a str, format: &str) -> Vec<(Vec<&'a str>, Process)> {
    let rows = table.lines().filter(|row| !row.is_empty());
    let processes = rows.map(|row| {
        let (line, parts) = row.split_once(" |").unwrap();
        let line = line.replace("NO_METADATA", NO_METADATA);
        let line = line.replace("CLUSTER", "--region=cn-beijing --cluster-id=c --zone=z-a");
        let (variables, words): (Vec<_>, Vec<_>) = line.split_whitespace().partition(|word| {
            let name = word.split('=').next().unwrap_or_default();
            word.contains('=') && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
        });
        let mut start = diskplugin(words).env("DISKPLUGIN_LOG_FORMAT", format);
        for (name, value) in variables.iter().filter_map(|variable| variable.split_once('=')) {
            start = start.env(name, value);
        }
        (parts.split(" | ").map(str::trim).collect(), start.spawn())
    });
    processes.collect()
}

#[tokio::test]
async fn invalid_and_missing_settings_are_reported_together() {
    for (parts, process) in start(REJECTED, "text") {
        assert_failed(&process.ended().await, 64, &parts);
    }
}

#[tokio::test]
async fn the_last_line_of_a_failed_start_has_the_reason() {
    for format in ["text", "json"] {
        for (parts, process) in start(LAST_LINES, format) {
            let ended = process.ended().await;
            assert_failed(&ended, 64, &parts);
            assert_has(ended.stderr.lines().last().unwrap(), &parts);
            let mut objects = ended.stderr.lines().map(serde_json::from_str::<serde_json::Value>);
            assert!(
                format == "text" || objects.all(|object| object.is_ok_and(|object| object["message"].is_string())),
                "{}",
                ended.stderr
            );
        }
    }
}

#[tokio::test]
async fn a_flag_takes_precedence_over_its_variable() {
    let fake = Fake::start(&[]).await;
    let controller = Running::of(|socket| {
        let start = fake
            .controller(socket)
            .keys()
            .args([HTTP, "--rate-limits=CreateDisk=0.5"]);
        let variables = [
            ("RATE_LIMITS", "AttachDisk=2"),
            ("CLUSTER_ID", "c-variable"),
            ("LOG_LEVEL", "debug"),
        ];
        with_variables(start, &variables)
    });
    let controller = controller.await;
    create(&controller.channel, "pvc-1").await.unwrap();
    assert_has(&fake.disks().await[0]["tags"].to_string(), &["\"c-test\""]);
    let metrics = controller.get("/metrics").await.text;
    let has_limit = |action: &str| metrics.contains(&format!("configured_calls_per_second{{action=\"{action}\"}}"));
    assert!(has_limit("CreateDisk") && !has_limit("AttachDisk"), "{metrics}");
    // No flag sets the log level here.
    assert_has(&controller.process.stderr(), &["DEBUG"]);
}

#[tokio::test]
async fn a_controller_can_be_configured_by_environment_variables() {
    let (fake, secret) = (Fake::start(&[]).await, tempfile::tempdir().unwrap());
    std::fs::write(secret.path().join("access-key-id"), KEY).unwrap();
    std::fs::write(secret.path().join("access-key-secret"), SECRET).unwrap();
    let controller = Running::of(|socket| {
        let variables = [
            ("ENDPOINT", &*format!("unix://{}", socket.display())),
            ("DRAIN_TIMEOUT", "3s"),
            ("REGION", "cn-beijing"),
            ("ZONE", "cn-beijing-c"),
            ("METADATA_ENDPOINT", "http://127.0.0.1:9"),
            ("ECS_ENDPOINT", &fake.url),
            ("NETWORK", "vpc"),
            ("SIGNATURE", "v3"),
            ("CREDENTIALS_DIR", secret.path().to_str().unwrap()),
            ("CLUSTER_ID", "c-environment"),
            ("LOG_FORMAT", "json"),
        ];
        with_variables(diskplugin(["controller"]), &variables)
    });
    let controller = controller.await;
    create(&controller.channel, "pvc-1").await.unwrap();
    let disk = &fake.disks().await[0];
    assert_eq!(disk["zone"], "cn-beijing-c");
    assert_has(&disk["tags"].to_string(), &["c-environment"]);
    let calls = fake.calls().await;
    assert!(calls.iter().all(|call| call["via"] == "v3"), "{calls:?}");
    let log = controller.process.stderr();
    assert!(log.starts_with('{'), "{log}");
}

#[tokio::test]
async fn a_node_can_be_configured_by_environment_variables() {
    let devices = tempfile::tempdir().unwrap();
    let node = Running::of(|socket| {
        let variables = [
            ("ENDPOINT", &*format!("unix://{}", socket.display())),
            ("ZONE", "cn-beijing-c"),
            ("NODE_ID", "i-environment"),
            ("MAX_VOLUMES_PER_NODE", "7"),
            ("DEVICE_DIR", devices.path().to_str().unwrap()),
        ];
        with_variables(diskplugin(["node"]), &variables)
    });
    let info = info(&node.await.channel).await.unwrap();
    assert_eq!((info.node_id.as_str(), info.max_volumes_per_node), ("i-environment", 7));
}

#[tokio::test]
async fn the_volume_limit_flag_takes_precedence_over_the_vendors_variable() {
    for (flags, variable, expected) in [
        (&[][..], Some("9"), 9),
        (&["--max-volumes-per-node=5"], Some("9"), 5),
        (&[], None, 0),
    ] {
        let start = |socket: &std::path::Path| match variable {
            Some(value) => node(socket).args(flags).env("MAX_VOLUMES_PERNODE", value),
            None => node(socket).args(flags),
        };
        let info = info(&Running::of(start).await.channel).await.unwrap();
        assert_eq!(info.max_volumes_per_node, expected);
    }
}

/// Sets the environment variables of flags.
pub(crate) fn with_variables(start: Start, variables: &[(&str, &str)]) -> Start {
    let variables = variables.iter();
    variables.fold(start, |start, (name, value)| {
        start.env(&format!("DISKPLUGIN_{name}"), value)
    })
}
