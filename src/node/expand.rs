//! Expansion: grows the filesystem to the size of its device while it is mounted.

use super::format::Formatter;
use super::grow_partition::check_grown;
use super::io_watch::IoWatch;
use super::observe::{CallContext, Observer, mounts_of};
use super::request::ExpandRequest;
use super::run::run_steps;
use super::staged::StagedRecords;
use super::{Result, plan};
use crate::base::Deadline;
use crate::linux::{Device, Entry};
use crate::model::{Bytes, Failure, Filesystem};

const OPERATION: &str = "expanding";

#[derive(Debug, Clone)]
pub struct Expander {
    pub(super) observer: Observer,
    pub(super) formatter: Formatter,
    pub(super) io: IoWatch,
    pub(super) staged: StagedRecords,
}

impl Expander {
    /// Grows a volume's filesystem and returns the size of its device. Idempotent; the deadline limits the wait for the
    /// new size of the device.
    pub async fn expand(&self, request: ExpandRequest, deadline: Deadline) -> Result<Bytes> {
        let volume = request.volume.id.clone();
        let expanded = Box::pin(self.clone().expand_locked(request, deadline));
        self.io.operations.run(&volume, OPERATION, deadline, expanded).await
    }

    async fn expand_locked(self, request: ExpandRequest, deadline: Deadline) -> Result<Bytes> {
        let call = CallContext::new(&*self.observer.host, &request.volume, OPERATION, deadline);
        let volume = &self.staged.volume(call).await?;
        let call = CallContext { volume, ..call };
        let device = self.wait_for_size(&request, call).await?;
        let size = device.size;
        if let Some(limit) = request.limit.filter(|limit| size > *limit) {
            let message = format!("{device} has {size}, at most {limit} are allowed, and disks are never shrunk");
            return Err(call.error(Failure::OutOfRange, message));
        }
        let mounts = mounts_of(&device, &call.mounts().await?, &[]);
        let Some(mount) = mounts.first() else {
            return Ok(device.size);
        };
        if mount.kind.parse::<Filesystem>().is_err() {
            return Ok(device.size);
        }
        let mounted = mount.mounted_part(&device);
        let grow = async {
            let size = call.mounted_size(&mounted, mount).await?;
            let partition_grows = mounted.partition_of.is_some() && plan::partition_grows(&device);
            let steps = plan::expand(&mounted, &mounts, size, partition_grows);
            let steps = steps.map_err(call.refused())?;
            run_steps(&self.formatter, call, &mounted, &steps, None).await?;
            check_grown(call, &mounted).await
        };
        self.io.observe(call, &device, None, Box::pin(grow)).await?;
        Ok(device.size)
    }

    /// The volume's device, if the volume is mounted at the path.
    async fn device_at(&self, request: &ExpandRequest, call: CallContext<'_>) -> Result<Device> {
        let path = request.path.as_path();
        let Some(device) = self.observer.lookup_device(call).await? else {
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
    async fn wait_for_size(&self, request: &ExpandRequest, call: CallContext<'_>) -> Result<Device> {
        let mut device = self.device_at(request, call).await?;
        let required = request.required.unwrap_or_default();
        let mut changes = None;
        while device.size < required {
            if !self.observer.await_change(call, &mut changes).await {
                let size = device.size;
                let message = format!("{device} still has {size} at the deadline, {required} are required");
                return Err(call.error(Failure::DeviceNotResized, message));
            }
            device = self.device_at(request, call).await?;
        }
        Ok(device)
    }
}
