//! The lives of volumes as an orchestrator leads them: create, publish, snapshot, restore, expand,
//! unpublish, delete, in this order, each step insisted on until it succeeds. After each success the
//! cloud itself is looked at: it must be so.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use diskplugin::csi::proto;
use diskplugin::csi::proto::controller_service_capability::rpc::Type as Rpc;
use diskplugin::csi::proto::volume_capability::access_mode::Mode;
use diskplugin::csi::proto::volume_capability::{AccessMode, AccessType, MountVolume};
use diskplugin::csi::proto::volume_content_source::{SnapshotSource, Type, VolumeSource};
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tonic::Status;

use crate::facts::{Ledger, Volume};
use crate::plan::{End, Plan};
use crate::sidecar::{Call, Sidecar, is_passing};
use crate::state::{disk, disks_named, links, named, row};

/// Looks at the cloud as it is, past the API: `GET /_control/state`.
pub(crate) type Truth = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = Value> + Send>> + Send + Sync>;

/// A snapshot that is not ready is asked for again after this.
const NOT_READY: Duration = Duration::from_secs(1);

/// One controller's callers, and what they know.
#[derive(Clone)]
pub(crate) struct Callers {
    pub(crate) sidecar: Sidecar,
    pub(crate) ledger: Ledger,
    pub(crate) truth: Truth,
}

/// Where a volume starts from.
#[derive(Debug, Clone)]
enum Source {
    Blank,
    Snapshot(String),
    Volume(String),
}

impl Callers {
    /// Leads so many lives, so many at a time.
    pub(crate) async fn lives(&self, plans: Vec<Plan>, at_a_time: usize) {
        let places = Arc::new(Semaphore::new(at_a_time));
        let mut lives = JoinSet::new();
        for plan in plans {
            let (callers, places) = (self.clone(), Arc::clone(&places));
            lives.spawn(async move {
                let _place = places.acquire().await.unwrap();
                callers.live(&plan).await;
            });
        }
        while let Some(outcome) = lives.join_next().await {
            outcome.unwrap();
        }
    }

    /// One life to its end.
    pub(crate) async fn live(&self, plan: &Plan) {
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

    /// Whether the controller says that it clones volumes.
    async fn can_clone(&self) -> bool {
        let request = proto::ControllerGetCapabilitiesRequest {};
        let answer = self.insist("the driver", &request).await;
        let clones =
            |rpc: &proto::controller_service_capability::Rpc| rpc.r#type() == Rpc::CloneVolume;
        let mut told = answer.capabilities.into_iter().filter_map(|one| one.r#type);
        told.any(|proto::controller_service_capability::Type::Rpc(rpc)| clones(&rpc))
    }

    /// The call, insisted on. Every code that is not about to pass is a false answer: nothing that
    /// is asked for here can fail for good.
    async fn insist<C: Call>(&self, about: &str, message: &C) -> C::Answer {
        let told = |status: &Status| {
            if !is_passing(status) {
                self.ledger.wrong(&format!(
                    "{} of {about} was refused: {:?}: {}",
                    C::NAME,
                    status.code(),
                    status.message()
                ));
            }
        };
        self.sidecar.insist(message, told).await
    }

    fn hold(&self, so: bool, otherwise: impl FnOnce() -> String) {
        if !so {
            self.ledger.wrong(&otherwise());
        }
    }

    async fn create(&self, name: &str, plan: &Plan, gib: u32, source: Source) -> String {
        self.ledger.volume(name, |volume, now| {
            volume.size = gib;
            volume.created.asked = Some(now);
            if let Source::Snapshot(snapshot) = &source {
                volume.from = Some(snapshot.clone());
            }
        });
        let kind = if plan.any_category {
            "available"
        } else {
            "cloud_essd"
        };
        let content = match &source {
            Source::Blank => None,
            Source::Snapshot(id) => Some(Type::Snapshot(SnapshotSource {
                snapshot_id: id.clone(),
            })),
            Source::Volume(id) => Some(Type::Volume(VolumeSource {
                volume_id: id.clone(),
            })),
        };
        let content = content.map(|content| proto::VolumeContentSource {
            r#type: Some(content),
        });
        let request = proto::CreateVolumeRequest {
            name: name.to_owned(),
            capacity_range: Some(gibibytes(gib)),
            volume_capabilities: vec![capability()],
            parameters: HashMap::from([("type".to_owned(), kind.to_owned())]),
            volume_content_source: content.clone(),
            ..proto::CreateVolumeRequest::default()
        };
        let answer = self.insist(name, &request).await;
        let volume = answer.volume.expect("a success has a volume");
        let id = volume.volume_id.clone();
        self.ledger.volume(name, |fact, now| {
            fact.created.told = Some(now);
            fact.id = Some(id.clone());
        });
        let state = (self.truth)().await;
        let named = disks_named(&state, name);
        self.hold(named.len() == 1 && named[0]["id"] == *id, || {
            format!("{name} was told to be {id}, and the cloud has {named:?}")
        });
        let row = disk(&state, &id);
        self.hold(row["phase"] == "Ready", || {
            format!("{name} was told to be there, and is {}", row["phase"])
        });
        let bytes = row["size"].as_i64().map(|gib| gib << 30);
        self.hold(bytes == Some(volume.capacity_bytes), || {
            let told = volume.capacity_bytes;
            format!(
                "{name} was told to have {told} bytes, and has {}",
                row["size"]
            )
        });
        let zone = volume.accessible_topology.first();
        let zone = zone.and_then(|zone| zone.segments.get("topology.kubernetes.io/zone"));
        self.hold(zone.map(String::as_str) == row["zone"].as_str(), || {
            format!(
                "{name} was told to be in {zone:?}, and is in {}",
                row["zone"]
            )
        });
        self.hold(volume.content_source == content, || {
            format!(
                "{name} was told to be made from {:?}",
                volume.content_source
            )
        });
        if let Source::Snapshot(snapshot) = &source {
            self.hold(row["snapshot"] == **snapshot, || {
                format!("{name} is of {} instead of {snapshot}", row["snapshot"])
            });
        }
        id
    }

    async fn publish(&self, name: &str, id: &str, node: &str) {
        self.ledger.volume(name, |volume, now| {
            volume.node = Some(node.to_owned());
            volume.published.asked = Some(now);
        });
        let request = proto::ControllerPublishVolumeRequest {
            volume_id: id.to_owned(),
            node_id: node.to_owned(),
            volume_capability: Some(capability()),
            ..proto::ControllerPublishVolumeRequest::default()
        };
        let answer = self.insist(name, &request).await;
        self.ledger
            .volume(name, |volume, now| volume.published.told = Some(now));
        let state = (self.truth)().await;
        let row = disk(&state, id);
        let links = links(row);
        self.hold(links == [(node.to_owned(), "Attached".to_owned())], || {
            format!("{name} ({id}) was told to be on {node}, and is on {links:?}")
        });
        let serial = answer.publish_context.get("diskplugin.csi.example/serial");
        self.hold(serial.map(String::as_str) == row["serial"].as_str(), || {
            format!("{name} was told to have serial {serial:?}")
        });
    }

    async fn unpublish(&self, name: &str, id: &str, node: &str) {
        self.ledger
            .volume(name, |volume, now| volume.unpublished.asked = Some(now));
        let request = proto::ControllerUnpublishVolumeRequest {
            volume_id: id.to_owned(),
            node_id: node.to_owned(),
            ..proto::ControllerUnpublishVolumeRequest::default()
        };
        self.insist(name, &request).await;
        self.ledger
            .volume(name, |volume, now| volume.unpublished.told = Some(now));
        let state = (self.truth)().await;
        let links = links(disk(&state, id));
        self.hold(links.is_empty(), || {
            format!("{name} ({id}) was told to be on no node, and is on {links:?}")
        });
    }

    async fn expand(&self, name: &str, id: &str, gib: u32) {
        self.ledger.volume(name, |volume, now| {
            volume.larger = Some(gib);
            volume.expanded.asked = Some(now);
        });
        let request = proto::ControllerExpandVolumeRequest {
            volume_id: id.to_owned(),
            capacity_range: Some(gibibytes(gib)),
            volume_capability: Some(capability()),
            ..proto::ControllerExpandVolumeRequest::default()
        };
        let answer = self.insist(name, &request).await;
        self.ledger
            .volume(name, |volume, now| volume.expanded.told = Some(now));
        let state = (self.truth)().await;
        let size = &disk(&state, id)["size"];
        let told = answer.capacity_bytes >> 30;
        self.hold(*size == told && *size == gib, || {
            format!("{name} ({id}) was told to have {told} GiB of {gib}, and has {size}")
        });
    }

    /// A snapshot that is ready.
    async fn snapshot(&self, name: &str, volume: &str) -> String {
        self.ledger.snapshot(name, |snapshot, now| {
            volume.clone_into(&mut snapshot.volume);
            snapshot.created.asked = Some(now);
        });
        let request = proto::CreateSnapshotRequest {
            name: name.to_owned(),
            source_volume_id: volume.to_owned(),
            ..proto::CreateSnapshotRequest::default()
        };
        loop {
            let answer = self.insist(name, &request).await;
            let made = answer.snapshot.expect("a success has a snapshot");
            let id = made.snapshot_id.clone();
            self.ledger.snapshot(name, |snapshot, now| {
                snapshot.created.told = Some(now);
                snapshot.id = Some(id.clone());
            });
            let state = (self.truth)().await;
            let named = named(&state["snapshots"], name);
            self.hold(named.len() == 1 && named[0]["id"] == *id, || {
                format!("{name} was told to be {id}, and the cloud has {named:?}")
            });
            let row = row(&state["snapshots"], &id);
            self.hold(row["disk"] == *volume && !row["cut"].is_null(), || {
                format!("{name} was told to be cut from {volume}, and is {row}")
            });
            self.hold(made.source_volume_id == volume, || {
                format!("{name} was told to be of {}", made.source_volume_id)
            });
            if made.ready_to_use {
                return id;
            }
            tokio::time::sleep(NOT_READY).await;
        }
    }

    async fn delete(&self, name: &str, id: &str) {
        self.ledger
            .volume(name, |volume, now| volume.deleted.asked = Some(now));
        let request = proto::DeleteVolumeRequest {
            volume_id: id.to_owned(),
            ..proto::DeleteVolumeRequest::default()
        };
        self.insist(name, &request).await;
        self.ledger
            .volume(name, |volume, now| volume.deleted.told = Some(now));
        let state = (self.truth)().await;
        let left = disks_named(&state, name);
        self.hold(left.is_empty(), || {
            format!("{name} ({id}) was told to be gone, and the cloud has {left:?}")
        });
    }

    async fn delete_snapshot(&self, name: &str, id: &str) {
        self.ledger
            .snapshot(name, |snapshot, now| snapshot.deleted.asked = Some(now));
        let request = proto::DeleteSnapshotRequest {
            snapshot_id: id.to_owned(),
            ..proto::DeleteSnapshotRequest::default()
        };
        self.insist(name, &request).await;
        self.ledger
            .snapshot(name, |snapshot, now| snapshot.deleted.told = Some(now));
        let state = (self.truth)().await;
        let left = named(&state["snapshots"], name);
        self.hold(left.is_empty(), || {
            format!("{name} ({id}) was told to be gone, and the cloud has {left:?}")
        });
    }
}

impl Volume {
    /// What it must be in the end: its size and who holds it; none when it must be gone.
    pub(crate) fn end(&self) -> Option<(u32, Vec<String>)> {
        if self.deleted.told.is_some() {
            return None;
        }
        let held = self.published.told.is_some() && self.unpublished.told.is_none();
        let node = self.node.clone().filter(|_| held);
        let size = self.larger.unwrap_or(self.size);
        Some((size, node.into_iter().collect()))
    }
}

fn gibibytes(gib: u32) -> proto::CapacityRange {
    proto::CapacityRange {
        required_bytes: i64::from(gib) << 30,
        limit_bytes: 0,
    }
}

fn capability() -> proto::VolumeCapability {
    proto::VolumeCapability {
        access_type: Some(AccessType::Mount(MountVolume::default())),
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeWriter.into(),
        }),
    }
}
