//! Health of a volume on this node, from its device, the mount table and its filesystem. The only stored state is the
//! record of the staged device.

use std::path::Path;
use std::sync::Arc;

use super::health_issue::{self as issue, VolumeStats, VolumeUsage};
use super::health_log::HealthLog;
use super::observe::{CallContext, FILESYSTEM_TIMEOUT, Observer, quick};
use super::request::{HealthRequest, PathRequest, Volume};
use super::staged::StagedRecords;
use super::{Result, VolumePath};
use crate::base::{Deadline, error_chain, join_all};
use crate::linux::{Device, Entry, HostError, IoStatistics, Mount, filesystem};
use crate::model::health::HealthIssue;
use crate::model::{DiskId, Filesystem, Fsck};

const OPERATION: &str = "checking the health";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedVolume {
    pub id: DiskId,
    /// `None` if the volume is not mounted, or could not be measured.
    pub stats: Option<VolumeStats>,
    /// `None` if the device was removed.
    pub io: Option<IoStatistics>,
}

#[derive(Debug, Clone)]
pub struct HealthReporter {
    pub(super) observer: Observer,
    pub(super) staged: StagedRecords,
    pub(super) log: Arc<HealthLog>,
}

impl HealthReporter {
    /// Health issues of the volume on this node, if any. Returns within seconds, even if the device does not respond.
    pub async fn health(&self, request: &HealthRequest, deadline: Deadline) -> Result<Vec<HealthIssue>> {
        let call = CallContext::new(&*self.observer.host, &request.volume, OPERATION, deadline);
        let volume = &self.staged.volume(call).await?;
        let call = CallContext { volume, ..call };
        let device = self.observer.lookup_device(call).await?;
        let mounts = call.mounts().await?;
        let mut candidates = Vec::new();
        for path in &request.paths {
            let path = self.observer.find_path(path, call).await?;
            candidates.extend(mounts.iter().rfind(|mount| mount.point == path));
        }
        // Without a path, or if it is a directory above the device, any mount of the device is used.
        if let Some(device) = &device {
            candidates.extend(mounts.iter().rfind(|mount| mount.is_of(device)));
        }
        let report = self.first_report(call, device.as_ref(), &candidates).await?;
        if report.is_some() || device.is_some() {
            return Ok(report.map(|report| report.health_issues).unwrap_or_default());
        }
        let path = request.paths.first();
        let path = path.map_or(Path::new("any path"), VolumePath::as_path);
        Err(call.not_found(path, "no device of this node has its serial"))
    }

    /// The usage and the health issues of the volume at a path. Returns within seconds, even if the device no longer
    /// responds.
    pub async fn stats(&self, request: &PathRequest, deadline: Deadline) -> Result<VolumeStats> {
        let call = CallContext::new(&*self.observer.host, &request.volume, "taking statistics", deadline);
        let volume = &self.staged.volume(call).await?;
        let call = CallContext { volume, ..call };
        let device = self.observer.lookup_device(call).await?;
        let mounts = call.mounts().await?;
        let path = self.observer.find_path(&request.path, call).await?;
        let Some(mount) = mounts.iter().rfind(|mount| mount.point == path) else {
            let reason = match device {
                Some(_) => "nothing is mounted there",
                None => "no device of this node has its serial",
            };
            return Err(call.not_found(request.path.as_path(), reason));
        };
        let report = self.first_report(call, device.as_ref(), &[mount]).await?;
        report.ok_or_else(|| {
            let reason = format!("{} is mounted there", mount.source.display());
            call.not_found(request.path.as_path(), reason)
        })
    }

    /// All volumes staged on this node, by ID. Volumes that do not respond are reported as such within seconds.
    pub async fn staged_volumes(&self, deadline: Deadline) -> Vec<StagedVolume> {
        let volumes = self.staged.volumes().await;
        let measured = volumes.into_iter().map(|id| self.measure(id, deadline));
        join_all(measured).await
    }

    async fn measure(&self, id: DiskId, deadline: Deadline) -> StagedVolume {
        let default = Volume::new(id, None);
        let call = CallContext::new(&*self.observer.host, &default, "measuring", deadline);
        let volume = &self.staged.volume(call).await.unwrap_or_else(|_| default.clone());
        let call = CallContext { volume, ..call };
        let device = self.observer.lookup_device(call).await.ok().flatten();
        let io = match &device {
            Some(device) => self.observer.host.io_statistics(deadline, device).await.ok().flatten(),
            None => None,
        };
        let stats = match self.mounted_stats(call, device.as_ref()).await {
            Ok(stats) => stats,
            Err(error) => {
                let error = error_chain(&error);
                tracing::debug!(disk.id = %volume.id, error, "cannot measure the volume");
                None
            }
        };
        StagedVolume {
            id: volume.id.clone(),
            stats,
            io,
        }
    }

    async fn mounted_stats(&self, call: CallContext<'_>, device: Option<&Device>) -> Result<Option<VolumeStats>> {
        let mounts = call.mounts().await?;
        let candidates: Vec<&Mount> = match device {
            Some(device) => {
                let is_of = |mount: &&Mount| mount.is_of(device) || mount.is_node_of(device);
                mounts.iter().rfind(is_of).into_iter().collect()
            }
            // A mount of a removed device.
            None => mounts.iter().collect(),
        };
        self.first_report(call, device, &candidates).await
    }

    /// Checks the health of the volume at the first of these mounts that is of the volume, and logs changes.
    async fn first_report(
        &self,
        call: CallContext<'_>,
        device: Option<&Device>,
        mounts: &[&Mount],
    ) -> Result<Option<VolumeStats>> {
        let operation = OPERATION;
        let call = CallContext { operation, ..call };
        for mount in mounts {
            let report = self.check_mount_health(call, device, mount).await?;
            if let Some(report) = report {
                self.log.log_change(call.id(), &mount.point, &report.health_issues);
                return Ok(Some(report));
            }
        }
        Ok(None)
    }

    /// `None` if the mount is not of the volume.
    async fn check_mount_health(
        &self,
        call: CallContext<'_>,
        device: Option<&Device>,
        mount: &Mount,
    ) -> Result<Option<VolumeStats>> {
        let gone = || VolumeStats {
            usage: None,
            health_issues: vec![issue::device_gone(&mount.point)],
        };
        let device = device.filter(|device| mount.is_of(device) || mount.is_node_of(device));
        let Some(device) = device else {
            return Ok(self.is_orphan(mount, call).await?.then(gone));
        };
        if self.staged.has_new_incarnation(call, device).await {
            return Ok(Some(gone()));
        }
        if !mount.is_of(device) {
            // A bind mount of the device node: no filesystem call that could hang.
            let entry = call.wrap(call.host.entry(quick(), &mount.point)).await?;
            return Ok(Some(match entry == Entry::BlockDevice(device.number) {
                true => VolumeStats {
                    usage: Some(VolumeUsage::Device(device.size)),
                    health_issues: Vec::new(),
                },
                false => gone(),
            }));
        }
        let device = mount.mounted_part(device);
        self.query_filesystem(call, &device, mount).await.map(Some)
    }

    async fn query_filesystem(&self, call: CallContext<'_>, device: &Device, mount: &Mount) -> Result<VolumeStats> {
        let mounts = call.mounts().await?;
        let recovery = self.recovery(call.id(), device, mount).await;
        let mut health_issues: Vec<HealthIssue> = read_only(device, &mounts, &recovery).into_iter().collect();
        let timeout = call.deadline.at_most(FILESYSTEM_TIMEOUT);
        let vitals = call.host.vitals(timeout, device, mount).await;
        let hangs_since = match &vitals {
            Err(HostError::TimedOut { .. }) => Some(FILESYSTEM_TIMEOUT),
            Err(HostError::StillRunning { since, .. }) => Some(*since),
            Ok(_) | Err(_) => None,
        };
        if let Some(since) = hangs_since {
            health_issues.push(issue::filesystem_hangs(&mount.point, since));
            let usage = Some(VolumeUsage::Device(device.size));
            return Ok(VolumeStats { usage, health_issues });
        }
        let vitals = vitals.map_err(call.failed())?;
        let usage = match vitals.usage {
            Ok(usage) => VolumeUsage::Filesystem(usage),
            Err(error) if error.is_io_failure() => {
                health_issues.push(issue::filesystem_shut_down(device, &recovery));
                VolumeUsage::Device(device.size)
            }
            Err(error) => return Err(call.failed()(error)),
        };
        if health_issues.is_empty() && mount.shows_shutdown() {
            health_issues.push(issue::filesystem_shut_down(device, &recovery));
        }
        if health_issues.is_empty() && vitals.rejects_writes {
            health_issues.push(issue::remounted_read_only(device, &recovery));
        }
        if let Ok(Some(filesystem)) = vitals.size
            && filesystem > device.size
        {
            health_issues.push(issue::device_too_small(device, filesystem));
        }
        if let Some(errors) = vitals.errors {
            health_issues.push(issue::filesystem_errors(device, &errors, &recovery));
        }
        Ok(VolumeStats {
            usage: Some(usage),
            health_issues,
        })
    }

    /// How the filesystem becomes usable again after the pods were stopped, by its type and the volume's `fsck`
    /// attribute. Staging without a record, by an earlier version, had the default.
    async fn recovery(&self, volume: &DiskId, device: &Device, mount: &Mount) -> String {
        let check = |filesystem| {
            let command = filesystem::repair_command(filesystem, &device.path);
            format!("run `{command}` manually before they start again, because it is mounted without a check")
        };
        match mount.kind.parse() {
            Ok(ext @ (Filesystem::Ext4 | Filesystem::Ext3)) => {
                let staged = self.staged.get(volume).await;
                match staged.and_then(|staged| staged.fsck).unwrap_or_default() {
                    Fsck::Preen => "when they start again, `e2fsck -p` repairs the filesystem before it is mounted \
                                    (fsck: preen)"
                        .to_owned(),
                    Fsck::Journal => format!(
                        "it can be staged again after `{}` has repaired it manually (fsck: journal)",
                        filesystem::repair_command(ext, &device.path)
                    ),
                    Fsck::None => check(ext),
                }
            }
            Ok(Filesystem::Btrfs) => check(Filesystem::Btrfs),
            // It verifies its metadata as they are read.
            Ok(Filesystem::Xfs) | Err(_) => "when they start again, the mount replays the journal".to_owned(),
        }
    }

    /// Whether a mount is of a removed disk: no device has its number, or the device with the
    /// number is not the staged one.
    async fn is_orphan(&self, mount: &Mount, call: CallContext<'_>) -> Result<bool> {
        let devices = call.wrap(call.host.devices(quick())).await?;
        let successor = if let Some(name) = mount.node_name() {
            devices.iter().find(|device| device.name == name)
        } else if mount.kind.parse::<Filesystem>().is_ok() {
            let name = mount.source.file_name().and_then(|name| name.to_str());
            let is_part =
                |device: &Device| name.is_some_and(|name| device.partitions.iter().any(|part| part.name == name));
            if devices.iter().any(is_part) {
                return Ok(false);
            }
            devices.iter().find(|device| mount.is_of(device))
        } else {
            return Ok(false);
        };
        match successor {
            None => Ok(true),
            // Without a record the mount is not known to be the volume's.
            Some(successor) => Ok(self.staged.has_new_incarnation(call, successor).await),
        }
    }

    /// The reason why no volume of this node is usable, if any.
    pub async fn storage_health(&self) -> Option<String> {
        let error = self.observer.host.devices(quick()).await.err()?;
        let reason = error_chain(&error);
        Some(format!("cannot list the block devices of this node: {reason}"))
    }
}

/// A filesystem or device that was mounted read-write and is read-only now.
fn read_only(device: &Device, mounts: &[Mount], recovery: &str) -> Option<HealthIssue> {
    let of_device = || mounts.iter().filter(|mount| mount.is_of(device));
    if of_device().any(Mount::was_remounted_read_only) {
        return Some(issue::remounted_read_only(device, recovery));
    }
    let writable = of_device().any(|mount| !mount.is_super_read_only());
    (device.read_only && writable).then(|| issue::device_read_only(device))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::fake::{disk, mount_of};

    #[test]
    fn only_a_filesystem_that_was_writable_is_reported_as_read_only() {
        for (options, super_options, lost) in [
            ("rw,relatime", "rw", false),
            ("ro,relatime", "ro", false),
            ("ro,relatime", "rw", false),
            ("rw,relatime", "ro,errors=remount-ro", true),
            ("rw,relatime", "rw,emergency_ro", true),
        ] {
            let device = disk("vdb", 16, "bp1");
            let mut mount = mount_of(&device, "/staging", options);
            mount.super_options = super_options.to_owned();
            assert_eq!(
                read_only(&device, &[mount], "").is_some(),
                lost,
                "{options} {super_options}"
            );
        }
    }
}
