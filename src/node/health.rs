//! How a volume is, as far as this node can tell: by its device, the mount table, and what its filesystem
//! says and has recorded. Nothing is remembered but what the volume was staged with.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::observe::{CallContext, quick};
use super::place::not_there;
use super::request::{HealthRequest, Volume};
use super::stats::{VolumeStats, VolumeUsage};
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::{Device, Entry, HostError, Mount};
use crate::model::{Bytes, Filesystem};

const VERB: &str = "looking after the health";

/// How long a filesystem may take to answer for itself.
const PATIENCE: Duration = Duration::from_secs(5);

/// Something that is wrong with a volume on this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ailment {
    /// It is mounted, and its device is gone: nothing can be read or written.
    DeviceGone {
        /// Where it is mounted.
        path: PathBuf,
    },
    /// Its filesystem does not answer, because its device does not.
    Hangs {
        /// Where it is mounted.
        path: PathBuf,
        /// For how long.
        since: Duration,
    },
    /// The filesystem has shut down, or its device answers with errors only.
    ShutDown {
        /// The device.
        device: String,
    },
    /// The kernel allows no more writes after an error of the filesystem.
    ReadOnly {
        /// The device.
        device: String,
    },
    /// The device refuses writes, and what is on it is mounted to be written.
    DeviceReadOnly {
        /// The device.
        device: String,
    },
    /// The device is smaller than what is on it.
    DeviceTooSmall {
        /// The device.
        device: String,
        /// Its size.
        size: Bytes,
        /// The size of the filesystem.
        filesystem: Bytes,
    },
    /// The filesystem has met errors, and goes on.
    Errors {
        /// The device.
        device: String,
        /// Which, in the kernel's words.
        errors: String,
    },
}

impl Ailment {
    /// What it is, for machines: a word in camel case.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::DeviceGone { .. } => "DeviceGone",
            Self::Hangs { .. } => "FilesystemHangs",
            Self::ShutDown { .. } => "FilesystemShutDown",
            Self::ReadOnly { .. } => "RemountedReadOnly",
            Self::DeviceReadOnly { .. } => "DeviceReadOnly",
            Self::DeviceTooSmall { .. } => "DeviceTooSmall",
            Self::Errors { .. } => "FilesystemErrors",
        }
    }

    /// Whether the volume cannot be used at all.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::DeviceGone { .. } | Self::Hangs { .. } | Self::ShutDown { .. } => true,
            Self::ReadOnly { .. }
            | Self::DeviceReadOnly { .. }
            | Self::DeviceTooSmall { .. }
            | Self::Errors { .. } => false,
        }
    }
}

/// What it is and what to do, for people.
impl fmt::Display for Ailment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeviceGone { path } => write!(
                f,
                "what is mounted at {} has lost its device: delete the pod, so that the volume is \
                 attached anew",
                path.display()
            ),
            Self::Hangs { path, since } => write!(
                f,
                "the filesystem at {} has not answered for {} s: look at the disk in the console and at \
                 the kernel's log; if it stays, move the pod to another node",
                path.display(),
                since.as_secs()
            ),
            Self::ShutDown { device } => write!(
                f,
                "the filesystem on {device} has shut down after an error, and nothing can be read or \
                 written: look at the kernel's log and delete the pod, so that the volume is mounted anew"
            ),
            Self::ReadOnly { device } => write!(
                f,
                "the kernel has made the filesystem on {device} read-only after an error: look at the \
                 kernel's log and delete the pod, so that the filesystem is checked"
            ),
            Self::DeviceReadOnly { device } => write!(
                f,
                "{device} refuses writes, and its filesystem is mounted to be written: delete the pod, so \
                 that the volume is staged anew"
            ),
            Self::DeviceTooSmall {
                device,
                size,
                filesystem,
            } => write!(
                f,
                "{device} has {size} and the filesystem on it {filesystem}: what lies beyond the end is \
                 lost; stop the pod, and restore a snapshot or check the filesystem by hand"
            ),
            Self::Errors { device, errors } => write!(
                f,
                "the filesystem on {device} has met errors ({errors}): look at the kernel's log, take a \
                 snapshot, and delete the pod, so that the filesystem is checked"
            ),
        }
    }
}

impl Node {
    /// What is wrong with the volume on this node; nothing when nothing shows. It answers within
    /// seconds, also of a volume whose device answers no more.
    ///
    /// # Errors
    /// When the volume is not on this node.
    pub async fn health(
        &self,
        request: &HealthRequest,
        deadline: Deadline,
    ) -> Result<Vec<Ailment>> {
        let volume = &request.volume;
        let at = CallContext::new(volume, VERB);
        let device = self.present(volume, VERB).await?;
        let mounts = self.mounts(at).await?;
        let mut seen = Vec::new();
        for place in &request.paths {
            let path = self.place(place, at).await.map_err(not_there)?;
            seen.extend(mounts.iter().rfind(|mount| mount.point == path));
        }
        // Without a place, or where it is a directory above the device, any mount of it will do.
        if let Some(device) = &device {
            seen.extend(mounts.iter().rfind(|mount| mount.is_of(device)));
        }
        for mount in seen {
            let report = self
                .examine(request, device.as_ref(), mount, deadline)
                .await?;
            if let Some(report) = report {
                return Ok(report.health_issues);
            }
        }
        if device.is_some() {
            return Ok(Vec::new());
        }
        let place = request.paths.first();
        Err(Error::NotHere {
            volume: volume.id.clone(),
            path: place
                .map_or(Path::new("any path"), |path| path.as_path())
                .to_owned(),
            reason: "no device with its serial is on this node".to_owned(),
        })
    }

    /// How the volume is that is mounted there; none where the mount is of something else. The log is told what has changed.
    pub(super) async fn examine(
        &self,
        request: &HealthRequest,
        device: Option<&Device>,
        mount: &Mount,
        deadline: Deadline,
    ) -> Result<Option<VolumeStats>> {
        let report = self.check_up(request, device, mount, deadline).await?;
        if let Some(report) = &report {
            self.complaints
                .tell(&request.volume.id, &mount.point, &report.health_issues);
        }
        Ok(report)
    }

    async fn check_up(
        &self,
        request: &HealthRequest,
        device: Option<&Device>,
        mount: &Mount,
        deadline: Deadline,
    ) -> Result<Option<VolumeStats>> {
        let volume = &request.volume;
        let gone = || VolumeStats {
            usage: None,
            health_issues: vec![Ailment::DeviceGone {
                path: mount.point.clone(),
            }],
        };
        let own = device.filter(|device| mount.is_of(device) || mount.is_node_of(device));
        let Some(device) = own else {
            return Ok(self.is_orphan(mount, volume).await?.then(gone));
        };
        if self.has_new_incarnation(volume, device).await? {
            return Ok(Some(gone()));
        }
        if !mount.is_of(device) {
            // The node of the device: nothing of a filesystem is asked, so nothing can hang.
            let at = CallContext::new(volume, VERB);
            let entry = self.host.entry(quick(), &mount.point).await;
            let same = entry.map_err(at.failed())? == Entry::Block(device.number);
            let report = VolumeStats {
                usage: Some(VolumeUsage::Device(device.size)),
                health_issues: Vec::new(),
            };
            return Ok(Some(if same { report } else { gone() }));
        }
        self.ask(volume, device, mount, deadline).await.map(Some)
    }

    /// Asks the filesystem itself.
    async fn ask(
        &self,
        volume: &Volume,
        device: &Device,
        mount: &Mount,
        deadline: Deadline,
    ) -> Result<VolumeStats> {
        let at = CallContext::new(volume, VERB);
        let mounts = self.mounts(at).await?;
        let mut health_issues: Vec<Ailment> = read_only(device, &mounts).into_iter().collect();
        let shut = |health_issues: &mut Vec<Ailment>| {
            health_issues.push(Ailment::ShutDown {
                device: device.to_string(),
            });
        };
        let asked = deadline.at_most(PATIENCE);
        let vitals = match self.host.vitals(asked, device, mount).await {
            Ok(vitals) => vitals,
            Err(
                error @ (HostError::Late { .. }
                | HostError::Hangs { .. }
                | HostError::Silent { .. }),
            ) => {
                let since = match error {
                    HostError::Silent { since, .. } => since,
                    _ => PATIENCE,
                };
                health_issues.push(Ailment::Hangs {
                    path: mount.point.clone(),
                    since,
                });
                return Ok(VolumeStats {
                    usage: Some(VolumeUsage::Device(device.size)),
                    health_issues,
                });
            }
            Err(error) => return Err(at.failed()(error)),
        };
        let usage = match vitals.usage {
            Ok(usage) => VolumeUsage::Filesystem(usage),
            Err(error) if error.is_dead() => {
                shut(&mut health_issues);
                VolumeUsage::Device(device.size)
            }
            Err(error) => return Err(at.failed()(error)),
        };
        if health_issues.is_empty() && has(&mount.super_options, "shutdown") {
            shut(&mut health_issues);
        }
        if let Some(filesystem) = vitals.size.filter(|size| *size > device.size) {
            health_issues.push(Ailment::DeviceTooSmall {
                device: device.to_string(),
                size: device.size,
                filesystem,
            });
        }
        if let Some(errors) = vitals.errors {
            health_issues.push(Ailment::Errors {
                device: device.to_string(),
                errors,
            });
        }
        Ok(VolumeStats {
            usage: Some(usage),
            health_issues,
        })
    }

    /// Whether a mount is of a disk that has left: no device has its number, or one that has it is
    /// not what the volume was staged with.
    async fn is_orphan(&self, mount: &Mount, volume: &Volume) -> Result<bool> {
        let at = CallContext::new(volume, VERB);
        let devices = self.host.devices(quick()).await.map_err(at.failed())?;
        let heir = if let Some(name) = mount.node_name() {
            devices.iter().find(|device| device.name == name)
        } else if mount.kind.parse::<Filesystem>().is_ok() {
            let name = mount.source.file_name().and_then(|name| name.to_str());
            let is_part = |device: &Device| {
                name.is_some_and(|name| device.partitions.iter().any(|part| part == name))
            };
            if devices.iter().any(is_part) {
                return Ok(false);
            }
            devices.iter().find(|device| mount.is_of(device))
        } else {
            return Ok(false);
        };
        match heir {
            None => Ok(true),
            // Without a record nothing says that this was ever the volume's.
            Some(heir) => self.has_new_incarnation(volume, heir).await,
        }
    }

    /// Why no volume can be used on this node at all; none when nothing shows.
    pub async fn storage_health(&self) -> Option<String> {
        let looked = self.host.devices(quick()).await;
        let error = looked.err()?;
        Some(format!(
            "this node's devices cannot be listed: {}",
            crate::base::chain::chain(&error)
        ))
    }
}

fn has(options: &str, option: &str) -> bool {
    options.split(',').any(|one| one == option)
}

/// A filesystem that was mounted writable and is not any more. One that was mounted read-only says
/// so of its mount too.
fn read_only(device: &Device, mounts: &[Mount]) -> Option<Ailment> {
    let of_device = || mounts.iter().filter(|mount| mount.is_of(device));
    let lost = |mount: &Mount| {
        let emergency = has(&mount.super_options, "emergency_ro");
        emergency || mount.is_super_read_only() && !mount.has_option("ro")
    };
    let name = device.to_string();
    if of_device().any(lost) {
        return Some(Ailment::ReadOnly { device: name });
    }
    let writable = of_device().any(|mount| !mount.is_super_read_only());
    (device.read_only && writable).then_some(Ailment::DeviceReadOnly { device: name })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::{disk, mount_of};

    #[test]
    fn only_a_filesystem_that_was_writable_counts_as_lost() {
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
                read_only(&device, &[mount]).is_some(),
                lost,
                "{options} {super_options}"
            );
        }
    }
}
