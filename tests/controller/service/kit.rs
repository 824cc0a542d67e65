//! A fake cloud with a Controller service, and valid requests for tests to modify.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;
use tonic::{Code, Request, Response, Status};
use wiremock::MockServer;

use diskplugin::base::{Deadline, SystemClock, Tasks};
use diskplugin::csi::controller::{DriverLocation, Service};
use diskplugin::csi::proto::controller_server::Controller;
use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use diskplugin::csi::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use diskplugin::csi::proto::{self, Topology, TopologyRequirement, VolumeCapability};
use diskplugin::disk::DiskServices;
use ecs::credential::Credentials;
use ecs::sign::Scheme;
use ecs::{Client, ServerClock};
use fake_ecs::{Cloud, Options, TokioClock};

use crate::common::memory_cloud::client;

/// The default node of publish requests.
pub(crate) const NODE: &str = "i-one";
/// Another node in the same zone.
pub(crate) const OTHER: &str = "i-two";

/// The outcome of an RPC.
pub(crate) type Answer<T> = Result<T, Status>;

/// A fake cloud and the service of one controller process.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) cloud: Cloud,
    pub(crate) service: Service,
}

impl Stage {
    pub(crate) fn new(flags: &[&str]) -> Self {
        let nodes = "--nodes=i-one=cn-beijing-a,i-two=cn-beijing-a,i-far=cn-beijing-b";
        let options = Options::from_flags([nodes].into_iter().chain(flags.iter().copied()));
        let clock = TokioClock::starting_at(Timestamp::from_second(1_800_000_000).unwrap());
        let cloud = Cloud::in_memory(&options.unwrap(), Arc::new(clock));
        // Active for so long that requests of an earlier process have no effect any longer.
        let since = Instant::now() - Duration::from_secs(600);
        let service = process_over(Arc::new(client(&cloud)), since);
        Self { cloud, service }
    }

    /// The same with the real HTTP client, on a server to which a test adds mocks that precede the fake cloud. Requires
    /// real time.
    pub(crate) async fn over_http(flags: &[&str]) -> (Self, MockServer) {
        let nodes = "--nodes=i-one=cn-beijing-a,i-two=cn-beijing-a,i-far=cn-beijing-b";
        let options = Options::from_flags([nodes].into_iter().chain(flags.iter().copied()));
        let options = options.unwrap();
        let cloud = Cloud::in_memory(&options, Arc::new(fake_ecs::SystemClock));
        let server = MockServer::start().await;
        cloud.mount(&server).await;
        let key = Credentials::new(options.access_key_id.expose(), options.access_key_secret.expose());
        let client = Client::new(ecs::Settings {
            server: server.uri().parse().unwrap(),
            region: options.region.parse().unwrap(),
            scheme: Scheme::V1,
            credentials: Arc::new(key),
            clock: ServerClock::new(Arc::new(SystemClock)),
        });
        let since = Instant::now() - Duration::from_secs(600);
        let service = process_over(Arc::new(client.unwrap()), since);
        (Self { cloud, service }, server)
    }

    /// A new controller process on the same cloud, as after a restart.
    pub(crate) fn restarted(&self) -> Service {
        process(&self.cloud)
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

    /// The zone and category of the only disk.
    pub(crate) fn zone_and_category(&self) -> (String, String) {
        let state = self.cloud.state();
        let rows = state["disks"].as_array().unwrap();
        assert_eq!(rows.len(), 1, "{rows:#?}");
        let text = |field: &str| rows[0][field].as_str().unwrap().to_owned();
        (text("zone"), text("category"))
    }

    pub(crate) async fn create(&self, request: proto::CreateVolumeRequest) -> Answer<proto::Volume> {
        create(&self.service, request).await
    }

    /// Creates a volume and returns its ID.
    pub(crate) async fn volume(&self, name: &str) -> String {
        self.create(new_volume(name)).await.unwrap().volume_id
    }

    pub(crate) async fn delete(&self, volume: &str) -> Answer<()> {
        let request = proto::DeleteVolumeRequest {
            volume_id: volume.to_owned(),
            ..Default::default()
        };
        done(self.service.delete_volume(Request::new(request)).await)
    }

    pub(crate) async fn publish(&self, volume: &str, node: &str) -> Answer<HashMap<String, String>> {
        let request = Request::new(publication(volume, node));
        let answer = self.service.controller_publish_volume(request).await;
        answer.map(|answer| answer.into_inner().publish_context)
    }

    pub(crate) async fn unpublish(&self, volume: &str, node: &str) -> Answer<()> {
        let request = proto::ControllerUnpublishVolumeRequest {
            volume_id: volume.to_owned(),
            node_id: node.to_owned(),
            ..Default::default()
        };
        done(self.service.controller_unpublish_volume(Request::new(request)).await)
    }

    pub(crate) async fn expand(&self, volume: &str, gib: i64) -> Answer<(i64, bool)> {
        let request = proto::ControllerExpandVolumeRequest {
            volume_id: volume.to_owned(),
            capacity_range: Some(range(gib, 0)),
            volume_capability: Some(mount()),
            ..Default::default()
        };
        let answer = self.service.controller_expand_volume(Request::new(request)).await?;
        let answer = answer.into_inner();
        Ok((answer.capacity_bytes >> 30, answer.node_expansion_required))
    }

    pub(crate) async fn snapshot(&self, name: &str, volume: &str) -> Answer<proto::Snapshot> {
        let request = proto::CreateSnapshotRequest {
            name: name.to_owned(),
            source_volume_id: volume.to_owned(),
            ..Default::default()
        };
        let answer = self.service.create_snapshot(Request::new(request)).await;
        answer.map(|answer| answer.into_inner().snapshot.unwrap())
    }

    pub(crate) async fn delete_snapshot(&self, id: &str) -> Answer<()> {
        let request = proto::DeleteSnapshotRequest {
            snapshot_id: id.to_owned(),
            ..Default::default()
        };
        done(self.service.delete_snapshot(Request::new(request)).await)
    }
}

fn process(cloud: &Cloud) -> Service {
    process_over(Arc::new(client(cloud)), Instant::now())
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

/// Repeats a call while it is `UNAVAILABLE`, as a sidecar does: the absence of a resource is proven after a minute.
pub(crate) async fn proven<T>(mut call: impl AsyncFnMut() -> Answer<T>) -> Answer<T> {
    for _ in 0..20 {
        match call().await {
            Err(status) if status.code() == Code::Unavailable => {
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
            answer => return answer,
        }
    }
    call().await
}

pub(crate) async fn create(service: &Service, request: proto::CreateVolumeRequest) -> Answer<proto::Volume> {
    let answer = service.create_volume(Request::new(request)).await;
    answer.map(|answer| answer.into_inner().volume.unwrap())
}

fn done<T>(answer: Result<Response<T>, Status>) -> Answer<()> {
    answer.map(|_| ())
}

/// A request with this `grpc-timeout`.
pub(crate) fn within<T>(time: Duration, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let value = format!("{}m", time.as_millis());
    request.metadata_mut().insert("grpc-timeout", value.parse().unwrap());
    request
}

pub(crate) fn code<T: std::fmt::Debug>(answer: Answer<T>) -> Code {
    answer.unwrap_err().code()
}

pub(crate) fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// A range in bytes from GiB; 0 is unset.
pub(crate) fn range(required: i64, limit: i64) -> proto::CapacityRange {
    proto::CapacityRange {
        required_bytes: required << 30,
        limit_bytes: limit << 30,
    }
}

pub(crate) fn capability(mode: Mode, access: Option<AccessType>) -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode { mode: mode.into() }),
        access_type: access,
    }
}

pub(crate) fn mount() -> VolumeCapability {
    let access = AccessType::Mount(MountVolume::default());
    capability(Mode::SingleNodeWriter, Some(access))
}

pub(crate) fn block() -> VolumeCapability {
    let access = AccessType::Block(BlockVolume::default());
    capability(Mode::SingleNodeWriter, Some(access))
}

/// 20 GiB of any category in stock, in the driver's zone.
pub(crate) fn new_volume(name: &str) -> proto::CreateVolumeRequest {
    proto::CreateVolumeRequest {
        name: name.to_owned(),
        capacity_range: Some(range(20, 0)),
        volume_capabilities: vec![mount()],
        parameters: parameters(&[("type", "cloud_essd")]),
        ..Default::default()
    }
}

pub(crate) fn publication(volume: &str, node: &str) -> proto::ControllerPublishVolumeRequest {
    proto::ControllerPublishVolumeRequest {
        volume_id: volume.to_owned(),
        node_id: node.to_owned(),
        volume_capability: Some(mount()),
        ..Default::default()
    }
}

pub(crate) fn from_snapshot(snapshot: &str) -> proto::VolumeContentSource {
    use proto::volume_content_source::{SnapshotSource, Type};
    let snapshot_id = snapshot.to_owned();
    proto::VolumeContentSource {
        r#type: Some(Type::Snapshot(SnapshotSource { snapshot_id })),
    }
}

pub(crate) fn parameters(pairs: &[(&str, &str)]) -> HashMap<String, String> {
    let own = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(own).collect()
}

/// A topology of zones by the last letter of their names.
pub(crate) fn topology(requisite: &str, preferred: &str) -> TopologyRequirement {
    let zones = |letters: &str| -> Vec<Topology> {
        let zone = |letter: char| {
            let zone = format!("cn-beijing-{letter}");
            Topology {
                segments: parameters(&[("topology.kubernetes.io/zone", &zone)]),
            }
        };
        letters.chars().map(zone).collect()
    };
    TopologyRequirement {
        requisite: zones(requisite),
        preferred: zones(preferred),
    }
}

/// The nodes to which the volume is attached in the cloud.
pub(crate) fn holders(stage: &Stage, volume: &str) -> Vec<String> {
    let state = stage.cloud.state();
    let rows = state["disks"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == volume).unwrap();
    let held = row["attachments"].as_array().unwrap().iter();
    held.map(|held| held["instance"].as_str().unwrap().to_owned()).collect()
}
