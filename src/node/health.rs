//! How a volume is, as far as this node can tell at no cost: by its device and the mount table.

use std::path::Path;

use super::observe::{Quick, quick};
use super::request::Health;
use super::{Error, Node, Result};
use crate::host::{Device, Mount};

const VERB: &str = "looking after the health";

/// Something that is wrong with a volume on this node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ailment {
    /// It is mounted, and its device is gone: nothing can be read or written.
    DeviceGone {
        /// Where it is mounted.
        path: std::path::PathBuf,
    },
    /// The kernel allows no more writes after an error of the filesystem.
    ReadOnly {
        /// The device.
        device: String,
    },
}

impl Ailment {
    /// What it is, for machines: a word in camel case.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::DeviceGone { .. } => "DeviceGone",
            Self::ReadOnly { .. } => "RemountedReadOnly",
        }
    }
}

/// What it is and what to do, for people.
impl std::fmt::Display for Ailment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::DeviceGone { path } => write!(
                f,
                "what is mounted at {} has lost its device: delete the pod, so that the volume is \
                 attached anew",
                path.display()
            ),
            Self::ReadOnly { device } => write!(
                f,
                "the kernel has made the filesystem on {device} read-only after an error: look at the \
                 kernel's log and delete the pod, so that the filesystem is checked"
            ),
        }
    }
}

impl Node {
    /// What is wrong with the volume on this node; nothing when nothing shows.
    ///
    /// # Errors
    /// When the volume is not on this node.
    pub async fn health(&self, request: &Health) -> Result<Vec<Ailment>> {
        let volume = &request.volume;
        let at = Quick::new(volume, VERB);
        let device = self.present(volume, VERB).await?;
        let mounts = self.mounts(at).await?;
        if let Some(device) = device {
            return Ok(read_only(&device, &mounts).into_iter().collect());
        }
        for path in &request.places {
            let spot = self.spot(path.as_path(), &mounts, at).await?;
            if spot.mount.is_some() {
                return Ok(vec![Ailment::DeviceGone { path: spot.path }]);
            }
        }
        let place = request.places.first();
        Err(Error::NotHere {
            volume: volume.id.clone(),
            path: place
                .map_or(Path::new("any path"), |path| path.as_path())
                .to_owned(),
            reason: "no device with its serial is on this node".to_owned(),
        })
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

/// A filesystem that was mounted writable and is not any more. One that was mounted read-only says
/// so of its mount too.
fn read_only(device: &Device, mounts: &[Mount]) -> Option<Ailment> {
    let lost = |mount: &&Mount| {
        let emergency = mount.super_options.split(',').any(|o| o == "emergency_ro");
        mount.is_of(device) && (emergency || mount.is_super_read_only() && !mount.has_option("ro"))
    };
    mounts.iter().find(lost).map(|_| Ailment::ReadOnly {
        device: device.to_string(),
    })
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
