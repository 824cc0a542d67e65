//! A fake cloud with a Controller service.

// The imports of every test.
pub(crate) use std::collections::{BTreeSet, HashMap};
pub(crate) use std::sync::Arc;
pub(crate) use std::time::Duration;

pub(crate) use diskplugin::csi::controller::Service;
pub(crate) use diskplugin::csi::proto::controller_server::Controller;
pub(crate) use diskplugin::csi::proto::volume_capability::AccessType;
pub(crate) use diskplugin::csi::proto::volume_capability::access_mode::Mode;
pub(crate) use diskplugin::csi::proto::{
    self, CapacityRange, ControllerExpandVolumeRequest, ControllerGetCapabilitiesRequest,
    ControllerGetVolumeHealthRequest, ControllerGetVolumeRequest, ControllerListVolumeHealthRequest,
    ControllerModifyVolumeRequest, ControllerPublishVolumeRequest, CreateSnapshotRequest, CreateVolumeRequest,
    ListSnapshotsRequest, ListVolumesRequest, Topology, TopologyRequirement, ValidateVolumeCapabilitiesRequest,
    VolumeCapability,
};
pub(crate) use diskplugin::model::DiskId;
pub(crate) use fake_ecs::Cloud;
pub(crate) use serde_json::{Value, json};
pub(crate) use tokio::task::JoinSet;
pub(crate) use tokio::time::Instant;
pub(crate) use tonic::{Code, Request, Status};

use diskplugin::base::{Deadline, SystemClock, Tasks};
use diskplugin::csi::controller::DriverLocation;
use diskplugin::disk::DiskServices;
use ecs::Client;
use ecs::sign::Scheme;
use fake_ecs::Options;
use tonic::Response;
use wiremock::MockServer;

use crate::common::ecs::client_at;
use crate::common::memory_cloud;
use crate::common::request::{deletion, expansion, snapshot_deletion, unpublication};

pub(crate) use crate::common::memory_cloud::client;
pub(crate) use crate::common::request::{
    block, capability, from_snapshot, from_volume, mount, new_snapshot, new_volume, of_zone, parameters, publication,
    range, topology,
};

/// The default node of publish requests.
pub(crate) const NODE: &str = "i-one";
/// Another node in the same zone.
pub(crate) const OTHER: &str = "i-two";

/// The outcome of an RPC.
pub(crate) type RpcResult<T> = Result<T, Status>;

/// A fake cloud and the service of one controller process.
#[derive(Debug, Clone)]
pub(crate) struct Stage {
    pub(crate) cloud: Cloud,
    pub(crate) service: Service,
    /// The `grpc-timeout` of its calls.
    timeout: Option<Duration>,
}

impl Stage {
    pub(crate) fn new(flags: &[&str]) -> Self {
        let cloud = memory_cloud::start(with_nodes(flags));
        let service = process_over(Arc::new(client(&cloud)), long_ago());
        Self::over(cloud, service)
    }

    /// The same with the real HTTP client, on a server to which a test adds mocks that precede the fake cloud. Requires
    /// real time.
    pub(crate) async fn over_http(flags: &[&str]) -> (Self, MockServer) {
        let options = Options::from_flags(with_nodes(flags)).unwrap();
        let cloud = Cloud::in_memory(&options, Arc::new(fake_ecs::SystemClock));
        let server = MockServer::start().await;
        cloud.mount(&server).await;
        let client = client_at(&server.uri(), Scheme::V1, Arc::new(SystemClock));
        let service = process_over(Arc::new(client), long_ago());
        (Self::over(cloud, service), server)
    }

    pub(crate) fn over(cloud: Cloud, service: Service) -> Self {
        let timeout = None;
        Self {
            cloud,
            service,
            timeout,
        }
    }

    /// The same process, whose calls have this `grpc-timeout`.
    pub(crate) fn within(&self, timeout: Duration) -> Self {
        let timeout = Some(timeout);
        Self {
            timeout,
            ..self.clone()
        }
    }

    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Some(timeout) = self.timeout {
            let value = format!("{}m", timeout.as_millis());
            request.metadata_mut().insert("grpc-timeout", value.parse().unwrap());
        }
        request
    }

    /// A new controller process on the same cloud, as after a restart.
    pub(crate) fn restarted(&self) -> Self {
        let cloud = self.cloud.clone();
        let service = process_over(Arc::new(client(&cloud)), Instant::now());
        Self::over(cloud, service)
    }

    pub(crate) fn configure(&self, patch: &Value) {
        self.cloud.configure(patch).unwrap();
    }

    /// Injects a fault into the next call of the action.
    pub(crate) fn fault(&self, action: &str, kind: &Value) {
        self.configure(&json!({"faults": []}));
        self.configure(&json!({"faults": [{"action": action, "kind": kind}]}));
    }

    pub(crate) fn calls(&self, action: &str) -> u64 {
        self.cloud.counts().get(action).map_or(0, |count| count.calls)
    }

    /// The IDs of all disks.
    pub(crate) fn disks(&self) -> Vec<String> {
        let state = self.cloud.state();
        let rows = state["disks"].as_array().unwrap();
        rows.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    }

    /// The last letter of the zone, and the category of the only disk.
    pub(crate) fn zone_and_category(&self) -> (String, String) {
        let state = self.cloud.state();
        let rows = state["disks"].as_array().unwrap();
        assert_eq!(rows.len(), 1, "{rows:#?}");
        let text = |field: &str| rows[0][field].as_str().unwrap().to_owned();
        (text("zone").replace("cn-beijing-", ""), text("category"))
    }

    pub(crate) async fn create(&self, request: CreateVolumeRequest) -> RpcResult<proto::Volume> {
        let created = self.service.create_volume(self.request(request)).await;
        created.map(|response| response.into_inner().volume.unwrap())
    }

    /// Creates a volume and returns its ID.
    pub(crate) async fn volume(&self, name: &str) -> String {
        self.create(new_volume(name)).await.unwrap().volume_id
    }

    /// The volumes `pvc-0`, `pvc-1` and so on.
    pub(crate) async fn volumes(&self, count: usize) -> Vec<String> {
        let mut volumes = Vec::new();
        for n in 0..count {
            volumes.push(self.volume(&format!("pvc-{n}")).await);
        }
        volumes
    }

    pub(crate) async fn delete(&self, volume: &str) -> RpcResult<()> {
        done(self.service.delete_volume(self.request(deletion(volume))).await)
    }

    pub(crate) async fn publish(&self, volume: &str, node: &str) -> RpcResult<HashMap<String, String>> {
        self.publish_as(publication(volume, node)).await
    }

    pub(crate) async fn publish_as(
        &self,
        request: ControllerPublishVolumeRequest,
    ) -> RpcResult<HashMap<String, String>> {
        let published = self.service.controller_publish_volume(self.request(request)).await;
        published.map(|response| response.into_inner().publish_context)
    }

    pub(crate) async fn modify(&self, volume: &str, pairs: &[(&str, &str)]) -> RpcResult<()> {
        let request = ControllerModifyVolumeRequest {
            volume_id: volume.to_owned(),
            mutable_parameters: parameters(pairs),
            ..Default::default()
        };
        done(self.service.controller_modify_volume(self.request(request)).await)
    }

    pub(crate) async fn list_volumes(&self, request: ListVolumesRequest) -> RpcResult<proto::ListVolumesResponse> {
        let listed = self.service.list_volumes(self.request(request)).await;
        listed.map(Response::into_inner)
    }

    pub(crate) async fn list_snapshots(
        &self,
        request: ListSnapshotsRequest,
    ) -> RpcResult<proto::ListSnapshotsResponse> {
        let listed = self.service.list_snapshots(self.request(request)).await;
        listed.map(Response::into_inner)
    }

    pub(crate) async fn validate(
        &self,
        volume: &str,
        volume_capabilities: Vec<VolumeCapability>,
    ) -> RpcResult<proto::ValidateVolumeCapabilitiesResponse> {
        let request = ValidateVolumeCapabilitiesRequest {
            volume_id: volume.to_owned(),
            volume_capabilities,
            ..Default::default()
        };
        let validated = self.service.validate_volume_capabilities(self.request(request)).await;
        validated.map(Response::into_inner)
    }

    pub(crate) async fn unpublish(&self, volume: &str, node: &str) -> RpcResult<()> {
        let request = self.request(unpublication(volume, node));
        done(self.service.controller_unpublish_volume(request).await)
    }

    pub(crate) async fn expand(&self, volume: &str, gib: i64) -> RpcResult<(i64, bool)> {
        self.expand_as(volume, range(gib, 0), mount()).await
    }

    /// The new size in GiB, and whether the node must expand the filesystem.
    pub(crate) async fn expand_as(
        &self,
        volume: &str,
        size: CapacityRange,
        capability: VolumeCapability,
    ) -> RpcResult<(i64, bool)> {
        let request = ControllerExpandVolumeRequest {
            volume_capability: Some(capability),
            ..expansion(volume, size)
        };
        let response = self.service.controller_expand_volume(self.request(request)).await?;
        let response = response.into_inner();
        Ok((response.capacity_bytes >> 30, response.node_expansion_required))
    }

    pub(crate) async fn snapshot(&self, name: &str, volume: &str) -> RpcResult<proto::Snapshot> {
        self.snapshot_as(new_snapshot(name, volume)).await
    }

    pub(crate) async fn snapshot_as(&self, request: CreateSnapshotRequest) -> RpcResult<proto::Snapshot> {
        let response = self.service.create_snapshot(self.request(request)).await;
        response.map(|response| response.into_inner().snapshot.unwrap())
    }

    pub(crate) async fn delete_snapshot(&self, id: &str) -> RpcResult<()> {
        done(self.service.delete_snapshot(self.request(snapshot_deletion(id))).await)
    }
}

pub(crate) fn sized(name: &str, required: i64, limit: i64) -> CreateVolumeRequest {
    CreateVolumeRequest {
        capacity_range: Some(range(required, limit)),
        ..new_volume(name)
    }
}

pub(crate) fn of_class(name: &str, class: &[(&str, &str)]) -> CreateVolumeRequest {
    CreateVolumeRequest {
        parameters: parameters(class),
        ..new_volume(name)
    }
}

pub(crate) fn restored(name: &str, snapshot: &str) -> CreateVolumeRequest {
    CreateVolumeRequest {
        volume_content_source: Some(from_snapshot(snapshot)),
        ..new_volume(name)
    }
}

fn with_nodes<'a>(flags: &[&'a str]) -> Vec<&'a str> {
    let nodes = "--nodes=i-one=cn-beijing-a,i-two=cn-beijing-a,i-far=cn-beijing-b";
    [&[nodes], flags].concat()
}

/// Active for so long that requests of an earlier process have no effect any longer.
fn long_ago() -> Instant {
    Instant::now() - Duration::from_secs(600)
}

fn process_over(ecs: Arc<Client>, since: Instant) -> Service {
    let tasks = Tasks::default();
    let disks = DiskServices::active_since(since, ecs, "test".parse().unwrap(), &tasks);
    let location = DriverLocation {
        region: "cn-beijing".parse().unwrap(),
        zone: Some("cn-beijing-a".parse().unwrap()),
    };
    Service::new(Arc::new(disks), location, tasks)
}

/// The items on all pages, and the number of pages. `page` returns the items after a token, and the next token.
pub(crate) async fn all_pages<T>(mut page: impl AsyncFnMut(String) -> (Vec<T>, String)) -> (Vec<T>, usize) {
    let (mut all, mut token) = (Vec::new(), String::new());
    for pages in 1.. {
        let (items, next) = page(token).await;
        all.extend(items);
        if next.is_empty() {
            return (all, pages);
        }
        token = next;
    }
    unreachable!("the number of pages is finite")
}

/// Repeats a call while it is `UNAVAILABLE`, as a sidecar does: the absence of a resource is proven after a minute.
pub(crate) async fn proven<T>(mut call: impl AsyncFnMut() -> RpcResult<T>) -> RpcResult<T> {
    for _ in 0..20 {
        match call().await {
            Err(status) if status.code() == Code::Unavailable => {
                sleep(5).await;
            }
            response => return response,
        }
    }
    call().await
}

fn done<T>(response: Result<Response<T>, Status>) -> RpcResult<()> {
    response.map(|_| ())
}

/// Asserts the code and the message: it contains all parts, and starts with the first one if that is the name of a
/// failure (`NAME: `).
#[track_caller]
pub(crate) fn assert_error<T: std::fmt::Debug>(response: RpcResult<T>, code: Code, parts: &[&str]) {
    let status = response.unwrap_err();
    assert_eq!(status.code(), code, "{status}");
    let is_name = |part: &&&str| part.ends_with(": ") && !part.contains(char::is_lowercase);
    if let Some(name) = parts.first().filter(is_name) {
        assert!(status.message().starts_with(name), "{name}: {}", status.message());
    }
    for part in parts {
        assert!(status.message().contains(part), "{part}: {}", status.message());
    }
}

pub(crate) async fn sleep(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

/// The kind of a fault: calls are rejected with this status and code.
pub(crate) fn error_code(status: u16, code: &str) -> Value {
    json!({"code": {"status": status, "code": code}})
}

pub(crate) fn code<T: std::fmt::Debug>(response: RpcResult<T>) -> Code {
    response.unwrap_err().code()
}

pub(crate) fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// The nodes to which the volume is attached in the cloud.
pub(crate) fn holders(stage: &Stage, volume: &str) -> Vec<String> {
    let state = stage.cloud.state();
    let rows = state["disks"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == volume).unwrap();
    let held = row["attachments"].as_array().unwrap().iter();
    held.map(|held| held["instance"].as_str().unwrap().to_owned()).collect()
}
