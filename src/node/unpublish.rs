//! Unpublish: unmounts and removes a target path. The volume stays staged.
//!
//! It starts from the mount table and does not search for the volume's device.

use super::Result;
use super::device_check::is_removed;
use super::io_watch::IoWatch;
use super::mounted::{self, OwnedMount};
use super::observe::{CallContext, Observer, device_node_mounts, quick};
use super::path_state::PathState;
use super::plan::PlanError;
use super::release;
use super::request::UnpublishRequest;
use super::run::set_read_only;
use super::staged::StagedRecords;
use super::tools::Tools;
use crate::base::Deadline;
use crate::linux::{Device, Entry};

const OPERATION: &str = "unpublishing";

#[derive(Debug, Clone)]
pub struct Unpublisher {
    pub(super) observer: Observer,
    pub(super) io: IoWatch,
    pub(super) tools: Tools,
    pub(super) staged: StagedRecords,
}

impl Unpublisher {
    /// Unpublishes a volume. Idempotent: a missing path is not an error.
    pub async fn unpublish(&self, request: UnpublishRequest, deadline: Deadline) -> Result<()> {
        let volume = request.volume.id.clone();
        let unpublished = Box::pin(self.clone().unpublish_locked(request, deadline));
        self.io.operations.run(&volume, OPERATION, deadline, unpublished).await
    }

    async fn unpublish_locked(self, request: UnpublishRequest, deadline: Deadline) -> Result<()> {
        let call = CallContext::new(&*self.observer.host, &request.volume, OPERATION);
        let volume = &self.staged.volume(call).await?;
        let call = CallContext { volume, ..call };
        // Mounts may be stacked. Each iteration removes one.
        loop {
            let (mounts, state) = self.observer.observe(&request.target, call).await?;
            let Some(mount) = &state.mount else {
                return remove(&state, call, quick()).await;
            };
            match mounted::identify(&self.staged, &state, mount, call).await? {
                OwnedMount::Dead(device) => {
                    release::unmount_dead(&self.io, call, device.as_deref(), &state.path, deadline).await?;
                }
                OwnedMount::Device(device) => {
                    release::unmount(&self.io, call, &device, &state.path, deadline).await?;
                    if matches!(state.entry, Entry::BlockDevice(_)) {
                        let others = device_node_mounts(&device, &mounts, &state.path);
                        self.release_node(&device, others.is_empty(), call, deadline).await?;
                    }
                }
            }
        }
    }

    /// Writes the cached data of a device that was published as a block device. The last target resets its read-only
    /// flag.
    async fn release_node(
        &self,
        device: &Device,
        is_last: bool,
        call: CallContext<'_>,
        deadline: Deadline,
    ) -> Result<()> {
        if is_removed(call, device).await? {
            return Ok(());
        }
        release::flush(&self.io, call, device, deadline).await?;
        if is_last && device.read_only {
            set_read_only(&self.tools, call, device, false).await?;
        }
        Ok(())
    }
}

/// Removes the directory or file of a path at which nothing is mounted.
pub(super) async fn remove(state: &PathState, call: CallContext<'_>, deadline: Deadline) -> Result<()> {
    match state.entry {
        Entry::Missing => Ok(()),
        Entry::Directory | Entry::File => {
            tracing::info!(disk.id = %call.id(), "{}: remove {}", call.operation, state.path.display());
            call.wrap(call.host.remove_empty(deadline, &state.path)).await
        }
        other => {
            let error = PlanError::wrong_path_type(&state.path, other, "a directory or a file");
            Err(call.refused()(error))
        }
    }
}
