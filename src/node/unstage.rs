//! Unstage: unmounts a disk so that it can be detached.
//!
//! After success the controller detaches the disk, so success requires proof that the kernel no longer uses the disk on
//! this node: either its device was identified and released, or no device of the node can be the disk.

use std::io::ErrorKind;
use std::sync::Arc;

use super::find_device::DeviceFinder;
use super::format::Formatter;
use super::health_log::HealthLog;
use super::mounted::{MountIdentifier, OwnedMount};
use super::observe::{CallContext, Observer, device_node_mounts, mounts_of, quick};
use super::plan::PlanError;
use super::release::Unmounter;
use super::release_candidates::release_candidates;
use super::request::UnstageRequest;
use super::staged::StagedRecords;
use super::unpublish::remove;
use super::volume_operations::VolumeOperations;
use super::{Error, Result};
use crate::base::Deadline;
use crate::linux::{Device, Host, Mount};

const OPERATION: &str = "unstaging";

#[derive(Debug, Clone)]
pub struct Unstager {
    pub(super) host: Arc<dyn Host>,
    pub(super) operations: VolumeOperations,
    pub(super) observer: Observer,
    pub(super) mounts: MountIdentifier,
    pub(super) finder: DeviceFinder,
    pub(super) unmounter: Unmounter,
    pub(super) formatter: Formatter,
    pub(super) staged: StagedRecords,
    pub(super) health_log: Arc<HealthLog>,
}

impl Unstager {
    /// Unstages a volume. Idempotent: a missing path is not an error.
    ///
    /// # Errors
    /// The volume is still published, another volume is mounted at the path, the device is in use or cannot be
    /// identified, or a step fails.
    pub async fn unstage(&self, request: UnstageRequest, deadline: Deadline) -> Result<()> {
        let volume = request.volume.clone();
        let unstaged = Box::pin(self.clone().unstage_locked(request, deadline));
        let call = CallContext::new(&volume, OPERATION);
        self.operations.run(call, deadline, unstaged).await
    }

    async fn unstage_locked(self, request: UnstageRequest, deadline: Deadline) -> Result<()> {
        let volume = self.staged.volume(&request.volume, OPERATION).await?;
        let call = CallContext::new(&volume, OPERATION);
        let mut devices = self.unmount_all(&request, deadline, call).await?;
        if devices.is_empty() {
            devices = release_candidates(&self.finder, &self.staged, call).await?;
        }
        let (mounts, state) = self.observer.observe(&request.staging, call).await?;
        for device in &devices {
            check_not_mounted(device, &mounts, call)?;
        }
        let io = &self.unmounter.io;
        for device in &devices {
            io.check_responds(call, device, deadline).await?;
            let discard = self.formatter.discard_incomplete(call, device, deadline);
            io.observe(call, device, None, discard).await?;
        }
        // The removal also unmounts the filesystem in mount namespaces that hold a copy of the mount, and writes its
        // dirty pages, however long that takes.
        let step = format!("removing {}", state.path.display());
        let step = self.operations.step(call.id(), step);
        let removed = match devices.first() {
            Some(device) => {
                let remove = remove(&self.host, &state, call, Deadline::never());
                io.observe(call, device, None, remove).await
            }
            None => remove(&self.host, &state, call, quick()).await,
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
            self.unmounter.wait_released(call, device, deadline).await?;
        }
        self.health_log.forget(call.id());
        io.forget(call.id());
        self.staged.remove(call.volume).await;
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
            match self.mounts.identify(&state, mount, call).await? {
                OwnedMount::Dead(device) => {
                    self.unmounter
                        .unmount_dead(call, device.as_deref(), &state.path, deadline)
                        .await?;
                }
                OwnedMount::Device(device) => {
                    let elsewhere: Vec<Mount> = mounts
                        .iter()
                        .filter(|mount| mount.point != state.path)
                        .cloned()
                        .collect();
                    check_not_mounted(&device, &elsewhere, call)?;
                    // The last unmount writes all dirty pages.
                    let io = &self.unmounter.io;
                    io.check_responds(call, &device, deadline).await?;
                    self.unmounter.unmount(call, &device, &state.path, deadline).await?;
                    if !devices.contains(&device) {
                        devices.push(*device);
                    }
                }
            }
        }
    }
}

/// Checks that the device is not mounted in this mount namespace: the volume is not published any more.
fn check_not_mounted(device: &Device, mounts: &[Mount], call: CallContext<'_>) -> Result<()> {
    let mut all = mounts_of(device, mounts, &[]);
    all.extend(device_node_mounts(device, mounts, "".as_ref()));
    if all.is_empty() {
        return Ok(());
    }
    Err(call.refused()(PlanError::mounted_elsewhere(device, &all)))
}
