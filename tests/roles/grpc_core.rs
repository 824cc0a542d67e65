//! Clients that use gRPC C core (Python, C++, Ruby), which sends the path of the socket as `:authority`.

use std::path::{Path, PathBuf};

use diskplugin::csi::proto::pluginregistration::PluginInfo;
use diskplugin::csi::proto::{
    ControllerGetCapabilitiesResponse, GetPluginInfoResponse, GroupControllerGetCapabilitiesResponse,
    NodeGetInfoResponse, ProbeResponse,
};
use prost::Message;

use crate::common::csi::endpoint;
use crate::common::fake::Fake;
use crate::common::process::{Start, diskplugin};
use crate::common::shell::skip;
use crate::running::Running;

const NAME: &str = "diskplugin.csi.example";
const IDENTITY: [&str; 2] = ["/csi.v1.Identity/GetPluginInfo", "/csi.v1.Identity/Probe"];
const CONTROLLER: &str = "/csi.v1.Controller/ControllerGetCapabilities";
const GROUPS: &str = "/csi.v1.GroupController/GroupControllerGetCapabilities";
const NODE: &str = "/csi.v1.Node/NodeGetInfo";

/// The Python with gRPC that `scripts/setup` installs. If it is missing, tests are skipped, except in CI.
fn python(test: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_diskplugin"));
    let target = program.parent().and_then(Path::parent).unwrap();
    let python = target.join("sdk/bin/python");
    if target.join("sdk/requirements.txt").exists() {
        return Some(python);
    }
    let reason = format!("{} is not installed (scripts/setup test)", python.display());
    skip(test, &reason);
    None
}

/// The responses to these methods, called with empty messages over one channel.
async fn call(python: &Path, socket: &Path, methods: &[&str]) -> Vec<Vec<u8>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/roles/grpc_core.py");
    let start = Start::of(python.to_str().unwrap()).args([script, socket.to_str().unwrap()]);
    let ended = start.args(methods).ended().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let bytes = |line: &str| {
        let digits = (0..line.len()).step_by(2);
        let digits = digits.map(|at| u8::from_str_radix(&line[at..at + 2], 16).unwrap());
        digits.collect()
    };
    ended.stdout.lines().map(bytes).collect()
}

/// The responses of `Identity` and then of these methods, called twice over one channel.
async fn identity_and(python: &Path, socket: &Path, methods: &[&str]) -> Vec<Vec<u8>> {
    let once = [&IDENTITY[..], methods].concat();
    let mut responses = call(python, socket, &once.repeat(2)).await;
    let second = responses.split_off(once.len());
    assert_eq!(responses, second);
    let info = GetPluginInfoResponse::decode(&*responses[0]).unwrap();
    assert_eq!(info.name, NAME);
    assert!(ProbeResponse::decode(&*responses[1]).is_ok());
    responses.split_off(IDENTITY.len())
}

fn node_id(response: &[u8]) -> String {
    NodeGetInfoResponse::decode(response).unwrap().node_id
}

fn assert_controller(responses: &[Vec<u8>]) {
    let controller = ControllerGetCapabilitiesResponse::decode(&*responses[0]).unwrap();
    let groups = GroupControllerGetCapabilitiesResponse::decode(&*responses[1]).unwrap();
    assert!(!controller.capabilities.is_empty() && !groups.capabilities.is_empty());
}

#[tokio::test]
async fn pythons_grpc_calls_the_controller_in_its_default_configuration() {
    let Some(python) = python("grpc_core: the controller") else {
        return;
    };
    let fake = Fake::start(&[]).await;
    let controller = Running::controller(&fake, &[]).await;
    assert_controller(&identity_and(&python, &controller.socket, &[CONTROLLER, GROUPS]).await);
}

#[tokio::test]
async fn pythons_grpc_calls_all_in_one_in_its_default_configuration() {
    let Some(python) = python("grpc_core: all-in-one") else {
        return;
    };
    let all = Running::of(|socket| diskplugin(["all-in-one", "--cloud=mock", &endpoint(socket)])).await;
    let responses = identity_and(&python, &all.socket, &[CONTROLLER, GROUPS, NODE]).await;
    assert_controller(&responses);
    assert!(!node_id(&responses[2]).is_empty());
}

#[tokio::test]
async fn pythons_grpc_calls_node_and_registration_in_its_default_configuration() {
    let Some(python) = python("grpc_core: the node and its registration") else {
        return;
    };
    let registry = tempfile::tempdir().unwrap();
    let flag = format!("--registration-dir={}", registry.path().display());
    let node = Running::node(&[&flag]).await;
    let responses = identity_and(&python, &node.socket, &[NODE]).await;
    assert_eq!(node_id(&responses[0]), "i-1");
    let registration = registry.path().join(format!("{NAME}-reg.sock"));
    let method = "/pluginregistration.Registration/GetInfo";
    let responses = call(&python, &registration, &[method, method]).await;
    let info = PluginInfo::decode(&*responses[1]).unwrap();
    assert_eq!(info.endpoint, node.socket.display().to_string());
}
