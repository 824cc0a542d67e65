//! Publish: bind-mounts a staged volume at a pod's target path.

use std::sync::Arc;

use super::observe::{CallContext, device_node_mounts, mounts_of};
use super::plan::{self, PublishObservation, RequestedAccess};
use super::request::{Access, PublishRequest};
use super::run::StepContext;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::{Device, Mount};

const OPERATION: &str = "publishing";

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
            self.resolve_path(path, CallContext::new(volume, OPERATION))
                .await?;
        }
        let device = self.wait_for_device(volume, deadline).await?;
        let seen = self.observe_publish(request, device).await?;
        let requested = RequestedAccess {
            access: &request.access,
            read_only: request.read_only,
            device_read_only: false,
        };
        let steps = plan::publish(requested, request.single_target, &seen).map_err(|source| {
            Error::Plan {
                volume: volume.id.clone(),
                operation: OPERATION,
                source,
            }
        })?;
        let context = StepContext {
            volume,
            device: Some(&seen.device),
            proof: None,
            operation: OPERATION,
            deadline,
        };
        self.run_steps(context, &steps).await
    }

    async fn observe_publish(
        &self,
        request: &PublishRequest,
        device: Device,
    ) -> Result<PublishObservation> {
        let call = CallContext::new(&request.volume, OPERATION);
        let mounts = self.mounts(call).await?;
        let staging = self.path_state(&request.staging, &mounts, call).await?;
        let target = self.path_state(&request.target, &mounts, call).await?;
        let other_targets = match request.access {
            Access::Block => device_node_mounts(&device, &mounts, &target.path),
            // A mounted subdirectory of the volume is not a target of this driver.
            Access::Mount { .. } => mounts_of(&device, &mounts, &[&staging.path, &target.path])
                .into_iter()
                .filter(Mount::is_whole)
                .collect(),
        };
        let filesystem_mounts = match request.access {
            Access::Block => mounts_of(&device, &mounts, &[]),
            Access::Mount { .. } => Vec::new(),
        };
        Ok(PublishObservation {
            filesystem_mounts,
            device,
            staging,
            target,
            other_targets,
        })
    }
}
