//! Publish: bind-mounts a staged volume at a pod's target path.

use super::Result;
use super::format::Formatter;
use super::observe::{CallContext, Observer, device_node_mounts, mounts_of};
use super::plan::{self, PublishObservation};
use super::request::{Access, PublishRequest};
use super::run::run_steps;
use crate::base::Deadline;
use crate::linux::{Device, Mount};

const OPERATION: &str = "publishing";

#[derive(Debug, Clone)]
pub struct Publisher {
    pub(super) observer: Observer,
    pub(super) formatter: Formatter,
}

impl Publisher {
    /// Publishes a staged volume. Idempotent.
    pub async fn publish(&self, request: PublishRequest, deadline: Deadline) -> Result<()> {
        let volume = request.volume.id.clone();
        let published = Box::pin(self.clone().publish_locked(request, deadline));
        let operations = &self.formatter.tools.operations;
        operations.run(&volume, OPERATION, deadline, published).await
    }

    async fn publish_locked(self, request: PublishRequest, deadline: Deadline) -> Result<()> {
        let call = CallContext::new(&*self.observer.host, &request.volume, OPERATION, deadline);
        // Invalid paths are rejected before the wait for the device.
        for path in [&request.staging, &request.target] {
            self.observer.resolve_path(path, call).await?;
        }
        let device = self.observer.wait_for_device(call);
        let observed = self.observe(&request, device.await?, call).await?;
        let steps = plan::publish(&request, &observed).map_err(call.refused())?;
        run_steps(&self.formatter, call, &observed.device, &steps, None).await
    }

    async fn observe(
        &self,
        request: &PublishRequest,
        device: Device,
        call: CallContext<'_>,
    ) -> Result<PublishObservation> {
        let (mounts, staging) = self.observer.observe(&request.staging, call).await?;
        let target = self.observer.path_state(&request.target, &mounts, call).await?;
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
            rejects_writes: call.rejects_writes(&device, &staging).await,
            filesystem_mounts,
            device,
            staging,
            target,
            other_targets,
        })
    }
}
