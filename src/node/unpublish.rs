//! Unpublish: unmounts and removes a target path. The volume stays staged.

use std::sync::Arc;

use super::observe::{CallContext, device_node_mounts};
use super::plan::{self, Step, UnmountObservation};
use super::request::UnpublishRequest;
use super::run::StepContext;
use super::{Error, Node, Result};
use crate::base::Deadline;

const OPERATION: &str = "unpublishing";

impl Node {
    /// Unpublishes a volume. Idempotent: a missing path is not an error.
    ///
    /// # Errors
    /// Another volume is mounted at the path, the path is not empty, or a step fails.
    pub async fn unpublish(
        self: &Arc<Self>,
        request: UnpublishRequest,
        deadline: Deadline,
    ) -> Result<()> {
        let guard = self.lock(&request.volume.id)?;
        let node = Arc::clone(self);
        self.tasks
            .run(async move {
                let _guard = guard;
                // Mounts may be stacked. Each iteration removes one.
                while node.unpublish_once(&request, deadline).await? {}
                Ok(())
            })
            .await
    }

    /// Removes one mount. Returns whether more mounts are stacked at the path.
    async fn unpublish_once(&self, request: &UnpublishRequest, deadline: Deadline) -> Result<bool> {
        let volume = &request.volume;
        let call = CallContext::new(volume, OPERATION);
        let device = self.lookup_device(volume, OPERATION).await?;
        let mounts = self.mounts(call).await?;
        let path_state = self.path_state(&request.target, &mounts, call).await?;
        let others = match &device {
            Some(device) => device_node_mounts(device, &mounts, &path_state.path),
            None => Vec::new(),
        };
        let stacked = mounts.iter().filter(|m| m.point == path_state.path).count() > 1;
        let (devices, backing_device_in_use) = self
            .other_devices(device.as_ref(), &path_state, call)
            .await?;
        let seen = UnmountObservation {
            devices,
            backing_device_in_use,
            serial: volume.serial.clone(),
            device,
            path_state,
            other_mounts: others,
        };
        let mut steps = plan::unpublish(&seen).map_err(|source| Error::Plan {
            volume: volume.id.clone(),
            operation: OPERATION,
            source,
        })?;
        if stacked {
            steps.retain(|step| !matches!(step, Step::Remove(_)));
        }
        let context = StepContext {
            volume,
            device: seen.device.as_ref(),
            proof: None,
            operation: OPERATION,
            deadline,
        };
        self.run_steps(context, &steps).await?;
        Ok(stacked)
    }
}
