//! Publishing: what is staged is shown at a pod's path.

use std::sync::Arc;

use super::observe::{Quick, mounts_of, nodes_of};
use super::plan::{self, PublishSeen, Wanted};
use super::request::{Access, Publish};
use super::run::Subject;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::{Device, Mount};

const VERB: &str = "publishing";

impl Node {
    /// Publishes a staged volume. Repeatable.
    ///
    /// # Errors
    /// When it is not staged, the target is taken, access does not fit, or a step fails.
    pub async fn publish(self: &Arc<Self>, request: Publish, deadline: Deadline) -> Result<()> {
        let guard = self.lock(&request.volume.id)?;
        let node = Arc::clone(self);
        self.tasks
            .run(async move {
                let _guard = guard;
                node.publish_locked(&request, deadline).await
            })
            .await
    }

    async fn publish_locked(&self, request: &Publish, deadline: Deadline) -> Result<()> {
        let volume = &request.volume;
        // What is refused whatever comes is not waited for.
        for path in [&request.staging, &request.target] {
            self.place(path, Quick::new(volume, VERB)).await?;
        }
        let device = self.find(volume, deadline).await?;
        let seen = self.look_to_publish(request, device).await?;
        let wanted = Wanted {
            access: &request.access,
            read_only: request.read_only,
            locked: false,
        };
        let steps = plan::publish(wanted, request.single_target, &seen).map_err(|refusal| {
            Error::Refused {
                volume: volume.id.clone(),
                verb: VERB,
                refusal,
            }
        })?;
        let subject = Subject {
            volume,
            device: Some(&seen.device),
            proof: None,
            verb: VERB,
            deadline,
        };
        self.run(subject, &steps).await
    }

    async fn look_to_publish(&self, request: &Publish, device: Device) -> Result<PublishSeen> {
        let at = Quick::new(&request.volume, VERB);
        let mounts = self.mounts(at).await?;
        let staging = self.spot(&request.staging, &mounts, at).await?;
        let target = self.spot(&request.target, &mounts, at).await?;
        let others = match request.access {
            Access::Block => nodes_of(&device, &mounts, &target.path),
            // A directory of the volume that is mounted somewhere is not a target of ours.
            Access::Mount { .. } => mounts_of(&device, &mounts, &[&staging.path, &target.path])
                .into_iter()
                .filter(Mount::is_whole)
                .collect(),
        };
        let staged = match request.access {
            Access::Block => mounts_of(&device, &mounts, &[]),
            Access::Mount { .. } => Vec::new(),
        };
        Ok(PublishSeen {
            staged,
            device,
            staging,
            target,
            others,
        })
    }
}
