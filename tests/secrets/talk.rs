//! CSI calls against the fake cloud, with everything logged that can be.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use diskplugin::csi::proto::controller_client::ControllerClient;
use diskplugin::csi::proto::node_client::NodeClient;
use diskplugin::csi::proto::{
    ControllerExpandVolumeRequest, ControllerPublishVolumeRequest,
    ControllerUnpublishVolumeRequest, CreateSnapshotRequest, CreateVolumeRequest,
    DeleteVolumeRequest, NodeExpandVolumeRequest, NodePublishVolumeRequest, NodeStageVolumeRequest,
    ValidateVolumeCapabilitiesRequest,
};
use nix::sys::signal::Signal;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use crate::common::csi::{capability, endpoint, socket, volume};
use crate::common::fake::{Fake, NODES, ZONE};
use crate::common::process::{Process, Start, diskplugin};
use crate::common::tee::Tee;
use crate::hidden::{Hidden, ODD, PLAIN, signatures};

/// Long enough for a call that goes well.
const DEADLINE: Duration = Duration::from_millis(1500);

/// What the driver answered, as it would be printed.
#[derive(Debug, Default)]
pub(crate) struct Heard(pub(crate) String);

impl Heard {
    fn note<T: Default>(&mut self, answer: Result<Response<T>, Status>) -> T {
        match answer {
            Ok(answer) => answer.into_inner(),
            Err(status) => {
                let details = String::from_utf8_lossy(status.details());
                self.0 += &format!("{status}\n{status:?}\n{}\n{details}\n", status.message());
                T::default()
            }
        }
    }
}

/// Makes every call that may carry secrets, those that can go well and those that cannot.
pub(crate) async fn talk(channel: &Channel, hidden: &Hidden, deadline: Duration) -> Heard {
    let secrets =
        || std::collections::HashMap::from([("key".to_owned(), hidden.marker.to_owned())]);
    fn within<T>(deadline: Duration, message: T) -> Request<T> {
        let mut request = Request::new(message);
        request.set_timeout(deadline);
        request
    }
    let capability = Some(capability());
    let mut heard = Heard::default();
    let mut controller = ControllerClient::new(channel.clone());
    let mut node = NodeClient::new(channel.clone());
    let create = CreateVolumeRequest {
        secrets: secrets(),
        ..volume("pvc-1")
    };
    let created = controller.create_volume(within(deadline, create)).await;
    let id = heard.note(created).volume.unwrap_or_default().volume_id;
    let id = if id.is_empty() {
        "d-none".to_owned()
    } else {
        id
    };
    let wrong = CreateVolumeRequest {
        secrets: secrets(),
        parameters: [("no-such".to_owned(), "parameter".to_owned())].into(),
        ..volume("pvc-2")
    };
    heard.note(controller.create_volume(within(deadline, wrong)).await);
    for disk in [id.as_str(), "d-other"] {
        let publish = ControllerPublishVolumeRequest {
            volume_id: disk.to_owned(),
            node_id: NODES[0].to_owned(),
            volume_capability: capability.clone(),
            secrets: secrets(),
            ..ControllerPublishVolumeRequest::default()
        };
        heard.note(
            controller
                .controller_publish_volume(within(deadline, publish))
                .await,
        );
    }
    let validate = ValidateVolumeCapabilitiesRequest {
        volume_id: id.clone(),
        volume_capabilities: capability.iter().cloned().collect(),
        secrets: secrets(),
        ..ValidateVolumeCapabilitiesRequest::default()
    };
    heard.note(
        controller
            .validate_volume_capabilities(within(deadline, validate))
            .await,
    );
    let snapshot = CreateSnapshotRequest {
        source_volume_id: id.clone(),
        name: "snapshot-1".to_owned(),
        secrets: secrets(),
        ..CreateSnapshotRequest::default()
    };
    heard.note(controller.create_snapshot(within(deadline, snapshot)).await);
    let expand = ControllerExpandVolumeRequest {
        volume_id: id.clone(),
        capacity_range: volume("").capacity_range,
        secrets: secrets(),
        ..ControllerExpandVolumeRequest::default()
    };
    heard.note(
        controller
            .controller_expand_volume(within(deadline, expand))
            .await,
    );
    let stage = NodeStageVolumeRequest {
        volume_id: id.clone(),
        staging_target_path: "/nowhere/staging".to_owned(),
        volume_capability: capability.clone(),
        secrets: secrets(),
        ..NodeStageVolumeRequest::default()
    };
    heard.note(node.node_stage_volume(within(deadline, stage)).await);
    let publish = NodePublishVolumeRequest {
        volume_id: id.clone(),
        staging_target_path: "/nowhere/staging".to_owned(),
        target_path: "/nowhere/target".to_owned(),
        volume_capability: capability.clone(),
        secrets: secrets(),
        ..NodePublishVolumeRequest::default()
    };
    heard.note(node.node_publish_volume(within(deadline, publish)).await);
    let expand = NodeExpandVolumeRequest {
        volume_id: id.clone(),
        volume_path: "/nowhere/target".to_owned(),
        secrets: secrets(),
        ..NodeExpandVolumeRequest::default()
    };
    heard.note(node.node_expand_volume(within(deadline, expand)).await);
    let unpublish = ControllerUnpublishVolumeRequest {
        volume_id: id.clone(),
        node_id: NODES[0].to_owned(),
        secrets: secrets(),
    };
    heard.note(
        controller
            .controller_unpublish_volume(within(deadline, unpublish))
            .await,
    );
    let delete = DeleteVolumeRequest {
        volume_id: id,
        secrets: secrets(),
    };
    heard.note(controller.delete_volume(within(deadline, delete)).await);
    heard
}

/// All-in-one on the cloud at this URL, telling all that it can tell.
pub(crate) fn loud(url: &str, socket: &Path, hidden: &Hidden, flags: &[&str]) -> Start {
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

/// Ends the process; everything that it printed.
pub(crate) async fn all_of(process: Process) -> String {
    process.signal(Signal::SIGTERM);
    let ended = process.ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("TRACE"),
        "it does not tell all: {}",
        ended.stderr
    );
    ended.stdout + &ended.stderr
}

async fn against_the_fake(hidden: &Hidden, secret: &str, flags: &[&str]) -> String {
    let keys = [
        &format!("--access-key-id={}", hidden.key),
        &format!("--access-key-secret={secret}"),
    ];
    let fake = Fake::start_loud(&keys.map(String::as_str)).await;
    let server: SocketAddr = fake.url.trim_start_matches("http://").parse().unwrap();
    let (tee, dir) = (Tee::to(server).await, tempfile::tempdir().unwrap());
    let socket = socket(&dir);
    let start = loud(&tee.url, &socket, hidden, flags);
    let (driver, channel) = start.ready(&socket).await;
    let heard = talk(&channel, hidden, DEADLINE).await;
    let told = all_of(driver).await;
    let sent = tee.sent();
    assert!(signatures(&sent).len() > 3, "too few signatures: {sent}");
    hidden.absent_from(&heard.0, &sent);
    hidden.absent_from(&told, &sent);
    hidden.absent_from(&fake.process.stdout(), &sent);
    hidden.absent_from(&fake.process.stderr(), &sent);
    heard.0
}

#[tokio::test]
async fn calls_that_succeed_and_fail_tell_nothing() {
    let text = against_the_fake(&ODD, ODD.secret, &["--log-format=text"]);
    let json = against_the_fake(
        &PLAIN,
        PLAIN.secret,
        &["--log-format=json", "--signature=v3"],
    );
    tokio::join!(text, json);
}

#[tokio::test]
async fn a_signature_that_the_cloud_does_not_accept_is_not_told() {
    let v1 = against_the_fake(&ODD, "another", &["--log-format=json"]);
    let v3 = against_the_fake(&PLAIN, "another", &["--signature=v3"]);
    let (v1, v3) = tokio::join!(v1, v3);
    assert!(v1.contains("SignatureDoesNotMatch") && v3.contains("SignatureDoesNotMatch"));
}
