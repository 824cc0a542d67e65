//! Unstage: unmounts a disk so that it can be detached.
//!
//! After success the controller detaches the disk, so success requires proof that the kernel no longer uses the disk on
//! this node: either its device was identified and released, or no device of the node can be the disk.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use super::format::Formatter;
use super::health_log::HealthLog;
use super::io_watch::IoWatch;
use super::mounted::{self, OwnedMount};
use super::observe::{CallContext, Observer, device_node_mounts, mounts_of, quick};
use super::plan::PlanError;
use super::release;
use super::release_candidates::release_candidates;
use super::request::UnstageRequest;
use super::staged::StagedRecords;
use super::unpublish::remove;
use super::{Error, Result};
use crate::base::Deadline;
use crate::linux::{Device, Mount};

const OPERATION: &str = "unstaging";

#[derive(Debug, Clone)]
pub struct Unstager {
    pub(super) observer: Observer,
    pub(super) io: IoWatch,
    pub(super) formatter: Formatter,
    pub(super) staged: StagedRecords,
    pub(super) health_log: Arc<HealthLog>,
}

impl Unstager {
    /// Unstages a volume. Idempotent: a missing path is not an error.
    pub async fn unstage(&self, request: UnstageRequest, deadline: Deadline) -> Result<()> {
        let volume = request.volume.id.clone();
        let unstaged = Box::pin(self.clone().unstage_locked(request, deadline));
        self.io.operations.run(&volume, OPERATION, deadline, unstaged).await
    }

    async fn unstage_locked(self, request: UnstageRequest, deadline: Deadline) -> Result<()> {
        let call = CallContext::new(&*self.observer.host, &request.volume, OPERATION);
        let volume = &self.staged.volume(call).await?;
        let call = CallContext { volume, ..call };
        let mut devices = self.unmount_all(&request, deadline, call).await?;
        if devices.is_empty() {
            devices = release_candidates(&self.observer, &self.staged, call).await?;
        }
        let (mounts, state) = self.observer.observe(&request.staging, call).await?;
        for device in &devices {
            check_not_mounted(device, &mounts, "".as_ref(), call)?;
        }
        let io = &self.io;
        for device in &devices {
            io.check_responds(call, device, deadline).await?;
            let discard = self.formatter.discard_incomplete(call, device, deadline);
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
            io.check_responds(call, device, deadline).await?;
            release::wait_released(io, call, device, deadline).await?;
        }
        self.health_log.forget(call.id());
        io.forget(call.id());
        self.staged.remove(call.id()).await;
        Ok(())
    }

    /// Removes all mounts at the staging path, which may be stacked, and returns the volume's device if one of them was
    /// a mount of it.
    async fn unmount_all(
        &self,
        request: &UnstageRequest,
        deadline: Deadline,
        call: CallContext<'_>,
    ) -> Result<Vec<Device>> {
        let mut devices: Vec<Device> = Vec::new();
        loop {
            let (mounts, state) = self.observer.observe(&request.staging, call).await?;
            let Some(mount) = &state.mount else {
                return Ok(devices);
            };
            match mounted::identify(&self.staged, &state, mount, call).await? {
                OwnedMount::Dead(device) => {
                    release::unmount_dead(&self.io, call, device.as_deref(), &state.path, deadline).await?;
                }
                OwnedMount::Device(device) => {
                    check_not_mounted(&device, &mounts, &state.path, call)?;
                    // The last unmount writes all dirty pages.
                    self.io.check_responds(call, &device, deadline).await?;
                    release::unmount(&self.io, call, &device, &state.path, deadline).await?;
                    if !devices.contains(&device) {
                        devices.push(*device);
                    }
                }
            }
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
