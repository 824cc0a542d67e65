//! Limits how many filesystem tools run concurrently: twenty volumes are staged in parallel after a restart of the
//! node. A full check reads the whole filesystem, for hours if it is large, and may need much memory. Full checks have
//! slots of their own, so that mkfs and checks of clean filesystems never wait for them.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Result;
use super::observe::CallContext;
use super::plan::Step;
use crate::model::{Failure, Fsck};

/// Each needs about 10 MiB, whatever the size of the disk (measured up to 15 TiB, e2fsprogs 1.47).
const QUICK_TOOLS: usize = 16;

const FULL_CHECKS: usize = 2;

/// The slot that the steps of a plan need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolKind {
    /// mkfs, or the check of a clean filesystem.
    Quick,
    /// A check that reads the whole filesystem.
    FullCheck,
}

impl ToolKind {
    /// The slot for the steps; `None` if they run no such tool. `demands_full_check` states whether the superblock
    /// demands a full check.
    pub(super) fn of(steps: &[Step], demands_full_check: bool) -> Option<Self> {
        let kinds = steps.iter().filter_map(|step| match step {
            Step::GrowUnmounted(..) => Some(Self::FullCheck),
            Step::Check(_, Fsck::Preen) if demands_full_check => Some(Self::FullCheck),
            Step::Check(_, Fsck::Preen) | Step::Format { .. } => Some(Self::Quick),
            Step::Check(_, Fsck::Journal | Fsck::None) | Step::Wipe | Step::RemoveFormatRecord => None,
            // Grows a mounted filesystem while it is used.
            Step::GrowPartition | Step::GrowMounted(..) => None,
            Step::MakeDirectory(_) | Step::MakeFile(_) | Step::SetReadOnly(_) | Step::Mount(_) => None,
            Step::Bind { .. } | Step::BindDevice(_) | Step::Restrict { .. } => None,
        });
        kinds.max_by_key(|kind| *kind == Self::FullCheck)
    }
}

/// Slots of concurrent tools. Waiting tools are served in order.
#[derive(Debug, Clone)]
pub(super) struct ToolSlots {
    quick: Arc<Semaphore>,
    full_checks: Arc<Semaphore>,
}

impl Default for ToolSlots {
    fn default() -> Self {
        Self {
            quick: Arc::new(Semaphore::new(QUICK_TOOLS)),
            full_checks: Arc::new(Semaphore::new(FULL_CHECKS)),
        }
    }
}

impl ToolSlots {
    fn slots(&self, kind: ToolKind) -> Arc<Semaphore> {
        Arc::clone(match kind {
            ToolKind::Quick => &self.quick,
            ToolKind::FullCheck => &self.full_checks,
        })
    }

    pub(super) fn try_acquire(&self, kind: ToolKind) -> Option<OwnedSemaphorePermit> {
        self.slots(kind).try_acquire_owned().ok()
    }

    pub(super) async fn acquire(&self, call: CallContext<'_>, kind: ToolKind) -> Result<OwnedSemaphorePermit> {
        let tools = match kind {
            ToolKind::Quick => format!("{QUICK_TOOLS} filesystem tools"),
            ToolKind::FullCheck => format!("{FULL_CHECKS} full filesystem checks"),
        };
        tracing::info!(disk.id = %call.id(), "waiting for one of the {tools} of other volumes");
        match call.deadline.bound(self.slots(kind).acquire_owned()).await {
            Ok(Ok(slot)) => Ok(slot),
            // The semaphores are never closed.
            Ok(Err(_)) | Err(_) => {
                let message = format!("the {tools} of other volumes did not end by the deadline");
                Err(call.error(Failure::ToolQueueTimeout, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::base::Deadline;
    use crate::linux::fake::{FakeHost, FakeState};
    use crate::model::{Filesystem, Tuning};
    use crate::node::Volume;

    #[test]
    fn only_a_check_that_the_superblock_demands_is_a_full_check() {
        let check = |fsck| Step::Check(Filesystem::Ext4, fsck);
        let grow = Step::GrowUnmounted(Filesystem::Ext4, Fsck::None);
        let format = Step::Format {
            filesystem: Filesystem::Xfs,
            tuning: Tuning::default(),
        };
        for (steps, is_demanded, kind) in [
            (vec![check(Fsck::Preen)], false, Some(ToolKind::Quick)),
            (vec![check(Fsck::Preen)], true, Some(ToolKind::FullCheck)),
            (vec![check(Fsck::Journal)], true, None),
            (vec![format], false, Some(ToolKind::Quick)),
            (vec![check(Fsck::Preen), grow], false, Some(ToolKind::FullCheck)),
            (vec![Step::Wipe], false, None),
        ] {
            assert_eq!(ToolKind::of(&steps, is_demanded), kind, "{steps:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn quick_tools_do_not_wait_for_full_checks() {
        let slots = ToolSlots::default();
        let host = FakeHost::new(FakeState::default());
        let volume = Volume::new("d-bp1".parse().unwrap(), None);
        let soon = || CallContext::new(&host, &volume, "staging", Deadline::after(Duration::from_secs(5)));
        let mut checks = Vec::new();
        while let Some(slot) = slots.try_acquire(ToolKind::FullCheck) {
            checks.push(slot);
        }
        assert_eq!(checks.len(), FULL_CHECKS);
        let error = slots.acquire(soon(), ToolKind::FullCheck);
        let error = error.await.unwrap_err().to_string();
        assert!(error.contains("2 full filesystem checks"), "{error}");
        let quick = || slots.try_acquire(ToolKind::Quick).unwrap();
        let quick: Vec<_> = std::iter::repeat_with(quick).take(QUICK_TOOLS).collect();
        assert!(slots.try_acquire(ToolKind::Quick).is_none());
        drop((checks.pop(), quick));
        let acquired = slots.acquire(soon(), ToolKind::FullCheck);
        drop(acquired.await.unwrap());
    }
}
