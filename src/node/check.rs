//! Looking whether a filesystem is in order before it is mounted, as far as the class's policy goes.
//!
//! The default changes nothing beyond what every mount does, the replay of the journal, which is left to the kernel: `e2fsck -n`
//! does not replay it and takes for damage what is merely not yet written back, and `-E journal_only` does no more than
//! the mount. What is looked at is the mark that kernel and e2fsck leave in the superblock of a filesystem in which they met an error.

use super::observe::{CallContext, quick};
use super::run::StepContext;
use super::{Error, Node, Result};
use crate::host::filesystem::{self, Checked};
use crate::host::{Command, Device};
use crate::model::{Filesystem, Fsck};

impl Node {
    /// Looks, and under the policy `preen` mends what e2fsck mends safely.
    pub(super) async fn check(
        &self,
        context: StepContext<'_>,
        filesystem: Filesystem,
        fsck: Fsck,
        device: &Device,
    ) -> Result<()> {
        match (fsck, filesystem::check(filesystem, &device.path)) {
            (Fsck::Preen, Some(command)) => self.mend(context, device, &command).await,
            (Fsck::Journal, Some(_)) => self.is_unmarked(context, filesystem, device).await,
            (Fsck::None, _) | (_, None) => Ok(()),
        }
    }

    async fn is_unmarked(
        &self,
        context: StepContext<'_>,
        filesystem: Filesystem,
        device: &Device,
    ) -> Result<()> {
        let marked = self.host.has_errors(quick(), device).await;
        if !marked.map_err(CallContext::new(context.volume, context.verb).failed())? {
            return Ok(());
        }
        let by_hand = filesystem::repair_by_hand(filesystem, &device.path);
        Err(broken(
            context,
            device,
            &format!(
                "it is marked as having errors, and with `fsck: journal` nothing is repaired unasked; run \
                 `{by_hand}` by hand, best on a disk from a snapshot, or set `fsck: preen` in the StorageClass \
                 for the volumes that it makes"
            ),
        ))
    }

    /// Grows an unmounted ext filesystem. resize2fs wants a full check before; where nothing may be repaired, one that
    /// only looks has the first word, and leaves nothing to repair to the second.
    pub(super) async fn grow_unmounted(
        &self,
        context: StepContext<'_>,
        fsck: Fsck,
        device: &Device,
    ) -> Result<()> {
        let path = &device.path;
        if fsck != Fsck::Preen {
            self.mend(context, device, &filesystem::replay(path))
                .await?;
            let look = filesystem::look(path);
            let output = self
                .run_command(context, "check the filesystem", &look)
                .await?;
            if output.code != Some(0) {
                let said = output.stdout.trim();
                let why = format!(
                    "it must be in order to grow, and `{look}` finds fault with it (exit code {:?}: {said}); \
                     with `fsck: journal` nothing is repaired unasked: run `e2fsck -f {}` by hand",
                    output.code,
                    path.display()
                );
                return Err(broken(context, device, &why));
            }
        }
        let [check, grow] = filesystem::grow_unmounted(path);
        self.mend(context, device, &check).await?;
        self.run_tool(context, "grow the filesystem", &grow).await
    }

    /// Runs a check that mends what is safe to mend.
    async fn mend(
        &self,
        context: StepContext<'_>,
        device: &Device,
        command: &Command,
    ) -> Result<()> {
        let output = self
            .run_command(context, "check the filesystem", command)
            .await?;
        let said = format!("{} {}", output.stdout.trim(), output.stderr.trim());
        match filesystem::judge_check(output.code) {
            Checked::Clean => Ok(()),
            Checked::Repaired => {
                tracing::warn!(disk.id = %context.volume.id, said, "filesystem repaired");
                Ok(())
            }
            Checked::Broken => {
                let why = format!(
                    "`{command}` ended with {:?}; run e2fsck by hand: {said}",
                    output.code
                );
                Err(broken(context, device, &why))
            }
        }
    }
}

fn broken(context: StepContext<'_>, device: &Device, why: &str) -> Error {
    Error::Broken {
        volume: context.volume.id.clone(),
        device: device.to_string(),
        why: why.to_owned(),
    }
}
