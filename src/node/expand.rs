//! Expansion: grows the filesystem to the size of its device while it is mounted.

use std::sync::Arc;

use super::find_device::DeviceFinder;
use super::grow_partition::check_grown;
use super::io_watch::IoWatch;
use super::observe::{CallContext, Observer, mounts_of, quick};
use super::plan;
use super::request::ExpandRequest;
use super::run::StepRunner;
use super::staged::StagedRecords;
use super::volume_operations::VolumeOperations;
use super::{Error, Result};
use crate::base::Deadline;
use crate::linux::{Device, Entry, Host};
use crate::model::{Bytes, Filesystem};

const OPERATION: &str = "expanding";

#[derive(Debug, Clone)]
pub struct Expander {
    pub(super) host: Arc<dyn Host>,
    pub(super) operations: VolumeOperations,
    pub(super) observer: Observer,
    pub(super) finder: DeviceFinder,
    pub(super) runner: StepRunner,
    pub(super) io: IoWatch,
    pub(super) staged: StagedRecords,
}

impl Expander {
    /// Grows a volume's filesystem and returns the size of its device. Idempotent; the deadline limits the wait for the
    /// new size of the device.
    ///
    /// # Errors
    /// If the volume is not at the path, its device keeps its size, or growing fails.
    pub async fn expand(&self, request: ExpandRequest, deadline: Deadline) -> Result<Bytes> {
        let volume = request.volume.clone();
        let expanded = Box::pin(self.clone().expand_locked(request, deadline));
        let call = CallContext::new(&volume, OPERATION);
        self.operations.run(call, deadline, expanded).await
    }

    async fn expand_locked(self, request: ExpandRequest, deadline: Deadline) -> Result<Bytes> {
        let volume = self.staged.volume(&request.volume, OPERATION).await?;
        let call = CallContext::new(&volume, OPERATION);
        let device = self.wait_for_size(&request, call, deadline).await?;
        if let Some(limit) = request.limit.filter(|limit| device.size > *limit) {
            return Err(Error::TooLarge {
                volume: volume.id,
                device: device.to_string(),
                size: device.size,
                limit,
            });
        }
        let mounts = mounts_of(&device, &self.observer.mounts(call).await?, &[]);
        let Some(mount) = mounts.first() else {
            return Ok(device.size);
        };
        if mount.kind.parse::<Filesystem>().is_err() {
            return Ok(device.size);
        }
        let mounted = mount.mounted_part(&device);
        let grow = async {
            let size = call.wrap(self.host.mounted_size(quick(), &mounted, mount)).await?;
            let partition_grows = mounted.partition_of.is_some() && plan::partition_grows(&device);
            let steps = plan::expand(&mounted, &mounts, size, partition_grows);
            let steps = steps.map_err(call.refused())?;
            self.runner.run(call, &mounted, &steps, None).await?;
            check_grown(&*self.host, call, &mounted).await
        };
        self.io.observe(call, &device, None, Box::pin(grow)).await?;
        Ok(device.size)
    }

    /// The volume's device, if the volume is mounted at the path.
    async fn device_at(&self, request: &ExpandRequest, call: CallContext<'_>) -> Result<Device> {
        let path = request.path.as_path();
        let Some(device) = self.finder.lookup_device(call).await? else {
            return Err(call.not_found(path, "no device of this node has its serial"));
        };
        self.observer.find_path(&request.path, call).await?;
        // For block volumes the path is not checked: orchestrators pass a directory above it.
        if request.block {
            return Ok(device);
        }
        let (_, state) = self.observer.observe(&request.path, call).await?;
        let is_mounted = state.mount.is_some_and(|mount| mount.is_of(&device));
        if is_mounted || state.entry == Entry::BlockDevice(device.number) {
            return Ok(device);
        }
        Err(call.not_found(path, "it is not mounted at this path"))
    }

    /// The volume's device, once it has the required size.
    async fn wait_for_size(
        &self,
        request: &ExpandRequest,
        call: CallContext<'_>,
        deadline: Deadline,
    ) -> Result<Device> {
        let mut device = self.device_at(request, call).await?;
        let required = request.required.unwrap_or_default();
        let mut changes = None;
        while device.size < required {
            if !self.finder.await_change(&mut changes, deadline).await {
                return Err(Error::DeviceNotResized {
                    volume: call.id().clone(),
                    device: device.to_string(),
                    size: device.size,
                    required,
                });
            }
            device = self.device_at(request, call).await?;
        }
        Ok(device)
    }
}
