//! Unstage: unmounts a disk so that it can be detached.

use std::io::ErrorKind;
use std::sync::Arc;

use super::observe::{CallContext, device_node_mounts, mounts_of};
use super::plan::{self, Step, UnmountObservation};
use super::request::UnstageRequest;
use super::run::StepContext;
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::Mount;

const OPERATION: &str = "unstaging";

impl Node {
    /// Unstages a volume. Idempotent: a missing path is not an error.
    ///
    /// # Errors
    /// The volume is still published, another volume is mounted at the path, or a step fails.
    pub async fn unstage(
        self: &Arc<Self>,
        request: UnstageRequest,
        deadline: Deadline,
    ) -> Result<()> {
        let guard = self.lock(&request.volume.id)?;
        let node = Arc::clone(self);
        self.tasks
            .run(async move {
                let _guard = guard;
                // Mounts may be stacked. Each iteration removes one.
                while node.unstage_once(&request, deadline).await? {}
                node.health_log.forget(&request.volume.id);
                node.remove_staged_record(&request.volume).await;
                Ok(())
            })
            .await
    }

    /// Removes one mount. Returns whether more mounts are stacked at the path.
    async fn unstage_once(&self, request: &UnstageRequest, deadline: Deadline) -> Result<bool> {
        let volume = &request.volume;
        let call = CallContext::new(volume, OPERATION);
        // A disk whose serial, device node or mapping is missing is still present: its filesystem may be mounted
        // elsewhere.
        let device = match self.lookup_device(volume, OPERATION).await? {
            Some(device) => Some(device),
            None => self.staged_device(volume, call).await?,
        };
        let mounts = self.mounts(call).await?;
        let path_state = self.path_state(&request.staging, &mounts, call).await?;
        let others: Vec<Mount> = match &device {
            Some(device) => {
                let mut others = mounts_of(device, &mounts, &[&path_state.path]);
                others.extend(device_node_mounts(device, &mounts, &path_state.path));
                others
            }
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
        let mut steps = plan::unstage(&seen).map_err(|source| Error::Plan {
            volume: volume.id.clone(),
            operation: OPERATION,
            source,
        })?;
        if stacked {
            steps.retain(|step| !matches!(step, Step::Remove(_) | Step::WaitReleased));
        }
        let context = StepContext {
            volume,
            device: seen.device.as_ref(),
            proof: None,
            operation: OPERATION,
            deadline,
        };
        match self.run_steps(context, &steps).await {
            // The staging directory belongs to kubelet, and its content is not part of the volume.
            Err(Error::Host { source, .. })
                if source.io_kind() == Some(ErrorKind::DirectoryNotEmpty) =>
            {
                tracing::info!(disk.id = %volume.id, "the staging directory is not empty and is kept");
            }
            other => other?,
        }
        Ok(stacked)
    }
}
