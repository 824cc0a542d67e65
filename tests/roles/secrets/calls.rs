//! CSI calls against the fake cloud, with the most verbose logs.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use diskplugin::csi::proto::controller_client::ControllerClient;
use diskplugin::csi::proto::node_client::NodeClient;
use diskplugin::csi::proto::{
    CreateVolumeRequest, NodeExpandVolumeRequest, NodePublishVolumeRequest, NodeStageVolumeRequest,
    ValidateVolumeCapabilitiesRequest,
};
use tonic::transport::Channel;
use tonic::{Response, Status};

use crate::common::csi::{capability, endpoint, volume, within};
use crate::common::fake::{Fake, NODES, ZONE};
use crate::common::process::{Start, diskplugin};
use crate::common::recording_proxy::RecordingProxy;
use crate::common::request::{deletion, expansion, new_snapshot, parameters, publication, range, unpublication};
use crate::running::Running;
use crate::secrets::hidden::{Hidden, PLAIN, signatures};

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
    let mut errors = Errors::default();
    let mut controller = ControllerClient::new(channel.clone());
    let mut node = NodeClient::new(channel.clone());
    macro_rules! call {
        ($client:ident.$rpc:ident($message:expr)) => {{
            let mut message = $message;
            message.secrets = parameters(&[("key", hidden.marker)]);
            errors.note($client.$rpc(within(deadline, message)).await)
        }};
    }
    let created = call!(controller.create_volume(volume("pvc-1")));
    let id = created.volume.unwrap_or_default().volume_id;
    let id = if id.is_empty() { "d-none".to_owned() } else { id };
    let (staging_target_path, target) = ("/nowhere/staging".to_owned(), "/nowhere/target".to_owned());
    call!(controller.create_volume(CreateVolumeRequest {
        parameters: parameters(&[("no-such", "parameter")]),
        ..volume("pvc-2")
    }));
    for disk in [id.as_str(), "d-other"] {
        call!(controller.controller_publish_volume(publication(disk, NODES[0])));
    }
    call!(
        controller.validate_volume_capabilities(ValidateVolumeCapabilitiesRequest {
            volume_id: id.clone(),
            volume_capabilities: vec![capability()],
            ..Default::default()
        })
    );
    call!(controller.create_snapshot(new_snapshot("snapshot-1", &id)));
    call!(controller.controller_expand_volume(expansion(&id, range(20, 0))));
    call!(node.node_stage_volume(NodeStageVolumeRequest {
        volume_id: id.clone(),
        staging_target_path: staging_target_path.clone(),
        volume_capability: Some(capability()),
        ..Default::default()
    }));
    call!(node.node_publish_volume(NodePublishVolumeRequest {
        volume_id: id.clone(),
        staging_target_path,
        target_path: target.clone(),
        volume_capability: Some(capability()),
        ..Default::default()
    }));
    call!(node.node_expand_volume(NodeExpandVolumeRequest {
        volume_id: id.clone(),
        volume_path: target,
        ..Default::default()
    }));
    call!(controller.controller_unpublish_volume(unpublication(&id, NODES[0])));
    call!(controller.delete_volume(deletion(&id)));
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
    let text = against_the_fake(&PLAIN, PLAIN.secret, &["--log-format=text"]);
    let json = against_the_fake(&PLAIN, PLAIN.secret, &["--log-format=json", "--signature=v3"]);
    tokio::join!(text, json);
}

#[tokio::test]
async fn a_rejected_signature_is_not_printed() {
    let v1 = against_the_fake(&PLAIN, "another", &["--log-format=json"]);
    let v3 = against_the_fake(&PLAIN, "another", &["--signature=v3"]);
    let (v1, v3) = tokio::join!(v1, v3);
    assert!(v1.contains("SignatureDoesNotMatch") && v3.contains("SignatureDoesNotMatch"));
}
