//! Lifecycles of volumes: create, publish, snapshot, restore, expand, unpublish, delete, each step repeated until it
//! succeeds. After each success the state of the cloud is compared with the response.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use diskplugin::csi::proto;
use diskplugin::csi::proto::controller_service_capability::rpc::Type as Rpc;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tonic::Status;

use super::expected::{Recorder, Volume};
use super::plan::{End, Plan};
use super::request::{
    deletion, expansion, from_snapshot, from_volume, new_snapshot, new_volume, parameters, publication, range,
    snapshot_deletion, unpublication,
};
use super::sidecar::{Call, Sidecar, is_transient};
use super::state::{attachments, disk, disks_named, named, row};

/// Reads the state of the cloud, `GET /_control/state`.
pub(crate) type StateReader = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Value> + Send>> + Send + Sync>;

/// Interval between requests for a snapshot that is not ready.
const NOT_READY: Duration = Duration::from_secs(1);

/// The callers of a controller.
#[derive(Clone)]
pub(crate) struct Callers {
    pub(crate) sidecar: Sidecar,
    pub(crate) recorder: Recorder,
    pub(crate) state_reader: StateReader,
}

#[derive(Debug, Clone)]
enum Source {
    Blank,
    Snapshot(String),
    Volume(String),
}

impl Callers {
    /// Runs all plans, `at_a_time` in parallel.
    pub(crate) async fn run_all(&self, plans: Vec<Plan>, at_a_time: usize) {
        let permits = Arc::new(Semaphore::new(at_a_time));
        let mut runs = JoinSet::new();
        for plan in plans {
            let (callers, permits) = (self.clone(), Arc::clone(&permits));
            runs.spawn(async move {
                let _permit = permits.acquire().await.unwrap();
                callers.run(&plan).await;
            });
        }
        while let Some(outcome) = runs.join_next().await {
            outcome.unwrap();
        }
    }

    pub(crate) async fn run(&self, plan: &Plan) {
        let volume = self.create(&plan.name, plan, plan.gib, Source::Blank).await;
        self.publish(&plan.name, &volume, &plan.node).await;
        if plan.snapshot {
            let snapshot = self.snapshot(&plan.cut(), &volume).await;
            if plan.restore {
                let name = plan.restored();
                let source = Source::Snapshot(snapshot.clone());
                let restored = self.create(&name, plan, plan.gib + 5, source).await;
                self.publish(&name, &restored, &plan.node).await;
                self.unpublish(&name, &restored, &plan.node).await;
                self.delete(&name, &restored).await;
            }
            if plan.end != End::InUse {
                self.delete_snapshot(&plan.cut(), &snapshot).await;
            }
        }
        if plan.clone && self.can_clone().await {
            let name = plan.cloned();
            let source = Source::Volume(volume.clone());
            let cloned = self.create(&name, plan, plan.gib, source).await;
            self.delete(&name, &cloned).await;
        }
        if plan.expand {
            self.expand(&plan.name, &volume, plan.gib + 10).await;
        }
        if plan.end == End::InUse {
            return;
        }
        self.unpublish(&plan.name, &volume, &plan.node).await;
        if plan.end == End::Gone {
            self.delete(&plan.name, &volume).await;
        }
    }

    /// Whether the controller has the capability `CLONE_VOLUME`.
    async fn can_clone(&self) -> bool {
        let request = proto::ControllerGetCapabilitiesRequest {};
        let response = self.call_until_success("the driver", &request).await;
        let clones = |rpc: &proto::controller_service_capability::Rpc| rpc.r#type() == Rpc::CloneVolume;
        let mut types = response.capabilities.into_iter().filter_map(|one| one.r#type);
        types.any(|proto::controller_service_capability::Type::Rpc(rpc)| clones(&rpc))
    }

    /// Calls until success. Any failure that is not transient is an incorrect response: every request can succeed.
    async fn call_until_success<C: Call>(&self, about: &str, message: &C) -> C::Response {
        let on_failure = |status: &Status| {
            if !is_transient(status) {
                self.recorder.incorrect(&format!(
                    "{} of {about} failed: {:?}: {}",
                    C::NAME,
                    status.code(),
                    status.message()
                ));
            }
        };
        self.sidecar.call_until_success(message, on_failure).await
    }

    fn check(&self, correct: bool, otherwise: impl FnOnce() -> String) {
        if !correct {
            self.recorder.incorrect(&otherwise());
        }
    }

    async fn create(&self, name: &str, plan: &Plan, gib: u32, source: Source) -> String {
        self.recorder.volume(name, |volume, now| {
            volume.size = gib;
            volume.created.started = Some(now);
            if let Source::Snapshot(snapshot) = &source {
                volume.from = Some(snapshot.clone());
            }
        });
        let kind = if plan.any_category { "available" } else { "cloud_essd" };
        let content = match &source {
            Source::Blank => None,
            Source::Snapshot(id) => Some(from_snapshot(id)),
            Source::Volume(id) => Some(from_volume(id)),
        };
        let request = proto::CreateVolumeRequest {
            capacity_range: Some(range(gib.into(), 0)),
            parameters: parameters(&[("type", kind)]),
            volume_content_source: content.clone(),
            ..new_volume(name)
        };
        let response = self.call_until_success(name, &request).await;
        let volume = response.volume.expect("a success has a volume");
        let id = volume.volume_id.clone();
        self.recorder.volume(name, |fact, now| {
            fact.created.completed = Some(now);
            fact.id = Some(id.clone());
        });
        let state = (self.state_reader)().await;
        let named = disks_named(&state, name);
        self.check(named.len() == 1 && named[0]["id"] == *id, || {
            format!("{name} was reported as {id}, but the cloud has {named:?}")
        });
        let row = disk(&state, &id);
        self.check(row["phase"] == "Ready", || {
            format!("{name} was reported as created, but is {}", row["phase"])
        });
        let bytes = row["size"].as_i64().map(|gib| gib << 30);
        self.check(bytes == Some(volume.capacity_bytes), || {
            let reported = volume.capacity_bytes;
            format!("{name} was reported with {reported} bytes, but has {}", row["size"])
        });
        let zone = volume.accessible_topology.first();
        let zone = zone.and_then(|zone| zone.segments.get("topology.kubernetes.io/zone"));
        self.check(zone.map(String::as_str) == row["zone"].as_str(), || {
            format!("{name} was reported in {zone:?}, but is in {}", row["zone"])
        });
        self.check(volume.content_source == content, || {
            format!("{name} was reported as created from {:?}", volume.content_source)
        });
        if let Source::Snapshot(snapshot) = &source {
            self.check(row["snapshot"] == **snapshot, || {
                format!("{name} was created from {} instead of {snapshot}", row["snapshot"])
            });
        }
        id
    }

    async fn publish(&self, name: &str, id: &str, node: &str) {
        self.recorder.volume(name, |volume, now| {
            volume.node = Some(node.to_owned());
            volume.published.started = Some(now);
        });
        let response = self.call_until_success(name, &publication(id, node)).await;
        self.recorder
            .volume(name, |volume, now| volume.published.completed = Some(now));
        let state = (self.state_reader)().await;
        let row = disk(&state, id);
        let attachments = attachments(row);
        self.check(attachments == [(node.to_owned(), "Attached".to_owned())], || {
            format!("{name} ({id}) was reported on {node}, but is on {attachments:?}")
        });
        let serial = response.publish_context.get("diskplugin.csi.example/serial");
        self.check(serial.map(String::as_str) == row["serial"].as_str(), || {
            format!("{name} was reported with serial {serial:?}")
        });
    }

    async fn unpublish(&self, name: &str, id: &str, node: &str) {
        self.recorder
            .volume(name, |volume, now| volume.unpublished.started = Some(now));
        self.call_until_success(name, &unpublication(id, node)).await;
        self.recorder
            .volume(name, |volume, now| volume.unpublished.completed = Some(now));
        let state = (self.state_reader)().await;
        let attachments = attachments(disk(&state, id));
        self.check(attachments.is_empty(), || {
            format!("{name} ({id}) was reported as detached, but is on {attachments:?}")
        });
    }

    async fn expand(&self, name: &str, id: &str, gib: u32) {
        self.recorder.volume(name, |volume, now| {
            volume.larger = Some(gib);
            volume.expanded.started = Some(now);
        });
        let request = expansion(id, range(gib.into(), 0));
        let response = self.call_until_success(name, &request).await;
        self.recorder
            .volume(name, |volume, now| volume.expanded.completed = Some(now));
        let state = (self.state_reader)().await;
        let size = &disk(&state, id)["size"];
        let reported = response.capacity_bytes >> 30;
        self.check(*size == reported && *size == gib, || {
            format!("{name} ({id}) was reported with {reported} GiB of {gib}, but has {size}")
        });
    }

    /// Creates a snapshot and waits until it is ready.
    async fn snapshot(&self, name: &str, volume: &str) -> String {
        self.recorder.snapshot(name, |snapshot, now| {
            volume.clone_into(&mut snapshot.volume);
            snapshot.created.started = Some(now);
        });
        let request = new_snapshot(name, volume);
        loop {
            let response = self.call_until_success(name, &request).await;
            let made = response.snapshot.expect("a success has a snapshot");
            let id = made.snapshot_id.clone();
            self.recorder.snapshot(name, |snapshot, now| {
                snapshot.created.completed = Some(now);
                snapshot.id = Some(id.clone());
            });
            let state = (self.state_reader)().await;
            let named = named(&state["snapshots"], name);
            self.check(named.len() == 1 && named[0]["id"] == *id, || {
                format!("{name} was reported as {id}, but the cloud has {named:?}")
            });
            let row = row(&state["snapshots"], &id);
            self.check(row["disk"] == *volume && !row["cut"].is_null(), || {
                format!("{name} was reported as a snapshot of {volume}, but is {row}")
            });
            self.check(made.source_volume_id == volume, || {
                format!("{name} was reported as a snapshot of {}", made.source_volume_id)
            });
            if made.ready_to_use {
                return id;
            }
            tokio::time::sleep(NOT_READY).await;
        }
    }

    async fn delete(&self, name: &str, id: &str) {
        self.recorder
            .volume(name, |volume, now| volume.deleted.started = Some(now));
        self.call_until_success(name, &deletion(id)).await;
        self.recorder
            .volume(name, |volume, now| volume.deleted.completed = Some(now));
        let state = (self.state_reader)().await;
        let left = disks_named(&state, name);
        self.check(left.is_empty(), || {
            format!("{name} ({id}) was reported as deleted, but the cloud has {left:?}")
        });
    }

    async fn delete_snapshot(&self, name: &str, id: &str) {
        self.recorder
            .snapshot(name, |snapshot, now| snapshot.deleted.started = Some(now));
        self.call_until_success(name, &snapshot_deletion(id)).await;
        self.recorder
            .snapshot(name, |snapshot, now| snapshot.deleted.completed = Some(now));
        let state = (self.state_reader)().await;
        let left = named(&state["snapshots"], name);
        self.check(left.is_empty(), || {
            format!("{name} ({id}) was reported as deleted, but the cloud has {left:?}")
        });
    }
}

impl Volume {
    /// The expected final size and nodes; none if the volume must be deleted.
    pub(crate) fn end(&self) -> Option<(u32, Vec<String>)> {
        if self.deleted.completed.is_some() {
            return None;
        }
        let held = self.published.completed.is_some() && self.unpublished.completed.is_none();
        let node = self.node.clone().filter(|_| held);
        let size = self.larger.unwrap_or(self.size);
        Some((size, node.into_iter().collect()))
    }
}
