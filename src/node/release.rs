//! Taking mounts off, and waiting until the kernel is done with a device. Who stands in the way is told by
//! name.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use super::observe::{Quick, quick};
use super::request::Volume;
use super::run::{LONG, Subject};
use super::{Error, Node, Result};
use crate::base::Deadline;
use crate::host::{Device, Flushed, HostError, Mount, Sought};

/// How long the search for holders may take. So much before the deadline the wait ends, so that the answer
/// comes in time.
const SEARCH: Duration = Duration::from_secs(1);

/// How often to try again: that a process closes its last file, or another mount namespace ends, is no
/// event. That a mount here goes is one.
const TICK: Duration = Duration::from_millis(100);

impl Node {
    /// Removes the topmost mount at a path; while somebody uses it, until the deadline.
    pub(super) async fn unmount(&self, subject: Subject<'_>, path: &Path) -> Result<()> {
        let at = Quick::new(subject.volume, subject.verb);
        loop {
            // The last unmount of a filesystem writes what is dirty, however long that takes.
            let error = match self.host.unmount(Deadline::after(LONG), path).await {
                Ok(()) => return Ok(()),
                Err(error) if error.io_kind() == Some(ErrorKind::ResourceBusy) => error,
                Err(error) => return Err(at.failed()(error)),
            };
            if !self.may_wait(subject.deadline, at).await? {
                tracing::debug!(path = %path.display(), error = %error, "still busy");
                let mounts = self.mounts(at).await?;
                let top: Option<&Mount> = mounts.iter().rfind(|mount| mount.point == path);
                let Some(top) = top else { continue };
                let what = format!("the mount at {}", path.display());
                return Err(self
                    .in_use(subject.volume, subject.verb, what, &Sought::mount(top))
                    .await);
            }
        }
    }

    /// Removes the topmost mount at a path from sight, if its filesystem can write nothing any more:
    /// whoever uses it is not waited for.
    pub(super) async fn detach(&self, subject: Subject<'_>, path: &Path) -> Result<()> {
        let at = Quick::new(subject.volume, subject.verb);
        match self.host.unmount(Deadline::after(LONG), path).await {
            Err(error) if error.io_kind() == Some(ErrorKind::ResourceBusy) => {
                let mounts = self.mounts(at).await?;
                let is_below =
                    |mount: &&Mount| mount.point != path && mount.point.starts_with(path);
                if let (Some(top), Some(_)) = (
                    mounts.iter().rfind(|mount| mount.point == path),
                    mounts.iter().find(is_below),
                ) {
                    // What is mounted below would lose its path too, and may be alive.
                    let what = format!("the mount at {}", path.display());
                    return Err(self
                        .in_use(subject.volume, subject.verb, what, &Sought::mount(top))
                        .await);
                }
                tracing::warn!(
                    disk.id = %subject.volume.id,
                    path = %path.display(),
                    "a mount that can write nothing any more is in use, and is detached from its path"
                );
                self.host.detach(quick(), path).await.map_err(at.failed())
            }
            other => other.map_err(at.failed()),
        }
    }

    /// Writes what the kernel holds for a device that may be in use by others.
    pub(super) async fn flush(&self, subject: Subject<'_>, device: &Device) -> Result<()> {
        let at = Quick::new(subject.volume, subject.verb);
        let flushed = self.host.flush(Deadline::after(LONG), device).await;
        flushed.map(drop).map_err(at.failed())
    }

    /// Waits until nothing in the kernel uses the device and all is written: a filesystem that is not
    /// mounted here any more may be so in another mount namespace, and would lose what it has not written
    /// when the disk is detached.
    pub(super) async fn released(&self, subject: Subject<'_>, device: &Device) -> Result<()> {
        let at = Quick::new(subject.volume, subject.verb);
        loop {
            let flushed = self.host.flush_if_free(Deadline::after(LONG), device).await;
            match flushed.map_err(at.failed())? {
                Flushed::Free => return Ok(()),
                Flushed::Gone if self.has_gone(subject).await? => return Ok(()),
                // Its filesystem may live on elsewhere, and nothing tells whether all is written.
                Flushed::Gone => {
                    return Err(at.failed()(HostError::Changed {
                        device: device.path.clone(),
                        reason: "the kernel still has it, and its node is missing or another's"
                            .to_owned(),
                    }));
                }
                Flushed::InUse => {}
            }
            if !self.may_wait(subject.deadline, at).await? {
                let sought = Sought::device(device);
                return Err(self
                    .in_use(subject.volume, subject.verb, device.to_string(), &sought)
                    .await);
            }
        }
    }

    /// Waits for a change, but not into the time for the search; false when there is none left.
    async fn may_wait(&self, deadline: Deadline, at: Quick<'_>) -> Result<bool> {
        if deadline.remaining() <= SEARCH {
            return Ok(false);
        }
        let changed = self.host.mounts_change(deadline.at_most(TICK)).await;
        changed.map(|()| true).map_err(at.failed())
    }

    async fn in_use(
        &self,
        volume: &Volume,
        verb: &'static str,
        what: String,
        sought: &Sought,
    ) -> Error {
        let holders = self.host.holders(Deadline::after(SEARCH), sought).await;
        let by = match holders {
            Ok(holders) => crate::host::holder::list(&holders),
            Err(error) => format!("somebody ({})", crate::base::chain::chain(&error)),
        };
        Error::InUse {
            volume: volume.id.clone(),
            verb,
            what,
            by,
        }
    }
}
