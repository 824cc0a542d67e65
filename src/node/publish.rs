//! Publish: bind-mounts a staged volume at a pod's target path.

use std::sync::Arc;

use super::observe::{CallContext, mounts_of, nodes_of};
use super::plan::{self, PublishSeen, Wanted};
use super::request::{Access, PublishRequest};
use super::run::StepContext;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::{Device, Mount};

const VERB: &str = "publishing";

impl Node {
    /// Publishes a staged volume. Idempotent.
    ///
    /// # Errors
    /// The volume is not staged, the target is in use, the access conflicts, or a step fails.
    pub async fn publish(
        self: &Arc<Self>,
        request: PublishRequest,
        deadline: Deadline,
    ) -> Result<()> {
        let guard = self.lock(&request.volume.id)?;
        let node = Arc::clone(self);
        self.tasks
            .run(async move {
                let _guard = guard;
                node.publish_locked(&request, deadline).await
            })
            .await
    }

    async fn publish_locked(&self, request: &PublishRequest, deadline: Deadline) -> Result<()> {
        let volume = &request.volume;
        // Invalid paths are rejected before the wait for the device.
        for path in [&request.staging, &request.target] {
            self.place(path, CallContext::new(volume, VERB)).await?;
        }
        let device = self.find(volume, deadline).await?;
        let seen = self.observe_publish(request, device).await?;
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
        let context = StepContext {
            volume,
            device: Some(&seen.device),
            proof: None,
            verb: VERB,
            deadline,
        };
        self.run_steps(context, &steps).await
    }

    async fn observe_publish(
        &self,
        request: &PublishRequest,
        device: Device,
    ) -> Result<PublishSeen> {
        let call = CallContext::new(&request.volume, VERB);
        let mounts = self.mounts(call).await?;
        let staging = self.path_state(&request.staging, &mounts, call).await?;
        let target = self.path_state(&request.target, &mounts, call).await?;
        let others = match request.access {
            Access::Block => nodes_of(&device, &mounts, &target.path),
            // A mounted subdirectory of the volume is not a target of this driver.
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
