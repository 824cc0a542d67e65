//! The life of a volume, as external-provisioner, -attacher, -snapshotter, -resizer and the attach-detach controller
//! lead it: the next step begins when the previous one has succeeded. Each success is compared with the cloud.

use std::sync::Arc;
use std::time::Duration;

use diskplugin::csi::controller::Service;
use diskplugin::csi::proto;
use diskplugin::csi::proto::controller_server::Controller as _;
use tokio::time::Instant;
use tonic::{Code, Status};

use crate::facts::{Facts, Request};
use crate::history::Invariant;
use crate::oracle::{attachments, disks_of, row};
use crate::plant::Plant;
use crate::requests;
use crate::rng::Rng;
use crate::schedule::{CALM, Claim, End, Source};
use crate::sidecar::{Sent, Sidecar, is_final};
use crate::world::World;

/// A clone is given up at a final error so long after the cloud is healthy: its source may not exist any more.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Life {
    sidecar: Sidecar,
    facts: Arc<Facts>,
    claim: Claim,
    /// The name of the claim whose volume is cloned.
    source: Option<String>,
    started: Instant,
}

/// What ends the life of a volume early.
enum Stop {
    /// The volume does not exist, and nobody wants it any more.
    NotCreated,
}

macro_rules! send {
    ($method:ident) => {
        |service: Service, request| -> Sent<_> { Box::pin(async move { service.$method(request).await }) }
    };
}

impl Life {
    pub(crate) fn new(world: &Arc<World>, facts: &Arc<Facts>, claims: &[Claim], number: usize, rng: Rng) -> Self {
        let claim = claims[number].clone();
        let source = match claim.source {
            Source::Blank => None,
            // A part of the claims may be left out.
            Source::Clone(source) => claims.get(source).map(|source| source.name.clone()),
        };
        Self {
            sidecar: Sidecar {
                world: Arc::clone(world),
                rng,
            },
            facts: Arc::clone(facts),
            claim,
            source,
            started: Instant::now(),
        }
    }

    fn world(&self) -> &World {
        &self.sidecar.world
    }

    fn name(&self) -> &str {
        &self.claim.name
    }

    fn check(&self, is_true: bool, invariant: Invariant, text: impl FnOnce() -> String) {
        if !is_true {
            self.world().history.violation(invariant, text());
        }
    }

    fn is_abandoned(&self) -> bool {
        let age = self.started.elapsed().checked_sub(self.claim.start);
        self.claim.abandoned.zip(age).is_some_and(|(at, age)| at <= age)
    }

    pub(crate) async fn run(mut self) {
        tokio::time::sleep(self.claim.start).await;
        let name = self.name().to_owned();
        match self.create().await {
            Err(Stop::NotCreated) => self.facts.volume(&name, |volume| volume.is_gone = true),
            Ok(id) => self.use_volume(&id).await,
        }
        self.facts.volume(&name, |volume| volume.is_done = true);
        self.world().history.record(&format!("{name} is done"));
    }

    async fn use_volume(&mut self, id: &str) {
        for (number, node) in self.claim.nodes.clone().into_iter().enumerate() {
            if self.is_abandoned() {
                break;
            }
            self.publish(id, node).await;
            if let Some(plant) = self.world().plant {
                let client = self
                    .world()
                    .client(Some(Arc::clone(&self.world().history)), &Arc::default());
                plant.send(&client, &self.claim.name, id, node).await;
            }
            tokio::time::sleep(self.sidecar.rng.millis(100, 20_000)).await;
            if number == 0 && self.claim.snapshot {
                self.snapshot(id).await;
            }
            if number == 0 && self.claim.expand {
                self.expand(id).await;
            }
            self.unpublish(id, node).await;
        }
        match self.claim.end {
            End::Deleted => self.delete(id).await,
            _ if self.is_abandoned() => self.delete(id).await,
            End::Detached => {}
            End::Attached => self.publish(id, crate::schedule::NODES[0]).await,
        }
    }

    /// Repeats the call until it succeeds.
    async fn repeat<M, R>(
        &mut self,
        what: &str,
        request: Request,
        message: &M,
        send: fn(Service, tonic::Request<M>) -> Sent<R>,
    ) -> R
    where
        M: Clone + Send + Sync + 'static,
        R: Send + 'static,
    {
        let number = self.facts.begin(request, self.world().history.now());
        for attempt in 0.. {
            let text = format!("{what} of {}", self.name());
            match self.sidecar.once(&text, message, send).await {
                Ok(response) => {
                    self.facts.end(number, self.world().history.now());
                    return response;
                }
                Err(status) => self.note(&text, &status),
            }
            self.sidecar.pause(attempt).await;
        }
        unreachable!("attempts are not limited")
    }

    fn note(&self, what: &str, status: &Status) {
        let doing = format!("{what}: {:?} {}", status.code(), status.message());
        self.facts.volume(self.name(), |volume| volume.doing = doing);
    }

    async fn create(&mut self) -> Result<String, Stop> {
        let name = self.name().to_owned();
        let mut request = requests::volume(&name);
        let mut number = None;
        for attempt in 0.. {
            if let Some(source) = &self.source {
                // Until the source exists, the provisioner does not call.
                let Some(id) = self.facts.volume(source, |volume| volume.id.clone()) else {
                    if self.is_abandoned() || self.is_late() {
                        return Err(Stop::NotCreated);
                    }
                    tokio::time::sleep(Duration::from_secs(5)).await;
                    continue;
                };
                request.volume_content_source = Some(requests::from_volume(&id));
            }
            let now = self.world().history.now();
            let kind = match self.source {
                None => Request::CreateDisk { name: name.clone() },
                Some(_) => Request::Clone { name: name.clone() },
            };
            let number = *number.get_or_insert_with(|| self.facts.begin(kind, now));
            let what = format!("CreateVolume of {name}");
            let mut outcome = self.sidecar.once(&what, &request, send!(create_volume)).await;
            if self.world().plant == Some(Plant::FalseRefusal) && outcome.is_ok() {
                outcome = Err(Status::resource_exhausted("planted"));
            }
            match outcome {
                Ok(response) => {
                    self.facts.end(number, self.world().history.now());
                    let volume = response.volume.unwrap_or_default();
                    self.created(&volume);
                    return Ok(volume.volume_id);
                }
                Err(status) => {
                    self.note(&what, &status);
                    if is_final(&status) {
                        self.refused(&status);
                        // external-provisioner deletes the claim's volume only if it may exist.
                        if self.is_abandoned() || self.source.is_some() && self.is_late() {
                            self.facts.end(number, self.world().history.now());
                            return Err(Stop::NotCreated);
                        }
                    }
                }
            }
            self.sidecar.pause(attempt).await;
        }
        Err(Stop::NotCreated)
    }

    fn is_late(&self) -> bool {
        self.world().history.now() > CALM + PATIENCE
    }

    fn created(&self, volume: &proto::Volume) {
        let (state, name, id) = (self.world().state(), self.name(), &volume.volume_id);
        let found = disks_of(&state, name);
        self.check(
            found.len() == 1 && found[0]["id"] == **id,
            Invariant::TrueSuccess,
            || format!("{name} was created as {id}, and the cloud has {found:?}"),
        );
        let gib = volume.capacity_bytes >> 30;
        let size = row(&state["disks"], id)["size"].as_i64();
        self.check(size == Some(gib) && gib >= 20, Invariant::TrueSuccess, || {
            format!("{name} ({id}) was reported with {gib} GiB, and has {size:?}")
        });
        self.facts.volume(name, |fact| {
            fact.id = Some(id.clone());
            fact.gib = gib;
        });
    }

    /// After a final error nothing may exist under the name. `ALREADY_EXISTS` names what exists.
    fn refused(&self, status: &Status) {
        let (state, name) = (self.world().state(), self.name());
        let found = disks_of(&state, name);
        self.check(
            found.is_empty() || status.code() == Code::AlreadyExists,
            Invariant::TrueFailure,
            || {
                format!(
                    "{name} was refused with {:?}: {}, and the cloud has {found:?}",
                    status.code(),
                    status.message()
                )
            },
        );
    }

    async fn publish(&mut self, id: &str, node: &str) {
        let request = Request::Attach {
            disk: id.to_owned(),
            node: node.to_owned(),
        };
        // An operator may have detached it from the node that it was on before.
        self.facts
            .volume(&self.claim.name, |volume| volume.node = Some(node.to_owned()));
        let message = requests::publication(id, node);
        self.repeat(
            "ControllerPublishVolume",
            request,
            &message,
            send!(controller_publish_volume),
        )
        .await;
        let attached = attachments(row(&self.world().state()["disks"], id));
        let is_touched = self.facts.volume(self.name(), |volume| volume.is_touched);
        self.check(
            is_touched || attached == [(node.to_owned(), "Attached".to_owned())],
            Invariant::TrueSuccess,
            || format!("{} ({id}) was published on {node}, and is on {attached:?}", self.name()),
        );
    }

    async fn unpublish(&mut self, id: &str, node: &str) {
        let request = Request::Detach {
            disk: id.to_owned(),
            node: node.to_owned(),
        };
        if self.world().plant != Some(Plant::UnprovenDetach) {
            let message = requests::unpublication(id, node);
            self.repeat(
                "ControllerUnpublishVolume",
                request,
                &message,
                send!(controller_unpublish_volume),
            )
            .await;
        }
        let attached = attachments(row(&self.world().state()["disks"], id));
        let is_there = attached.iter().any(|(other, _)| other == node);
        self.check(!is_there, Invariant::TrueSuccess, || {
            format!(
                "{} ({id}) was unpublished from {node}, and is on {attached:?}",
                self.name()
            )
        });
        self.facts.volume(self.name(), |volume| volume.node = None);
    }

    async fn expand(&mut self, id: &str) {
        let gib = self.facts.volume(self.name(), |volume| volume.gib) + 10;
        let request = Request::Resize { disk: id.to_owned() };
        let message = requests::expansion(id, gib);
        self.repeat(
            "ControllerExpandVolume",
            request,
            &message,
            send!(controller_expand_volume),
        )
        .await;
        let size = row(&self.world().state()["disks"], id)["size"].as_i64();
        self.check(size == Some(gib), Invariant::TrueSuccess, || {
            format!("{} ({id}) was expanded to {gib} GiB, and has {size:?}", self.name())
        });
        self.facts.volume(self.name(), |volume| volume.gib = gib);
    }

    /// Takes a snapshot, waits until it is ready, and deletes it.
    async fn snapshot(&mut self, id: &str) {
        let name = format!("snap-{}", self.name());
        let message = requests::snapshot(&name, id);
        let snapshot = loop {
            let request = Request::CreateSnapshot { name: name.clone() };
            let response = self
                .repeat("CreateSnapshot", request, &message, send!(create_snapshot))
                .await;
            let snapshot = response.snapshot.unwrap_or_default();
            if snapshot.ready_to_use {
                break snapshot.snapshot_id;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
        };
        let state = self.world().state();
        let found = row(&state["snapshots"], &snapshot);
        let is_ready = !found["cut"].is_null() && found["stage"] != "failed";
        self.check(is_ready, Invariant::TrueSuccess, || {
            format!("{name} ({snapshot}) was reported as ready, and is {found}")
        });
        let request = Request::DeleteSnapshot {
            snapshot: snapshot.clone(),
        };
        let message = requests::snapshot_deletion(&snapshot);
        self.repeat("DeleteSnapshot", request, &message, send!(delete_snapshot))
            .await;
        let state = self.world().state();
        let left = row(&state["snapshots"], &snapshot);
        self.check(left.is_null(), Invariant::TrueSuccess, || {
            format!("{name} was deleted, and is {left}")
        });
    }

    async fn delete(&mut self, id: &str) {
        if self.world().plant == Some(Plant::Stall) {
            std::future::pending::<()>().await;
        }
        let request = Request::DeleteDisk { disk: id.to_owned() };
        let message = requests::deletion(id);
        self.repeat("DeleteVolume", request, &message, send!(delete_volume))
            .await;
        let state = self.world().state();
        let left = disks_of(&state, self.name());
        self.check(left.is_empty(), Invariant::TrueSuccess, || {
            format!("{} ({id}) was deleted, and the cloud has {left:?}", self.name())
        });
        self.facts.volume(self.name(), |volume| volume.is_gone = true);
    }
}
