//! CSI calls against the fake cloud, with the most verbose logs.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use diskplugin::csi::proto::controller_client::ControllerClient;
use diskplugin::csi::proto::node_client::NodeClient;
use diskplugin::csi::proto::{
    ControllerExpandVolumeRequest, ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest,
    CreateSnapshotRequest, CreateVolumeRequest, DeleteVolumeRequest, NodeExpandVolumeRequest, NodePublishVolumeRequest,
    NodeStageVolumeRequest, ValidateVolumeCapabilitiesRequest,
};
use tonic::transport::Channel;
use tonic::{Response, Status};

use crate::common::csi::{capability, endpoint, volume, within};
use crate::common::fake::{Fake, NODES, ZONE};
use crate::common::process::{Start, diskplugin};
use crate::common::recording_proxy::RecordingProxy;
use crate::running::Running;
use crate::secrets::hidden::{Hidden, ODD, PLAIN, signatures};

/// Long enough for a successful call.
const DEADLINE: Duration = Duration::from_millis(1500);

/// The errors that the driver returned, as text.
#[derive(Debug, Default)]
pub(crate) struct Errors(pub(crate) String);

impl Errors {
    fn note<T: Default>(&mut self, response: Result<Response<T>, Status>) -> T {
        match response {
            Ok(response) => response.into_inner(),
            Err(status) => {
                let details = String::from_utf8_lossy(status.details());
                self.0 += &format!("{status}\n{status:?}\n{}\n{details}\n", status.message());
                T::default()
            }
        }
    }
}

/// Makes every call that has `secrets`, successful and failing ones.
pub(crate) async fn make_calls(channel: &Channel, hidden: &Hidden, deadline: Duration) -> Errors {
    let secrets = || std::collections::HashMap::from([("key".to_owned(), hidden.marker.to_owned())]);
    let capability = Some(capability());
    let mut errors = Errors::default();
    let mut controller = ControllerClient::new(channel.clone());
    let mut node = NodeClient::new(channel.clone());
    let create = CreateVolumeRequest {
        secrets: secrets(),
        ..volume("pvc-1")
    };
    let created = controller.create_volume(within(deadline, create)).await;
    let id = errors.note(created).volume.unwrap_or_default().volume_id;
    let id = if id.is_empty() { "d-none".to_owned() } else { id };
    let wrong = CreateVolumeRequest {
        secrets: secrets(),
        parameters: [("no-such".to_owned(), "parameter".to_owned())].into(),
        ..volume("pvc-2")
    };
    errors.note(controller.create_volume(within(deadline, wrong)).await);
    for disk in [id.as_str(), "d-other"] {
        let publish = ControllerPublishVolumeRequest {
            volume_id: disk.to_owned(),
            node_id: NODES[0].to_owned(),
            volume_capability: capability.clone(),
            secrets: secrets(),
            ..ControllerPublishVolumeRequest::default()
        };
        errors.note(controller.controller_publish_volume(within(deadline, publish)).await);
    }
    let validate = ValidateVolumeCapabilitiesRequest {
        volume_id: id.clone(),
        volume_capabilities: capability.iter().cloned().collect(),
        secrets: secrets(),
        ..ValidateVolumeCapabilitiesRequest::default()
    };
    let validate = within(deadline, validate);
    errors.note(controller.validate_volume_capabilities(validate).await);
    let snapshot = CreateSnapshotRequest {
        source_volume_id: id.clone(),
        name: "snapshot-1".to_owned(),
        secrets: secrets(),
        ..CreateSnapshotRequest::default()
    };
    errors.note(controller.create_snapshot(within(deadline, snapshot)).await);
    let expand = ControllerExpandVolumeRequest {
        volume_id: id.clone(),
        capacity_range: volume("").capacity_range,
        secrets: secrets(),
        ..ControllerExpandVolumeRequest::default()
    };
    errors.note(controller.controller_expand_volume(within(deadline, expand)).await);
    let stage = NodeStageVolumeRequest {
        volume_id: id.clone(),
        staging_target_path: "/nowhere/staging".to_owned(),
        volume_capability: capability.clone(),
        secrets: secrets(),
        ..NodeStageVolumeRequest::default()
    };
    errors.note(node.node_stage_volume(within(deadline, stage)).await);
    let publish = NodePublishVolumeRequest {
        volume_id: id.clone(),
        staging_target_path: "/nowhere/staging".to_owned(),
        target_path: "/nowhere/target".to_owned(),
        volume_capability: capability.clone(),
        secrets: secrets(),
        ..NodePublishVolumeRequest::default()
    };
    errors.note(node.node_publish_volume(within(deadline, publish)).await);
    let expand = NodeExpandVolumeRequest {
        volume_id: id.clone(),
        volume_path: "/nowhere/target".to_owned(),
        secrets: secrets(),
        ..NodeExpandVolumeRequest::default()
    };
    errors.note(node.node_expand_volume(within(deadline, expand)).await);
    let unpublish = ControllerUnpublishVolumeRequest {
        volume_id: id.clone(),
        node_id: NODES[0].to_owned(),
        secrets: secrets(),
    };
    let unpublish = within(deadline, unpublish);
    errors.note(controller.controller_unpublish_volume(unpublish).await);
    let delete = DeleteVolumeRequest {
        volume_id: id,
        secrets: secrets(),
    };
    errors.note(controller.delete_volume(within(deadline, delete)).await);
    errors
}

/// All-in-one on the cloud at this URL, with the most verbose logs.
pub(crate) fn verbose(url: &str, socket: &Path, hidden: &Hidden, flags: &[&str]) -> Start {
    diskplugin([
        "all-in-one",
        "--region=cn-beijing",
        "--cluster-id=c-test",
        &format!("--node-id={}", NODES[0]),
        &format!("--zone={ZONE}"),
        &format!("--ecs-endpoint={url}"),
        &endpoint(socket),
    ])
    .args(flags)
    .env("RUST_LOG", "trace,h2=trace")
    .env("ACCESS_KEY_ID", hidden.key)
    .env("ACCESS_KEY_SECRET", hidden.secret)
}

/// Stops the process and returns its complete output.
pub(crate) async fn output_of(driver: Running) -> String {
    let ended = driver.stop().await;
    assert!(
        ended.stderr.contains("TRACE"),
        "the log is not verbose: {}",
        ended.stderr
    );
    ended.stdout + &ended.stderr
}

async fn against_the_fake(hidden: &Hidden, secret: &str, flags: &[&str]) -> String {
    let keys = [
        &*format!("--access-key-id={}", hidden.key),
        &*format!("--access-key-secret={secret}"),
    ];
    let fake = Fake::start_verbose(&keys).await;
    let server: SocketAddr = fake.url.trim_start_matches("http://").parse().unwrap();
    let proxy = RecordingProxy::to(server).await;
    let driver = Running::of(|socket| verbose(&proxy.url, socket, hidden, flags)).await;
    let errors = make_calls(&driver.channel, hidden, DEADLINE).await;
    let output = output_of(driver).await;
    let sent = proxy.sent();
    assert!(signatures(&sent).len() > 3, "too few signatures: {sent}");
    for text in [&errors.0, &output, &fake.process.stdout(), &fake.process.stderr()] {
        hidden.absent_from(text, &sent);
    }
    errors.0
}

#[tokio::test]
async fn successful_and_failing_calls_print_no_secret() {
    let text = against_the_fake(&ODD, ODD.secret, &["--log-format=text"]);
    let json = against_the_fake(&PLAIN, PLAIN.secret, &["--log-format=json", "--signature=v3"]);
    tokio::join!(text, json);
}

#[tokio::test]
async fn a_rejected_signature_is_not_printed() {
    let v1 = against_the_fake(&ODD, "another", &["--log-format=json"]);
    let v3 = against_the_fake(&PLAIN, "another", &["--signature=v3"]);
    let (v1, v3) = tokio::join!(v1, v3);
    assert!(v1.contains("SignatureDoesNotMatch") && v3.contains("SignatureDoesNotMatch"));
}
