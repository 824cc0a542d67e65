//! Unstage and unpublish: unmount a volume at its staging path or at a target path, starting from the mount table.
//!
//! After an unstage the controller detaches the disk, so success requires proof that the kernel no longer uses the disk
//! on this node: either its device was identified and released, or no device of the node can be the disk. An unpublish
//! does not search for the volume's device, and the volume stays staged.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::device_check::is_removed;
use super::format::Formatter;
use super::health_log::HealthLog;
use super::io_watch::IoWatch;
use super::mounted::{self, OwnedMount};
use super::observe::{CallContext, Observer, device_node_mounts, mounts_of, quick};
use super::path::PathState;
use super::plan::PlanError;
use super::release;
use super::release_candidates::release_candidates;
use super::request::PathRequest;
use super::run::set_read_only;
use super::staged::StagedRecords;
use super::{Error, Result};
use crate::base::Deadline;
use crate::linux::{Device, Entry, Mount};

const UNSTAGING: &str = "unstaging";
const UNPUBLISHING: &str = "unpublishing";

#[derive(Debug, Clone)]
pub struct Unmounter {
    pub(super) observer: Observer,
    pub(super) io: IoWatch,
    pub(super) formatter: Formatter,
    pub(super) staged: StagedRecords,
    pub(super) health_log: Arc<HealthLog>,
}

impl Unmounter {
    /// Unpublishes a volume. Idempotent: a missing path is not an error.
    pub async fn unpublish(&self, request: PathRequest, deadline: Deadline) -> Result<()> {
        self.run(request, UNPUBLISHING, deadline).await
    }

    /// Unstages a volume. Idempotent: a missing path is not an error.
    pub async fn unstage(&self, request: PathRequest, deadline: Deadline) -> Result<()> {
        self.run(request, UNSTAGING, deadline).await
    }

    async fn run(&self, request: PathRequest, operation: &'static str, deadline: Deadline) -> Result<()> {
        let volume = request.volume.id.clone();
        let run = Box::pin(self.clone().run_locked(request, operation, deadline));
        self.io.operations.run(&volume, operation, deadline, run).await
    }

    async fn run_locked(self, request: PathRequest, operation: &'static str, deadline: Deadline) -> Result<()> {
        let call = CallContext::new(&*self.observer.host, &request.volume, operation, deadline);
        let volume = &self.staged.volume(call).await?;
        let call = CallContext { volume, ..call };
        let (devices, state) = self.unmount_all(&request, call).await?;
        match operation {
            UNSTAGING => self.release(&request, devices, call).await,
            _ => remove(&state, call, quick()).await,
        }
    }

    /// Releases the volume, whose staging path is unmounted. `devices` are those of its mounts.
    async fn release(&self, request: &PathRequest, mut devices: Vec<Device>, call: CallContext<'_>) -> Result<()> {
        if devices.is_empty() {
            devices = release_candidates(&self.observer, &self.staged, call).await?;
        }
        let (mounts, state) = self.observer.observe(&request.path, call).await?;
        for device in &devices {
            check_not_mounted(device, &mounts, "".as_ref(), call)?;
        }
        let io = &self.io;
        for device in &devices {
            io.check_responds(call, device).await?;
            let discard = self.formatter.discard_incomplete(call, device);
            io.observe(call, device, None, discard).await?;
        }
        // The removal also unmounts the filesystem in mount namespaces that hold a copy of the mount, and writes its
        // dirty pages, however long that takes.
        let step = format!("removing {}", state.path.display());
        let step = io.operations.step(call.id(), step);
        let removed = match devices.first() {
            Some(device) => {
                let remove = remove(&state, call, Deadline::never());
                io.observe(call, device, None, remove).await
            }
            None => remove(&state, call, quick()).await,
        };
        drop(step);
        match removed {
            // The staging directory belongs to kubelet, and its content is not part of the volume.
            Err(Error::Host { source, .. }) if source.io_kind() == Some(ErrorKind::DirectoryNotEmpty) => {
                tracing::info!(disk.id = %call.id(), "the staging directory is not empty and is kept");
            }
            other => other?,
        }
        for device in &devices {
            io.check_responds(call, device).await?;
            release::wait_released(io, call, device).await?;
        }
        self.health_log.forget(call.id());
        io.forget(call.id());
        self.staged.remove(call.id()).await;
        Ok(())
    }

    /// Removes all mounts at the path, which may be stacked. Returns the volume's device if one of them was a mount of
    /// it, and the state of the path.
    async fn unmount_all(&self, request: &PathRequest, call: CallContext<'_>) -> Result<(Vec<Device>, PathState)> {
        let io = &self.io;
        let mut devices: Vec<Device> = Vec::new();
        loop {
            let (mounts, state) = self.observer.observe(&request.path, call).await?;
            let Some(mount) = &state.mount else {
                return Ok((devices, state));
            };
            let device = match mounted::identify(&self.staged, &state, mount, call).await? {
                OwnedMount::Device(device) => device,
                OwnedMount::Dead(device) => {
                    release::unmount_dead(io, call, device.as_deref(), &state.path).await?;
                    continue;
                }
            };
            if call.operation == UNSTAGING {
                check_not_mounted(&device, &mounts, &state.path, call)?;
                // The last unmount writes all dirty pages.
                io.check_responds(call, &device).await?;
            }
            release::unmount(io, call, &device, &state.path).await?;
            if matches!(state.entry, Entry::BlockDevice(_)) && !is_removed(call, &device).await? {
                release::flush(io, call, &device).await?;
                // The last target of a block volume resets the read-only flag of the device.
                if device.read_only && device_node_mounts(&device, &mounts, &state.path).is_empty() {
                    set_read_only(&self.formatter.tools, call, &device, false).await?;
                }
            }
            if !devices.contains(&device) {
                devices.push(*device);
            }
        }
    }
}

/// Removes the directory or file of a path at which nothing is mounted.
async fn remove(state: &PathState, call: CallContext<'_>, deadline: Deadline) -> Result<()> {
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

/// Checks that the device is not mounted in this mount namespace, except at this path: the volume is not published any
/// more.
fn check_not_mounted(device: &Device, mounts: &[Mount], except: &Path, call: CallContext<'_>) -> Result<()> {
    let mut all = mounts_of(device, mounts, &[except]);
    all.extend(device_node_mounts(device, mounts, except));
    if all.is_empty() {
        return Ok(());
    }
    Err(call.refused()(PlanError::mounted_elsewhere(device, &all)))
}
